// Fingerprints of languages: the same in every store, and never that of another language.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/formats.h"
#include "grammar/language.h"
#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

// No two of them have the same texts.
constexpr const char* kPatterns[] = {
    "^a$",
    "^b$",
    "^ab$",
    "^ba$",
    "^a|b$",
    "a",
    "a$",
    "^a",
    "^[ab]{2}$",
    "^[ab]{2,3}$",
    "^[ab]{2,}$",
    "^[ab]{3}$",
    "^(ab){2}$",
    "^(ab){2,3}$",
    "^(a|bc)*$",
    "^(ab|c)*$",
    "^(a|bc)+$",
    "^(ab?|c)*d$",
    "^[a-c]$",
    "^[a-d]$",
    "^[^a-c]$",
    "^[\u00E9-\u00EB]$",
    "^[\u00E9-\u00EC]$",
    "^[^\u00E9-\u00EB]$",
    "^\\p{L}$",
    "^\\p{Lu}$",
    "^(?=.*a)(?=.*b).{3,}$",
    "^(?=.*a)(?=.*c).{3,}$",
    "^(?=.*a)(?=.*b).{3,4}$",
    "^(?!a)[ab]+$",
    "^(?!b)[ab]+$",
    "^(\\S+\\s+){0,9}\\S+$",
    "^(\\S+\\s+){0,10}\\S+$",
    "^abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz$",
    "^abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyy$",
};
constexpr const char* kFormats[] = {"date-time", "date", "time", "email", "uri", "uuid", "hostname", "ipv4"};

Lang parse(Languages& languages, std::string_view pattern) { return *parse_regex(languages, pattern, Match::kSearch); }

TEST(LanguageFingerprint, IsOfTheLanguageWhateverTheStoreHolds) {
  std::map<std::string, Fingerprint> prints;
  std::vector<std::string> names(std::begin(kPatterns), std::end(kPatterns));
  for (const char* format : kFormats) names.push_back(std::string("format ") + format);
  std::mt19937 random(7);
  for (int store = 0; store < 6; ++store) {
    Languages languages;
    for (const std::string& name : names) {
      const Lang lang =
          name.starts_with("format ") ? *format_language(languages, name.substr(7)) : parse(languages, name);
      if (store % 2 == 1) {  // walks add expressions
        for (const char c : {'a', 'b', 'c', '1'}) (void)languages.next(lang, static_cast<uint8_t>(c));
      }
      const auto print = languages.fingerprint(lang);
      ASSERT_TRUE(print.has_value()) << name;
      EXPECT_EQ(prints.try_emplace(name, *print).first->second, *print) << name << " in store " << store;
      EXPECT_EQ(languages.fingerprint(lang), print);
    }
    std::shuffle(names.begin(), names.end(), random);
  }
  std::map<Fingerprint, std::string> name_of;
  for (const auto& [name, print] : prints) {
    const auto [other, is_new] = name_of.try_emplace(print, name);
    EXPECT_TRUE(is_new) << name << " and " << other->second;
  }
}

TEST(LanguageFingerprint, IsOfWhatIsLeft) {
  Languages one, other;
  (void)parse(other, "^(?:xy|z)*$");
  const Lang whole = parse(one, "^abc[de]+$"), rest = parse(other, "^c[de]+$");
  const Lang left = one.next(one.next(whole, 'a'), 'b');
  EXPECT_EQ(one.fingerprint(left), other.fingerprint(rest));
  EXPECT_NE(one.fingerprint(left), one.fingerprint(whole));
}

TEST(LanguageFingerprint, PartsCountInAnyOrder) {
  Languages one, other;
  const std::vector<std::string> texts = {"a.*", ".*b", "[cd]*", "(ef)*g"};
  const auto all = [&](Languages& languages, std::vector<std::string> patterns, bool is_union) {
    std::vector<Lang> parts;
    for (const std::string& pattern : patterns) parts.push_back(parse(languages, "^" + pattern + "$"));
    return languages.fingerprint(is_union ? languages.any_of(parts) : languages.exactly_one(parts));
  };
  const std::vector<std::string> reversed(texts.rbegin(), texts.rend());
  for (const bool is_union : {true, false}) {
    EXPECT_EQ(all(one, texts, is_union), all(other, reversed, is_union));
    EXPECT_NE(all(one, texts, is_union), all(one, {texts.begin(), texts.end() - 1}, is_union));
  }
  EXPECT_NE(all(one, texts, true), all(one, texts, false));
}

/// Texts of n letters a.
struct Letters : Languages::Automaton {
  Letters(int32_t n, std::string_view name) : n_letters(n), own_name(name) {}
  [[nodiscard]] int32_t next(int32_t state, uint8_t byte) const override {
    return byte == 'a' && state < n_letters ? state + 1 : -1;
  }
  [[nodiscard]] bool accepts(int32_t state) const override { return state == n_letters; }
  [[nodiscard]] std::string_view name() const override { return own_name; }
  int32_t n_letters;
  std::string_view own_name;
};

TEST(LanguageFingerprint, AutomataAreKnownByName) {
  Languages languages, others;
  const auto add = [](Languages& to, int32_t n, std::string_view name) {
    return to.automaton(std::make_shared<Letters>(n, name));
  };
  const Lang unnamed = add(languages, 2, "");
  EXPECT_EQ(languages.fingerprint(unnamed), std::nullopt);
  const Lang around[] = {unnamed, parse(languages, "^b$")};
  EXPECT_EQ(languages.fingerprint(languages.concat(around)), std::nullopt);
  EXPECT_EQ(languages.fingerprint(languages.any_of(around)), std::nullopt);
  const Lang two = add(languages, 2, "two"), three = add(languages, 3, "three");
  ASSERT_TRUE(languages.fingerprint(two).has_value());
  EXPECT_NE(languages.fingerprint(two), languages.fingerprint(three));
  EXPECT_NE(languages.fingerprint(two), languages.fingerprint(languages.next(two, 'a')));
  (void)add(others, 3, "three");
  EXPECT_EQ(languages.fingerprint(two), others.fingerprint(add(others, 2, "two")));
}

TEST(LanguageFingerprint, NoneWithoutFuel) {
  Languages languages;
  const Lang lang = parse(languages, "^(a|b)[cd]{3}$");
  Fuel fuel(0, std::chrono::seconds(100));
  (void)fuel.spend(1);
  languages.set_fuel(&fuel);
  EXPECT_EQ(languages.fingerprint(lang), std::nullopt);
  languages.set_fuel(nullptr);
  Languages others;
  EXPECT_EQ(languages.fingerprint(lang), others.fingerprint(parse(others, "^(a|b)[cd]{3}$")));
}

}  // namespace
}  // namespace deepinfer::grammar
