#include "grammar/language.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

Lang concat(Languages& languages, std::vector<Lang> parts) { return languages.concat(parts); }
Lang any_of(Languages& languages, std::vector<Lang> parts) { return languages.any_of(parts); }
Lang all_of(Languages& languages, std::vector<Lang> parts) { return languages.all_of(parts); }

// -- an independent definition: sets of the texts of up to kMaxChars characters

constexpr size_t kMaxChars = 4;
const std::vector<std::string> kAlphabet = {"a", "b", "\u00E9", "\U0001F600"};

using Texts = std::set<std::string>;

size_t n_chars(const std::string& text) {
  size_t n = 0;
  for (const char c : text) n += (c & 0xC0) != 0x80 ? 1 : 0;
  return n;
}

const Texts& every_text() {
  static const Texts kAll = [] {
    Texts all = {""};
    std::vector<std::string> last = {""};
    for (size_t n = 0; n < kMaxChars; ++n) {
      std::vector<std::string> longer;
      for (const std::string& text : last) {
        for (const std::string& c : kAlphabet) longer.push_back(text + c);
      }
      all.insert(longer.begin(), longer.end());
      last = std::move(longer);
    }
    return all;
  }();
  return kAll;
}

Texts chain(const Texts& x, const Texts& y) {
  Texts result;
  for (const std::string& a : x) {
    for (const std::string& b : y) {
      if (n_chars(a) + n_chars(b) <= kMaxChars) result.insert(a + b);
    }
  }
  return result;
}

struct Pair {
  Lang lang;
  Texts texts;
};

class Maker {
 public:
  Maker(Languages& languages, uint32_t seed) : languages_(languages), random_(seed) {}

  Pair make(int depth) {
    const int choice = depth == 0 ? pick(4) : pick(13);
    switch (choice) {
      case 0: {
        const std::string c = kAlphabet[static_cast<size_t>(pick(4))];
        return {languages_.text(c), {c}};
      }
      case 1:
        return {languages_.chars(CharSet::of({{'a', 'b'}})), {"a", "b"}};
      case 2:
        return {languages_.chars(CharSet::of({{'b', 0xFF}})), {"b", "\u00E9"}};
      case 3:
        return pick(4) == 0 ? Pair{kEmptyText, {""}}
                            : Pair{languages_.chars(CharSet::all()), Texts(kAlphabet.begin(), kAlphabet.end())};
      case 4:
      case 5: {
        const Pair x = make(depth - 1);
        const Pair y = make(depth - 1);
        return {concat(languages_, {x.lang, y.lang}), chain(x.texts, y.texts)};
      }
      case 6:
      case 7: {
        const Pair x = make(depth - 1);
        Pair y = make(depth - 1);
        y.texts.insert(x.texts.begin(), x.texts.end());
        return {any_of(languages_, {x.lang, y.lang}), y.texts};
      }
      case 8: {
        const Pair x = make(depth - 1);
        const Pair y = make(depth - 1);
        return {all_of(languages_, {x.lang, y.lang}), filter(x.texts, [&y](auto& t) { return y.texts.contains(t); })};
      }
      case 9: {
        const Pair x = make(depth - 1);
        const Pair y = make(depth - 1);
        return {languages_.except(x.lang, y.lang), filter(x.texts, [&y](auto& t) { return !y.texts.contains(t); })};
      }
      case 10: {
        const Pair x = make(depth - 1);
        return {languages_.except(kAnyText, x.lang),
                filter(every_text(), [&x](auto& t) { return !x.texts.contains(t); })};
      }
      case 11: {
        const std::vector<Pair> parts = {make(depth - 1), make(depth - 1), make(depth - 1)};
        std::vector<Lang> langs;
        for (const Pair& part : parts) langs.push_back(part.lang);
        const auto in_one = [&parts](const std::string& t) {
          int n = 0;
          for (const Pair& part : parts) n += part.texts.contains(t) ? 1 : 0;
          return n == 1;
        };
        return {languages_.exactly_one(langs), filter(every_text(), in_one)};
      }
      default:
        return make_repeat(depth);
    }
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  template <typename Keep>
  static Texts filter(const Texts& texts, Keep keep) {
    Texts result;
    for (const std::string& text : texts) {
      if (keep(text)) result.insert(text);
    }
    return result;
  }

  Pair make_repeat(int depth) {
    const Pair x = make(depth - 1);
    const int min = pick(4);
    const int max = pick(3) == 0 ? -1 : min + pick(3);
    Texts power = {""};
    Texts all;
    for (int n = 0; n <= (max < 0 ? min + static_cast<int>(kMaxChars) : max); ++n) {
      if (n >= min) all.insert(power.begin(), power.end());
      power = chain(power, x.texts);
    }
    return {languages_.repeat(x.lang, min, max), all};
  }

  Languages& languages_;
  std::mt19937 random_;
};

/// A text along shortest().
std::string shortest_text(Languages& languages, Lang lang) {
  std::string text;
  int64_t left = languages.shortest(lang);
  while (left > 0) {
    bool found = false;
    for (int b = 0; b < 256 && !found; ++b) {
      const Lang after = languages.next(lang, static_cast<uint8_t>(b));
      if (after == kNothing || languages.shortest(after) != left - 1) continue;
      text += static_cast<char>(b);
      lang = after;
      --left;
      found = true;
    }
    if (!found) return "(no way)";
  }
  return languages.accepts_empty(lang) ? text : "(no end)";
}

TEST(Language, EqualsSetsOfTextsOnRandomExpressions) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Languages languages;
    Maker maker(languages, seed);
    const Pair made = maker.make(1 + static_cast<int>(seed % 4));
    ASSERT_FALSE(languages.exhausted());
    for (const std::string& text : every_text()) {
      ASSERT_EQ(languages.accepts(made.lang, text), made.texts.contains(text)) << "seed " << seed << " text " << text;
    }
  }
}

