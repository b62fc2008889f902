#include "grammar/char_set.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/unicode.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kSmall = 200;  // code points around the surrogates are tested apart

std::vector<bool> bits_of(const std::vector<CharRange>& ranges) {
  std::vector<bool> bits(kSmall);
  for (const CharRange range : ranges) {
    for (uint32_t c = range.first; c <= range.last && c < kSmall; ++c) bits[c] = true;
  }
  return bits;
}

TEST(CharSet, OperationsEqualThoseOfBits) {
  std::mt19937 random(1);
  const auto any_ranges = [&random] {
    std::vector<CharRange> ranges;
    for (uint32_t i = random() % 6; i > 0; --i) {
      const uint32_t first = random() % kSmall;
      ranges.push_back({first, first + static_cast<uint32_t>(random() % 30)});
    }
    return ranges;
  };
  for (int round = 0; round < 500; ++round) {
    const auto ranges_x = any_ranges();
    const auto ranges_y = any_ranges();
    const CharSet x = CharSet::of(ranges_x);
    const CharSet y = CharSet::of(ranges_y);
    const auto bits_x = bits_of(ranges_x);
    const auto bits_y = bits_of(ranges_y);
    const CharSet either = x.united(y);
    const CharSet both = x.common(y);
    const CharSet others = x.others();
    for (uint32_t c = 0; c < kSmall; ++c) {
      ASSERT_EQ(x.contains(c), bits_x[c]);
      ASSERT_EQ(either.contains(c), bits_x[c] || bits_y[c]);
      ASSERT_EQ(both.contains(c), bits_x[c] && bits_y[c]);
      ASSERT_EQ(others.contains(c), !bits_x[c]);
    }
    ASSERT_EQ(others.others(), x);
    for (size_t i = 1; i < either.ranges().size(); ++i) {
      ASSERT_GT(either.ranges()[i].first, either.ranges()[i - 1].last + 1);
    }
  }
}

TEST(CharSet, HoldsNoSurrogates) {
  EXPECT_EQ(CharSet::all().ranges(), (std::vector<CharRange>{{0, 0xD7FF}, {0xE000, 0x10FFFF}}));
  EXPECT_TRUE(CharSet::of({{0xD800, 0xDFFF}}).empty());
  EXPECT_TRUE(CharSet::all().others().empty());
  EXPECT_EQ(CharSet().others(), CharSet::all());
  EXPECT_EQ(CharSet::of({{0xD7FF, 0xE000}}).ranges(), (std::vector<CharRange>{{0xD7FF, 0xD7FF}, {0xE000, 0xE000}}));
}

TEST(UnicodeProperty, CategoriesEqualTheTables) {
  const std::vector<std::pair<const char*, std::vector<Category>>> cases = {
      {"Lu", {Category::kLu}},
      {"Uppercase_Letter", {Category::kLu}},
      {"gc=Nd", {Category::kNd}},
      {"General_Category=digit", {Category::kNd}},
      {"L", {Category::kLu, Category::kLl, Category::kLt, Category::kLm, Category::kLo}},
      {"LC", {Category::kLu, Category::kLl, Category::kLt}},
      {"Mark", {Category::kMn, Category::kMc, Category::kMe}},
      {"Combining_Mark", {Category::kMn, Category::kMc, Category::kMe}},
      {"Z", {Category::kZs, Category::kZl, Category::kZp}},
      {"Cn", {Category::kCn}},
  };
  for (const auto& [name, categories] : cases) {
    const CharSet* const set = unicode_property(name);
    ASSERT_NE(set, nullptr) << name;
    for (uint32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const bool in = std::find(categories.begin(), categories.end(), category(c)) != categories.end();
      ASSERT_EQ(set->contains(c), in) << name << " " << c;
    }
  }
}

TEST(UnicodeProperty, CategoriesCoverEveryCharacterOnce) {
  CharSet all;
  for (const char* name : {"L", "M", "N", "P", "S", "Z", "C"}) {
    const CharSet* const set = unicode_property(name);
    ASSERT_NE(set, nullptr);
    EXPECT_TRUE(all.common(*set).empty()) << name;
    all = all.united(*set);
  }
  EXPECT_EQ(all, CharSet::all());
  EXPECT_EQ(*unicode_property("Assigned"), unicode_property("Cn")->others());
  EXPECT_EQ(*unicode_property("Any"), CharSet::all());
  EXPECT_TRUE(unicode_property("Cs")->empty());
}

TEST(UnicodeProperty, ScriptsAreThoseOfUnicode16) {
  const CharSet* const latin = unicode_property("Script=Latin");
  ASSERT_NE(latin, nullptr);
  EXPECT_EQ(*latin, *unicode_property("sc=Latn"));
  for (const uint32_t c : {0x41u, 0x7Au, 0xE9u, 0x1E9Eu, 0xFF21u}) EXPECT_TRUE(latin->contains(c));
  for (const uint32_t c : {0x30u, 0xD7u, 0x3B1u, 0x430u}) EXPECT_FALSE(latin->contains(c));
  EXPECT_TRUE(unicode_property("sc=Han")->contains(0x4E00));
  EXPECT_TRUE(unicode_property("Script=Greek")->contains(0x3B1));
  EXPECT_TRUE(unicode_property("Script=Cyrillic")->contains(0x430));
  EXPECT_TRUE(unicode_property("Script=Common")->contains(0x30));
  EXPECT_TRUE(unicode_property("Script=Todhri")->contains(0x105C0));  // new in 16.0
  // Every assigned character has a script; what has none is Unknown: unassigned, private or surrogate.
  const CharSet unknown = unicode_property("Cn")->united(*unicode_property("Co"));
  EXPECT_EQ(*unicode_property("Script=Unknown"), unknown);
}

TEST(UnicodeProperty, NamesAreTakenByTheLetter) {
  for (const char* name : {"", "l", "letter", "Latin", "Script=latin", "gc=", "gc=Lux", "Script=", "Alphabetic", "IsL",
                           "Script_Extensions=Latin", "sc=Nope", "gc=Any"}) {
    EXPECT_EQ(unicode_property(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace deepinfer::grammar
