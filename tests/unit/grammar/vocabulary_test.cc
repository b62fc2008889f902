#include "grammar/vocabulary.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "text/json.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

Result<std::shared_ptr<const Vocabulary>> build(const std::vector<std::string>& tokens, std::vector<int32_t> ends,
                                                int32_t n_head) {
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return Vocabulary::build(views, ends, n_head);
}

bool has_bit(std::span<const MaskWord> row, int32_t bit) {
  return (row[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1) != 0;
}

std::vector<std::string> random_tokens(uint64_t seed, size_t n) {
  static const std::vector<std::string> kPieces = {
      "a",    "b",        "\"", "\\\"", "\\", "\\n", "\\u00",   "41",   "\\ud83d", "\\ude00", "\xC3", "\xA9", "é", "😀",
      "\x98", "\xF0\x9F", "\n", "1",    "22", "d",   "\\u0041", "\xED", "\xA0",    "\xC0",    "x",    ",",    ":"};
  std::mt19937_64 random(seed);
  std::vector<std::string> tokens;
  for (size_t i = 0; i < n; ++i) {
    std::string token;
    for (uint64_t k = random() % 5; k > 0; --k) token += kPieces[random() % kPieces.size()];
    tokens.push_back(token);
  }
  return tokens;
}

TEST(Vocabulary, TrieHoldsEveryTokenOnceAndChainsEqualOnes) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto tokens = random_tokens(seed, 300);
    const int32_t n_head = seed % 2 == 0 ? 250 : 350;
    const auto vocabulary = *build(tokens, {7}, n_head);
    std::map<std::string, std::vector<int32_t>> expected;
    for (int32_t i = 0; i < std::min(n_head, 300); ++i)
      if (i != 7 && !tokens[static_cast<size_t>(i)].empty()) expected[tokens[static_cast<size_t>(i)]].push_back(i);
    std::map<std::string, std::vector<int32_t>> found;
    const auto nodes = vocabulary->nodes();
    std::string path;
    for (uint32_t i = 1; i < nodes.size(); ++i) {
      path.resize(nodes[i].depth - 1);
      path += static_cast<char>(nodes[i].byte);
      ASSERT_GT(nodes[i].next, i);
      ASSERT_LE(nodes[i].next, nodes.size());
      for (int32_t token = nodes[i].token; token >= 0; token = vocabulary->same_bytes(token))
        found[path].push_back(token);
    }
    EXPECT_EQ(found, expected);
    // Children lie where they are said to lie.
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      int last = -1;
      size_t n = 0;
      const TrieFan* fan = vocabulary->fan(i);
      for (uint32_t child = i + 1; child < nodes[i].next; child = nodes[child].next, ++n) {
        ASSERT_EQ(nodes[child].depth, nodes[i].depth + 1);
        ASSERT_GT(static_cast<int>(nodes[child].byte), last);
        last = static_cast<int>(nodes[child].byte);
        if (fan != nullptr) {
          ASSERT_EQ(fan->child(static_cast<uint8_t>(last)), child);
        }
        if (i == 0) {
          ASSERT_EQ(vocabulary->first_node(static_cast<uint8_t>(last)), static_cast<int32_t>(child));
        }
      }
    }
  }
}

TEST(Vocabulary, ReadsStringsAsTheJsonParserDoes) {
  // A text is well inside a string if some ending makes it one; the parser of src/text is the judge.
  const auto tokens = random_tokens(77, 4000);
  const auto is_string = [](const std::string& inner) { return json::parse("\"" + inner + "\"").ok(); };
  static const std::vector<std::string> kEndings = {
      "",         "n",          "\\ude00",   "ude00",    "de00",         "e00",         "00",
      "0",        "\x80",       "\xA9",      "\x98\x80", "\x9F\x98\x80", "\xA0\x80",    "\x90\x80\x80",
      "0041",     "041",        "41",        "1",        "0000",         "d83d\\ude00", "u0041",
      "\x80\x80", "83d\\ude00", "3d\\ude00", "d\\ude00", "800\\ude00",   "00\\ude00",   "0\\ude00"};
  int32_t n_inside = 0, n_closed = 0;
  for (const std::string& token : tokens) {
    StringScan scan;
    std::string taken;
    for (const char c : token) {
      if (!scan.step(static_cast<uint8_t>(c)) || scan.closed()) break;
      taken += c;
    }
    if (scan.closed()) {
      ASSERT_TRUE(is_string(taken)) << token;
      auto value = json::parse("\"" + taken + "\"");
      int32_t n_chars = 0;
      for (const char c : value->text) n_chars += (c & 0xC0) != 0x80;
      ASSERT_EQ(scan.n_chars(), n_chars) << token;
      ++n_closed;
      continue;
    }
    bool expected = false;
    for (const std::string& ending : kEndings) expected |= is_string(token + ending);
    ASSERT_EQ(!scan.dead(), expected) << token;
    n_inside += expected;
  }
  EXPECT_GT(n_inside, 300);
  EXPECT_GT(n_closed, 150);
}