TEST(Language, NextIsNothingExactlyWhereNoTextGoesOn) {
  for (uint32_t seed = 1000; seed < 1150; ++seed) {
    Languages languages;
    Maker maker(languages, seed);
    const Pair made = maker.make(1 + static_cast<int>(seed % 4));
    std::set<std::string> prefixes;  // bytes of the known texts
    for (const std::string& text : made.texts) {
      for (size_t n = 0; n <= text.size(); ++n) prefixes.insert(text.substr(0, n));
    }
    std::vector<std::pair<std::string, Lang>> open = {{"", made.lang}};
    if (languages.is_empty(made.lang)) {
      EXPECT_TRUE(made.texts.empty());
      continue;
    }
    for (size_t i = 0; i < open.size() && i < 60; ++i) {
      const auto [prefix, lang] = open[i];
      const std::span<const uint8_t, 256> classes = languages.byte_classes(lang);
      std::map<uint8_t, Lang> of_class;
      for (int b = 0; b < 256; ++b) {
        const Lang after = languages.next(lang, static_cast<uint8_t>(b));
        const auto [known, is_new] = of_class.try_emplace(classes[static_cast<size_t>(b)], after);
        ASSERT_EQ(known->second, after) << "seed " << seed;
        const std::string longer = prefix + static_cast<char>(b);
        if (after == kNothing) {
          ASSERT_FALSE(prefixes.contains(longer)) << "seed " << seed << " prefix " << longer;
          continue;
        }
        // There is a text: the way that shortest() shows is one.
        ASSERT_FALSE(languages.is_empty(after));
        const std::string rest = shortest_text(languages, after);
        ASSERT_TRUE(languages.accepts(made.lang, longer + rest)) << "seed " << seed << " " << longer << "+" << rest;
        if (is_new && longer.size() < 6) open.emplace_back(longer, after);
      }
    }
  }
}

