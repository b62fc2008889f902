#include "grammar/numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace deepinfer::grammar {
namespace {

// -- an independent definition: numbers as whole thousandths

constexpr int64_t kScale = 1000;

int64_t thousandths(const std::string& spelling) {
  std::string digits = spelling;
  const bool negative = digits[0] == '-';
  if (negative) digits.erase(0, 1);
  const size_t point = digits.find('.');
  std::string fraction = point == std::string::npos ? "" : digits.substr(point + 1);
  if (point != std::string::npos) digits.resize(point);
  fraction.resize(3, '0');
  const int64_t value = std::stoll(digits) * kScale + std::stoll(fraction);
  return negative ? -value : value;
}

std::string spelled(int64_t value) {
  std::string text = value < 0 ? "-" : "";
  value = value < 0 ? -value : value;
  text += std::to_string(value / kScale);
  if (value % kScale != 0) {
    const std::string fraction = std::to_string(kScale + value % kScale).substr(1);
    text += "." + fraction.substr(0, fraction.find_last_not_of('0') + 1);
  }
  return text;
}

/// Plain spellings with at most 3 + 3 digits: a few thousand, those near limits among them by chance and by steps.
std::vector<std::string> spellings(std::mt19937& random, int64_t around) {
  std::vector<std::string> all = {"0", "-0", "0.0", "-0.00", "1", "-1", "0.001", "-0.001"};
  const auto add = [&all](int64_t value) {
    const std::string text = spelled(value);
    all.push_back(text);
    if (text.find('.') == std::string::npos) {
      all.push_back(text + ".0");
      all.push_back(text + ".000");
    } else if (text.size() - text.find('.') < 4) {
      all.push_back(text + "0");
    }
  };
  for (int64_t step = -25; step <= 25; ++step) {
    add(around + step);
    add(around + step * 100);
    add(around + step * 1000);
    add(step * 1000);
  }
  for (int i = 0; i < 200; ++i) add(static_cast<int64_t>(random() % 2'000'000) - 1'000'000);
  return all;
}

TEST(Numbers, LimitsEqualBruteForce) {
  std::mt19937 random(1);
  const auto any_limit = [&random] {
    switch (random() % 4) {
      case 0:
        return static_cast<int64_t>(random() % 2001) - 1000;
      case 1:
        return (static_cast<int64_t>(random() % 401) - 200) * kScale;
      case 2:
        return static_cast<int64_t>(random() % 1'998'001) - 999'000;
      default:
        return static_cast<int64_t>(0);
    }
  };
  for (int round = 0; round < 250; ++round) {
    const bool has_low = random() % 3 != 0;
    const bool has_high = random() % 3 != 0;
    const int64_t low = any_limit();
    const int64_t high = random() % 4 == 0 ? any_limit() : low + static_cast<int64_t>(random() % 20000) - 100;
    const std::vector<int64_t> divisors = {0, 0, 0, 1000, 3000, 10, 100, 250, 7, 1500, 12'000, 100'000, 70'000, 2300};
    const int64_t divisor = divisors[random() % divisors.size()];
    const std::string low_text = spelled(low);
    const std::string high_text = spelled(high);
    const std::string divisor_text = spelled(divisor);
    NumberLimits limits;
    if (has_low) limits.minimum = low_text;
    if (has_high) limits.maximum = high_text;
    limits.exclusive_minimum = random() % 2 == 0;
    limits.exclusive_maximum = random() % 2 == 0;
    if (divisor != 0) limits.multiple_of = divisor_text;
    limits.integer = random() % 3 == 0;
    Languages languages;
    const Result<Lang> lang = number_language(languages, limits);
    ASSERT_TRUE(lang.ok()) << lang.error().message;
    int n_in = 0;
    const auto fits = [&](int64_t value) {
      if (has_low && (limits.exclusive_minimum ? value <= low : value < low)) return false;
      if (has_high && (limits.exclusive_maximum ? value >= high : value > high)) return false;
      if (limits.integer && value % kScale != 0) return false;
      return divisor == 0 || value % divisor == 0;
    };
    for (const std::string& text : spellings(random, has_low ? low : high)) {
      const bool in = fits(thousandths(text));
      n_in += in ? 1 : 0;
      ASSERT_EQ(languages.accepts(*lang, text), in)
          << text << " in [" << limits.minimum << "," << limits.maximum << "] exclusive " << limits.exclusive_minimum
          << limits.exclusive_maximum << " multiple of " << limits.multiple_of << " integer " << limits.integer;
    }
    EXPECT_FALSE(n_in > 0 && languages.is_empty(*lang));
    // Exponents: never a wrong one.
    for (int i = 0; i < 100; ++i) {
      const int64_t mantissa = (static_cast<int64_t>(random() % 2001) - 1000) * (random() % 2 == 0 ? 1 : 1000);
      const int exponent = static_cast<int>(random() % 4) - 1;
      int64_t value = mantissa * 10;  // in hundredths of thousandths when shifted
      for (int k = -1; k < exponent; ++k) value *= 10;
      const std::string text = spelled(mantissa) + (random() % 2 == 0 ? "e" : "E") + std::to_string(exponent);
      if (!languages.accepts(*lang, text)) continue;
      const int64_t unit = 100;
      bool in = !has_low || (limits.exclusive_minimum ? value > low * unit : value >= low * unit);
      in = in && (!has_high || (limits.exclusive_maximum ? value < high * unit : value <= high * unit));
      in = in && (!limits.integer || value % (kScale * unit) == 0) && (divisor == 0 || value % (divisor * unit) == 0);
      ASSERT_TRUE(in) << text << " in [" << limits.minimum << "," << limits.maximum << "]";
    }
  }
}

TEST(Numbers, NextNeverLeadsToADeadEnd) {
  for (const char* divisor : {"0.01", "7", "2.5", "429", "12000", "1e-8", "0.0075", "11"}) {
    for (const char* max : {"", "99999999999.99", "100", "0.5"}) {
      Languages languages;
      const Result<Lang> lang = number_language(languages, {.minimum = "0", .maximum = max, .multiple_of = divisor});
      ASSERT_TRUE(lang.ok());
      std::mt19937 random(5);
      for (int round = 0; round < 50; ++round) {
        Lang at = *lang;
        for (int i = 0; i < 30; ++i) {
          std::vector<Lang> open;
          for (int b = 0; b < 256; ++b) {
            const Lang after = languages.next(at, static_cast<uint8_t>(b));
            if (after != kNothing) open.push_back(after);
          }
          if (open.empty()) break;
          at = open[random() % open.size()];
          ASSERT_FALSE(languages.is_empty(at));
        }
        ASSERT_GE(languages.shortest(at), 0);
      }
      ASSERT_FALSE(languages.exhausted());
    }
  }
}

TEST(Numbers, WithoutLimitsEveryJsonNumber) {
  Languages languages;
  const Lang lang = *number_language(languages, {});
  for (const char* text :
       {"0", "-0", "1", "10", "-1.5", "1e5", "1E+5", "0.0e-0", "123.456e208", "-0.1E-308", "1e+007"}) {
    EXPECT_TRUE(languages.accepts(lang, text)) << text;
  }
  for (const char* text :
       {"", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "1 ", "--1", "1.e5", "00", "1e1.5", "1e309", "1e0400"}) {
    EXPECT_FALSE(languages.accepts(lang, text)) << text;
  }
  const Lang integer = *number_language(languages, {.integer = true});
  for (const char* text : {"0", "-0", "1.0", "1e2", "-12.000E+3", "1e-0"})
    EXPECT_TRUE(languages.accepts(integer, text));
  for (const char* text : {"0.5", "1e-1", "1.50", "1.", "01"}) EXPECT_FALSE(languages.accepts(integer, text)) << text;
}

TEST(Numbers, BigAndSmallLimitsAreExact) {
  Languages languages;
  const Lang lang = *number_language(languages, {.minimum = "18446744073709551616", .maximum = "1e400"});
  EXPECT_FALSE(languages.accepts(lang, "18446744073709551615"));
  EXPECT_FALSE(languages.accepts(lang, "18446744073709551615.999999999999999999999999"));
  EXPECT_TRUE(languages.accepts(lang, "18446744073709551616"));
  EXPECT_TRUE(languages.accepts(lang, "1" + std::string(400, '0')));
  EXPECT_FALSE(languages.accepts(lang, "1" + std::string(399, '0') + "1"));
  const Lang tiny = *number_language(languages, {.minimum = "1e-30", .maximum = "1", .exclusive_minimum = true});
  EXPECT_FALSE(languages.accepts(tiny, "0." + std::string(29, '0') + "1"));
  EXPECT_TRUE(languages.accepts(tiny, "0." + std::string(29, '0') + "10001"));
  const Lang cents = *number_language(languages, {.multiple_of = "0.0001"});
  EXPECT_TRUE(languages.accepts(cents, "0.0075"));
  EXPECT_FALSE(languages.accepts(cents, "0.00751"));
  const Lang fine = *number_language(languages, {.multiple_of = "1e-8"});
  EXPECT_TRUE(languages.accepts(fine, "12391239123.00000001"));
  EXPECT_FALSE(languages.accepts(fine, "0.000000001"));
  EXPECT_FALSE(number_language(languages, {.multiple_of = "1.2345678901234567890123"}).ok());
  EXPECT_FALSE(number_language(languages, {.minimum = "1e999999"}).ok());
  EXPECT_FALSE(number_language(languages, {.minimum = "abc"}).ok());
  EXPECT_FALSE(number_language(languages, {.multiple_of = "0"}).ok());
  EXPECT_EQ(*number_language(languages, {.minimum = "2", .maximum = "1"}), kNothing);
  EXPECT_EQ(*number_language(languages, {.minimum = "1", .maximum = "10", .multiple_of = "11"}), kNothing);
  EXPECT_EQ(*number_language(languages, {.minimum = "0.1", .maximum = "0.9", .integer = true}), kNothing);
  // Times, in nanoseconds.
  const Lang seconds = *number_language(languages, {.multiple_of = "1000000000", .integer = true});
  EXPECT_TRUE(languages.accepts(seconds, "7000000000"));
  EXPECT_TRUE(languages.accepts(seconds, "0"));
  EXPECT_FALSE(languages.accepts(seconds, "700000000"));
  EXPECT_FALSE(languages.accepts(seconds, "00000000000"));
}

TEST(Numbers, EqualNumbersHaveManySpellings) {
  const std::map<std::string, std::vector<std::string>> cases = {
      {"1", {"1", "1.0", "1.000", "1e0", "1E+00", "1.0e-0", "1e00"}},
      {"10e-1", {"1", "1.0", "10e-1", "1e0"}},
      {"-12.50", {"-12.5", "-12.50", "-12.5000", "-1.25e1", "-1.250E+01"}},
      {"0", {"0", "-0", "0.0", "0e5", "-0.00E-7"}},
      {"1e3", {"1000", "1000.0", "1e3", "1.0E+03"}},
      {"0.001", {"0.001", "0.0010", "1e-3", "1.0e-03"}},
  };
  for (const auto& [received, equal] : cases) {
    Languages languages;
    const Lang lang = *number_equal_to(languages, received);
    EXPECT_TRUE(languages.accepts(lang, received));
    for (const std::string& text : equal) EXPECT_TRUE(languages.accepts(lang, text)) << received << " " << text;
    for (const auto& [other, others] : cases) {
      if (canonical_number(other) == canonical_number(received)) continue;
      for (const std::string& text : others) EXPECT_FALSE(languages.accepts(lang, text)) << received << " " << text;
    }
    const Lang rest = languages.except(plain_numbers(languages), lang);
    for (const std::string& text : equal) EXPECT_FALSE(languages.accepts(rest, text));
    EXPECT_TRUE(languages.accepts(rest, "77"));
    EXPECT_FALSE(languages.accepts(rest, "77e0"));
  }
  Languages languages;
  EXPECT_FALSE(number_equal_to(languages, "x").ok());
  EXPECT_FALSE(number_equal_to(languages, "1e5000").ok());
}

TEST(Numbers, CanonicalSpellings) {
  const std::vector<std::vector<std::string>> equal = {
      {"1", "1.0", "1e0", "10e-1", "0.1E1"},
      {"0", "-0", "0.000", "0e99999999999999999999"},
      {"-100", "-1e2", "-100.0", "-0.1e+3"},
      {"0.001", "1e-3", "0.00100"},
      {"1e99999999999999999999", "10e99999999999999999998", "0.1e100000000000000000000"},
      {"1e-99999999999999999999", "10e-100000000000000000000", "0.1e-99999999999999999998"},
      {"1e99999999999999999", "0.1e100000000000000000", "100e99999999999999997"},
  };
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < equal.size(); ++i) {
    for (const std::string& text : equal[i]) {
      EXPECT_EQ(canonical_number(text), canonical_number(equal[i][0])) << text;
      const auto [known, is_new] = seen.try_emplace(canonical_number(text), i);
      EXPECT_EQ(known->second, i) << text;
    }
  }
  EXPECT_EQ(canonical_number("1.0"), "1");
  EXPECT_EQ(canonical_number("-12.5"), "-125e-1");
}

}  // namespace
}  // namespace deepinfer::grammar
