// Walks of the token trie find the tokens that stay inside, each with the characters that must still come, as asking for every
// token does.
#include "grammar/kind_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/language.h"
#include "grammar/regex.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {
namespace {

/// Texts of characters that patterns tell apart, many with the same beginning; cut ones, what is no text, quotes.
std::vector<std::string> make_tokens() {
  const std::vector<std::string> pieces = {"a",      "b",      "g",      "z",      "A",      "7",      " ",
                                           ".",      "@",      "\u00E9", "\u00A0", "\u0416", "\u3000", "\u3001",
                                           "\u2003", "\u2014", "\u4E2D", "\u5B57", "\uFEFF", "\uFF21", "\U0001F600"};
  std::mt19937 random(5);
  std::vector<std::string> tokens;
  const auto add = [&](size_t begin, size_t first, size_t other, bool is_mixed) {
    std::string token = pieces[begin];
    const size_t n = random() % 12;
    for (size_t k = 0; k < n; ++k)
      token += pieces[is_mixed ? random() % pieces.size() : random() % 3 == 0 ? other : first];
    if (token.size() > 1 && random() % 10 == 0) token.pop_back();
    tokens.push_back(token);
  };
  // Below each character and each second one many tokens of few characters.
  for (size_t begin = 0; begin < pieces.size(); ++begin)
    for (size_t first = 0; first < pieces.size(); ++first)
      for (int i = 0; i < 20; ++i) add(begin, first, (first + begin) % pieces.size(), false);
  for (int i = 0; i < 2000; ++i) add(random() % pieces.size(), 0, 0, true);
  // Not in front of all of them is something that no string holds raw.
  for (int i = 0; i < 300; ++i) {
    const size_t n = random() % 4;
    tokens.push_back("A" + tokens[random() % tokens.size()] + (n == 0 ? "\"" : n == 1 ? "\\" : n == 2 ? "\n" : "\xBF"));
    tokens.push_back(tokens[random() % tokens.size()]);
  }
  return tokens;
}

struct Kinds : Machine {
  explicit Kinds(Languages& all) : languages(all) {}
  [[nodiscard]] State start() const override { return kDead; }
  State step(State, uint8_t) override { return kDead; }
  bool complete(State) override { return false; }
  int64_t distance(State) override { return -1; }
  uint32_t kind_step(uint32_t kind, uint8_t byte) override { return languages.next(kind, byte); }
  int32_t kind_chars(uint32_t kind) override { return languages.chars_at_least(kind); }
  [[nodiscard]] int64_t n_bytes() const override { return 0; }
  Languages& languages;
};

class KindWalkTest : public testing::Test {
 protected:
  KindWalkTest() {
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    vocabulary = *Vocabulary::build(views, {}, static_cast<int32_t>(views.size()));
  }

  /// -1: not inside, or cut by a byte that is not raw; -2: not known how many.
  int32_t n_more(Lang kind, const std::string& token) {
    for (const char c : token) {
      const auto byte = static_cast<uint8_t>(c);
      kind = byte < 0x20 || c == '"' || c == '\\' ? kNothing : languages.next(kind, byte);
      if (kind == kNothing) return -1;
    }
    const int32_t n_chars = languages.chars_at_least(kind);
    return n_chars >= 0 && n_chars <= KindWalk::kMoreMax ? n_chars : -2;
  }