TEST(Language, BytesAtOnceAreBytesOneByOne) {
  Languages languages;
  std::mt19937 random(3);
  int n_alive = 0;
  for (const char* pattern :
       {"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}$", "^(?:abcdef|abcxyz|b{3,5}c)[a-c]{2,}$", "^abcabc(?:abc)?[ab]{0,4}$",
        "^[ab]{4}$", "^[ab]{3,6}(?=.{2}$)..", "^(?!abcab)[a-c]{5,9}$", "^abab[ab]{2}abab$", "^[^a]{2,4}bcc$"}) {
    const Lang whole = *parse_regex(languages, pattern, Match::kSearch);
    for (int i = 0; i < 400; ++i) {
      Lang one = whole, many = whole;
      for (int k = 0; k < 3; ++k) {
        std::string text;
        for (size_t n = random() % 7; n > 0; --n) text += "aaabbbccd0f-7xyz"[random() % 16];
        if (random() % 2 == 0) text = std::string("abcabcaabb0123-7").substr(random() % 8, random() % 8);
        for (const char c : text) one = languages.next(one, static_cast<uint8_t>(c));
        many = languages.next(many, text);
        ASSERT_EQ(one, many) << pattern << " behind " << text;
      }
      n_alive += one != kNothing ? 1 : 0;
    }
  }
  EXPECT_GT(n_alive, 100);
}

TEST(Language, ShortestEqualsBruteForce) {
  for (uint32_t seed = 2000; seed < 2150; ++seed) {
    Languages languages;
    Maker maker(languages, seed);
    const Pair made = maker.make(1 + static_cast<int>(seed % 4));
    if (made.texts.empty()) continue;
    size_t least = SIZE_MAX;
    for (const std::string& text : made.texts) least = std::min(least, text.size());
    // Characters outside the alphabet may be shorter where sets hold them; never longer.
    const int64_t found = languages.shortest(made.lang);
    ASSERT_GE(found, 0);
    ASSERT_LE(found, static_cast<int64_t>(least)) << "seed " << seed;
    ASSERT_EQ(shortest_text(languages, made.lang).size(), static_cast<size_t>(found)) << "seed " << seed;
  }
}

TEST(Language, AnyTextIsOneNumber) {
  Languages languages;
  const Lang any_char = languages.chars(CharSet::all());
  const Lang x = languages.text("x\u00E9");
  EXPECT_EQ(languages.repeat(any_char, 0, -1), kAnyText);
  EXPECT_EQ(languages.repeat(languages.repeat(any_char, 0, 1), 0, -1), kAnyText);
  EXPECT_EQ(concat(languages, {kAnyText, kAnyText}), kAnyText);
  EXPECT_EQ(any_of(languages, {kAnyText, x, kEmptyText}), kAnyText);
  EXPECT_EQ(all_of(languages, {kAnyText, x}), x);
  EXPECT_EQ(all_of(languages, {}), kAnyText);
  EXPECT_EQ(any_of(languages, {}), kNothing);
  EXPECT_EQ(languages.except(kAnyText, kNothing), kAnyText);
  EXPECT_EQ(languages.except(kAnyText, kAnyText), kNothing);
  EXPECT_EQ(languages.except(x, kAnyText), kNothing);
  const Lang line = languages.repeat(languages.chars(CharSet::one('\n').others()), 0, -1);
  EXPECT_EQ(concat(languages, {kAnyText, line, kAnyText}), kAnyText);
  // Behind a found part everything may follow, in the middle of a character too.
  const Lang search = concat(languages, {kAnyText, x, kAnyText});
  Lang lang = search;
  for (const char c : std::string("\U0001F600x\u00E9")) lang = languages.next(lang, static_cast<uint8_t>(c));
  EXPECT_EQ(lang, kAnyText);
  for (const char* lead :
       {"\xC3", "\xE0", "\xED", "\xE2", "\xF0", "\xF1", "\xF4", "\xE2\x82", "\xF0\x9F", "\xF0\x9F\x98"}) {
    Lang of_any = kAnyText;
    Lang of_found = lang;
    Lang of_all_but = languages.except(kAnyText, languages.text("q"));
    for (const char* c = lead; *c != 0; ++c) {
      of_any = languages.next(of_any, static_cast<uint8_t>(*c));
      of_found = languages.next(of_found, static_cast<uint8_t>(*c));
      of_all_but = languages.next(of_all_but, static_cast<uint8_t>(*c));
    }
    EXPECT_NE(of_any, kNothing);
    EXPECT_EQ(of_any, of_found);
    EXPECT_EQ(of_any, of_all_but);
  }
}