TEST(Vocabulary, StringMasksCountCharacters) {
  const std::vector<std::string> tokens = {"a",   "ab", "é",    "éa\xC3", "\\n", "a\\u00", "\\ud83d",
                                           "a\"", "\n", "\xA9", "",       "abc", "\\q",    "\\ud83d\\ude00x"};
  const auto vocabulary = *build(tokens, {}, 14);
  const std::vector<int32_t> n_chars = {1, 2, 1, 3, 1, 2, 1, -1, -1, -1, -1, 3, -1, 2};
  EXPECT_EQ(vocabulary->string_chars_max(), 3);
  for (int32_t n = 0; n < 6; ++n)
    for (int32_t i = 0; i < 14; ++i) {
      const int32_t needed = n_chars[static_cast<size_t>(i)];
      EXPECT_EQ(has_bit(vocabulary->string_mask(n), i), needed >= 0 && needed <= n)
          << n << " " << tokens[static_cast<size_t>(i)];
    }
}

TEST(Vocabulary, RowsForFreeTextAndDigits) {
  const auto vocabulary = *build({"1", "", "23", "a1", "x", "007"}, {4, 9}, 10);
  for (int32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(has_bit(vocabulary->free_row(), i), i < 6 && i != 4) << i;
    EXPECT_EQ(has_bit(vocabulary->digit_row(), i), i == 0 || i == 2 || i == 5) << i;
  }
  EXPECT_EQ(vocabulary->n_digit_tokens(), 3);
  EXPECT_TRUE(vocabulary->bytes(4).empty());
  EXPECT_TRUE(vocabulary->bytes(-1).empty());
  EXPECT_TRUE(vocabulary->bytes(6).empty());
  EXPECT_EQ(vocabulary->bytes(3), "a1");
}

TEST(Vocabulary, HeadSmallerOrLargerThanTheTokens) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.push_back("t" + std::to_string(i));
  const auto small = *build(tokens, {3}, 96);
  EXPECT_EQ(small->n_words(), 2);
  EXPECT_TRUE(small->bytes(96).empty());
  const auto large = *build(tokens, {3}, 128);
  EXPECT_EQ(large->bytes(99), "t99");
  EXPECT_FALSE(has_bit(large->free_row(), 100));
}

TEST(Vocabulary, RefusesWhatCannotBe) {
  EXPECT_FALSE(build({"", ""}, {}, 2).ok());
  EXPECT_FALSE(build({"a"}, {1}, 1).ok());
  EXPECT_FALSE(build({"a"}, {-1}, 1).ok());
  EXPECT_FALSE(build({"a"}, {}, 0).ok());
  EXPECT_TRUE(build({"a", std::string(5000, 'x')}, {}, 2).ok());  // the long one is never allowed
}

TEST(Vocabulary, KnowsTextAndTheTokensWithAByte) {
  const std::vector<std::string_view> tokens = {"a<", "", "\xC3", "\xA9", "<<b>", "\xC3(", "x"};
  const auto made = Vocabulary::build(tokens, {}, 7);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->text_row()[0], MaskWord{0b1010101});
  const auto with = (*made)->tokens_with('<');
  ASSERT_TRUE(with.has_value());
  EXPECT_EQ(std::vector<int32_t>(with->begin(), with->end()), (std::vector<int32_t>{0, 4}));
  EXPECT_TRUE((*made)->tokens_with('|')->empty());
  EXPECT_FALSE((*made)->tokens_with('a').has_value());
}

}  // namespace
}  // namespace deepinfer::grammar