  void check(Lang kind, const std::string& name) {
    SCOPED_TRACE(name);
    const TokenTrie& trie = vocabulary->token_trie();
    Kinds kinds(languages);
    for (const bool count : {false, true}) {
      KindWalk walk(trie, kinds, count);
      walk.walk(kind);
      std::vector<int32_t> found(tokens.size(), -1);
      uint32_t end = 0;
      for (const TokenRun& run : walk.runs()) {
        ASSERT_GE(run.first, end);
        end = run.end;
        for (uint32_t i = run.first; i < run.end; ++i) found[static_cast<size_t>(trie.tokens()[i])] = run.n_more;
      }
      bool is_counted = true;
      for (size_t i = 0; i < tokens.size(); ++i) {
        int32_t expected = n_more(kind, tokens[i]);
        is_counted = is_counted && expected != -2;
        if (expected != -1 && (!count || expected == -2)) expected = 0;
        ASSERT_EQ(found[i], expected) << "token " << tokens[i] << " count " << count;
        if (found[i] >= 0) {
          const auto n_chars = std::ranges::count_if(tokens[i], [](char c) { return (c & 0xC0) != 0x80; });
          EXPECT_GE(walk.n_chars_max(), n_chars + found[i]);
        }
      }
      if (count) EXPECT_EQ(walk.is_counted(), is_counted);
      std::set<int32_t> rows = {-1};
      for (const TokenRun& run : walk.runs()) rows.insert(run.n_more);
      for (const int32_t row : rows) {
        std::vector<MaskWord> bits(static_cast<size_t>(vocabulary->n_words()));
        set_tokens(trie, walk.runs(), row, bits);
        for (size_t i = 0; i < tokens.size(); ++i)
          ASSERT_EQ((bits[i / 64] >> (i % 64) & 1) != 0, found[i] >= 0 && (row < 0 || found[i] == row)) << tokens[i];
      }
    }
  }

  const std::vector<std::string> tokens = make_tokens();
  std::shared_ptr<const Vocabulary> vocabulary;
  Languages languages{int64_t{256} << 20};
};

TEST_F(KindWalkTest, FindsWhatEveryTokenSays) {
  for (const char* pattern : {"^[ab]*$",
                              "^[a-z]*$",
                              "^[a-fA-F7]+$",
                              "^\\S*$",
                              "^\\S+@\\S+$",
                              "^(?:\\S+\\s+){0,4}\\S+$",
                              "^\\s*$",
                              "^[^\\s]*7$",
                              "^[^\u3000]*$",
                              "^[^\u3001]*$",
                              "^[^\u2003]*$",
                              "^[^\u2014]*$",
                              "^[^\uFEFF]*$",
                              "^[^\uFF21]*$",
                              "^[^\u00A0]*$",
                              "^[^\u00E9]*$",
                              "^[^\u4E2D]*$",
                              "^[^\u5B57]*$",
                              "^[^\U0001F600]*$",
                              "^[^\u0416]*$",
                              "^[\u3000-\u9FFF]*$",
                              "^[\u0080-\U0010FFFF]*$",
                              "^[\u4E2D\u5B57]{3,}$",
                              "^[^@]*\\.gaz$",
                              "^[^@]{4}[^.]*a$",
                              "^(?:[^z]{2})*$",
                              "^[^@.]{1,9}(?:\\.[^@.]{1,9}){1,3}$",
                              "^[^.]{0,6}[a-z]{0,3}$",
                              "^\\S{1,4}\\s\\S{3}$",
                              "^[^\u4E2D]{1,5}$",
                              "^[^\u3000]{2,7}z?$",
                              "^(?:[^z]{2})*zz?$",
                              "^[^\"]*\\n$",
                              "g",
                              "^.*@{3}$"})
    check(*parse_regex(languages, pattern, Match::kSearch), pattern);
  check(kAnyText, "any text");
  check(kEmptyText, "no character");
}

TEST_F(KindWalkTest, FindsAllWhereThereAreMoreStatesThanRows) {
  std::vector<Lang> parts;
  std::set<std::string> begins;
  for (const std::string& token : tokens) {
    if (token.find_first_of("\"\\\n") != std::string::npos) continue;
    for (size_t n = 1; n <= token.size(); ++n) begins.insert(token.substr(0, n));
    parts.push_back(languages.text(token + std::to_string(parts.size())));
  }
  ASSERT_GT(begins.size(), 12'000);
  check(languages.any_of(parts), "many texts");
}

}  // namespace
}  // namespace deepinfer::grammar