TEST(Language, AnyTextIsWellFormedUtf8) {
  Languages languages;
  std::mt19937 random(7);
  const Lang spelled = languages.repeat(languages.chars(CharSet::of({{0, 0x7FF}, {0x800, 0x10FFFF}})), 0, -1);
  EXPECT_EQ(spelled, kAnyText);
  for (const char* text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xC3", "\xE2\x82", "\xFF"}) {
    EXPECT_FALSE(languages.accepts(kAnyText, text));
  }
  for (const char* text :
       {"", "a", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(languages.accepts(kAnyText, text));
  }
}

TEST(Language, CharsAreTheCharactersOfTheSet) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    std::vector<CharRange> ranges;
    for (int i = 0; i < 1 + round % 7; ++i) {
      const uint32_t scale = (random() % 4 == 0) ? 0x110000 : (random() % 2 == 0 ? 0x900 : 0x12000);
      const uint32_t first = random() % scale;
      ranges.push_back({first, first + static_cast<uint32_t>(random() % (round % 3 == 0 ? 5000 : 70))});
    }
    const CharSet set = CharSet::of(ranges);
    Languages languages;
    const Lang lang = languages.chars(set);
    const auto in = [&](uint32_t c) {
      std::string text;
      if (c < 0x80) {
        text = {static_cast<char>(c)};
      } else if (c < 0x800) {
        text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
      } else if (c < 0x10000) {
        text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
                static_cast<char>(0x80 | (c & 63))};
      } else {
        text = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
                static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
      }
      return languages.accepts(lang, text);
    };
    for (const CharRange range : ranges) {
      for (uint32_t c : {range.first, range.last, range.first - 1, range.last + 1, (range.first + range.last) / 2}) {
        if (c >= 0x110000) continue;
        ASSERT_EQ(in(c), set.contains(c)) << c;
      }
    }
    for (int i = 0; i < 3000; ++i) {
      const uint32_t c = random() % 0x110000;
      ASSERT_EQ(in(c), set.contains(c)) << c;
    }
  }
}

TEST(Language, ManyLiteralsAreWalkedByTheirLetters) {
  Languages languages;
  std::vector<Lang> parts;
  for (int i = 0; i < 20000; ++i) parts.push_back(languages.text("item-" + std::to_string(i * 7919 % 1000003)));
  const Lang lang = languages.any_of(parts);
  EXPECT_TRUE(languages.accepts(lang, "item-7919"));
  EXPECT_FALSE(languages.accepts(lang, "item-7918"));
  EXPECT_FALSE(languages.accepts(lang, "item-"));
  EXPECT_EQ(languages.shortest(lang), 6);
  const Lang others = languages.except(kAnyText, lang);
  EXPECT_FALSE(languages.accepts(others, "item-7919"));
  EXPECT_TRUE(languages.accepts(others, "item-7918"));
}

TEST(Language, CountsAreNotUnrolled) {
  Languages languages;
  const Lang a = languages.text("a");
  const Lang a_or_b = languages.chars(CharSet::of({{'a', 'b'}}));
  EXPECT_EQ(languages.repeat(languages.repeat(a, 1000, 1000), 1000, 1000), languages.repeat(a, 1000000, 1000000));
  EXPECT_EQ(languages.repeat(languages.repeat(a, 0, -1), 0, -1), languages.repeat(a, 0, -1));
  EXPECT_EQ(languages.shortest(languages.repeat(a, 1000000, 1000000)), 1000000);
  const Lang wide = concat(languages, {languages.repeat(a_or_b, 0, -1), a, languages.repeat(a_or_b, 24, 24)});
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += random() % 2 == 0 ? 'a' : 'b';
    EXPECT_EQ(languages.accepts(wide, text), text[text.size() - 25] == 'a');
  }
  const Lang nested =
      languages.repeat(languages.repeat(languages.any_of({{a, languages.text("aa")}}), 0, 1000), 0, 1000);
  EXPECT_TRUE(languages.accepts(nested, std::string(3000, 'a')));
  EXPECT_FALSE(languages.exhausted());
  EXPECT_LT(languages.n_bytes(), 4 << 20);
}

TEST(Language, FuelAndMemoryEndTheWork) {
  Languages languages(200'000);
  const Lang a = languages.text("a");
  const Lang a_or_b = languages.chars(CharSet::of({{'a', 'b'}}));
  const Lang wide = concat(languages, {languages.repeat(a_or_b, 0, -1), a, languages.repeat(a_or_b, 24, 24)});
  Fuel fuel(100, std::chrono::seconds(10));
  languages.set_fuel(&fuel);
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += random() % 2 == 0 ? 'a' : 'b';
  EXPECT_FALSE(languages.accepts(wide, text));
  EXPECT_TRUE(languages.exhausted());
  // New fuel: nothing wrong was remembered.
  Fuel more(1'000'000'000, std::chrono::seconds(10));
  languages.set_fuel(&more);
  EXPECT_FALSE(languages.exhausted());
  EXPECT_EQ(languages.accepts(wide, text.substr(0, 100)), text[75] == 'a');
  EXPECT_EQ(languages.accepts(wide, text) || languages.exhausted(), languages.exhausted() || text[975] == 'a');
  for (int i = 0; i < 100'000 && !languages.exhausted(); ++i) languages.text("text " + std::to_string(i));
  EXPECT_TRUE(languages.exhausted());
  EXPECT_LT(languages.n_bytes(), 300'000);
  EXPECT_EQ(languages.text("more"), kNothing);
}

TEST(Language, BytesNeedNotBeUtf8) {
  Languages languages;
  const Lang raw = languages.repeat(languages.bytes(0x80, 0xFF), 1, 3);
  EXPECT_TRUE(languages.accepts(raw, "\xFF\x80"));
  EXPECT_FALSE(languages.accepts(raw, "a"));
  EXPECT_TRUE(languages.is_empty(languages.all_of({{raw, languages.repeat(languages.bytes(0, 0x7F), 1, -1)}})));
}

/// Binary numbers, most significant digit first, that leave the remainder 0.
struct Divisible : Languages::Automaton {
  int32_t divisor;
  explicit Divisible(int32_t d) : divisor(d) {}
  [[nodiscard]] int32_t next(int32_t state, uint8_t byte) const override {
    return byte == '0' || byte == '1' ? (state * 2 + byte - '0') % divisor : -1;
  }
  [[nodiscard]] bool accepts(int32_t state) const override { return state == 0; }
};

TEST(Language, AutomataCombineWithTheRest) {
  Languages languages;
  const Lang by_3 = languages.automaton(std::make_shared<Divisible>(3));
  const Lang by_5 = languages.automaton(std::make_shared<Divisible>(5));
  const Lang digits = languages.repeat(languages.chars(CharSet::of({{'0', '1'}})), 3, -1);
  const Lang both = languages.all_of({{by_3, by_5, digits}});
  const Lang one = languages.exactly_one({{by_3, by_5}});
  for (int n = 0; n < 256; ++n) {
    std::string text;
    for (int i = 7; i >= 0; --i) text += static_cast<char>('0' + (n >> i & 1));
    EXPECT_EQ(languages.accepts(both, text), n % 15 == 0);
    EXPECT_EQ(languages.accepts(one, text), (n % 3 == 0) != (n % 5 == 0));
  }
  EXPECT_EQ(languages.shortest(both), 3);
  EXPECT_EQ(languages.shortest(languages.except(both, languages.repeat(languages.text("0"), 0, -1))), 4);
  EXPECT_TRUE(languages.is_empty(languages.except(both, by_5)));
}

Lang ascii(Languages& languages, char first, char last) {
  return languages.bytes(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
}

TEST(LanguageCounts, TellsClassesWithLimitsApart) {
  Languages languages;
  const Lang letters = ascii(languages, 'a', 'z');
  const auto counted = languages.counted(languages.repeat(letters, 2, 64));
  ASSERT_TRUE(counted.has_value());
  EXPECT_EQ(counted->body, languages.repeat(letters, 0, -1));
  EXPECT_EQ(counted->min, 2);
  EXPECT_EQ(counted->max, 64);
  EXPECT_FALSE(languages.counted(languages.repeat(letters, 0, -1)).has_value());
  EXPECT_FALSE(languages.counted(languages.repeat(languages.text("ab"), 2, 64)).has_value());
  const Lang any = languages.chars(CharSet::all());
  const Lang both[] = {languages.repeat(letters, 3, -1), languages.repeat(any, 1, 9)};
  const auto common = languages.counted(languages.all_of(both));
  ASSERT_TRUE(common.has_value());
  EXPECT_EQ(common->body, languages.repeat(letters, 0, -1));
  EXPECT_EQ(common->min, 3);
  EXPECT_EQ(common->max, 9);
}

TEST(LanguageCounts, KnowsWhereEveryLengthIsThere) {
  Languages languages;
  const Lang a = languages.text("a"), ab = languages.text("ab");
  EXPECT_EQ(languages.chars_at_least(kAnyText), 0);
  EXPECT_EQ(languages.chars_at_least(languages.repeat(a, 3, -1)), 3);
  EXPECT_EQ(languages.chars_at_least(languages.repeat(languages.text("é"), 3, -1)), 3);
  EXPECT_EQ(languages.chars_at_least(languages.repeat(a, 3, 9)), -1);
  EXPECT_EQ(languages.chars_at_least(languages.repeat(ab, 0, -1)), -1);  // even ones only
  const Lang words[] = {languages.repeat(a, 1, -1), languages.text(" ")};
  const Lang some[] = {languages.repeat(languages.concat(words), 0, 49), languages.repeat(a, 1, -1)};
  EXPECT_EQ(languages.chars_at_least(languages.concat(some)), 1);
}

TEST(LanguageCounts, BoundsHoldTheLanguage) {
  Languages languages;
  const Lang ab = languages.text("ab");
  const Lang parts[] = {languages.repeat(ab, 0, 40), languages.text("c")};
  const Lang other_parts[] = {languages.repeat(ab, 0, 39), languages.text("c")};
  const Languages::Bounds bounds = languages.bounds(languages.concat(parts), 4);
  const Languages::Bounds other = languages.bounds(languages.concat(other_parts), 4);
  EXPECT_EQ(bounds.low, other.low);
  EXPECT_EQ(bounds.high, other.high);
  for (int n = 0; n < 45; ++n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "ab";
    text += "c";
    EXPECT_EQ(languages.accepts(languages.concat(parts), text), n <= 40);
    EXPECT_EQ(languages.accepts(bounds.low, text), n <= 4);
    EXPECT_TRUE(languages.accepts(bounds.high, text));
  }
  const Lang plain = languages.repeat(ab, 0, -1);
  EXPECT_EQ(languages.bounds(plain, 4).low, plain);
  EXPECT_EQ(languages.bounds(plain, 4).high, plain);
}

TEST(LanguageCounts, SearchesTakeEveryText) {
  Languages languages;
  const auto search = [&](std::string_view text, bool at_end) {
    const Lang parts[] = {kAnyText, languages.text(text), at_end ? kEmptyText : kAnyText};
    return languages.concat(parts);
  };
  EXPECT_TRUE(languages.takes_every_text(search("ab", false)));
  EXPECT_TRUE(languages.takes_every_text(search("ab", true)));
  EXPECT_FALSE(languages.takes_every_text(languages.text("ab")));
  const Lang one_end[] = {search("ab", false), search("c", true)};
  EXPECT_TRUE(languages.takes_every_text(languages.all_of(one_end)));
  const Lang two_ends[] = {search("ab", true), search("c", true)};
  EXPECT_FALSE(languages.takes_every_text(languages.all_of(two_ends)));
}

TEST(LanguageCounts, CommonTextsNeedCommonBytes) {
  Languages languages;
  const Lang digits = languages.repeat(ascii(languages, '0', '9'), 0, -1);
  const Lang parts[] = {kAnyText, languages.text("T"), kAnyText};
  const Lang both[] = {digits, languages.concat(parts)};
  EXPECT_EQ(languages.all_of(both), kNothing);
}

}  // namespace
}  // namespace deepinfer::grammar
