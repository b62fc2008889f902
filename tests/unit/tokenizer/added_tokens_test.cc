#include "tokenizer/added_tokens.h"

#include <gtest/gtest.h>

#include <random>

namespace deepinfer {
namespace {

std::optional<AddedTokenMatch> find_slowly(const std::vector<AddedToken>& tokens, const std::string& text,
                                           size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    const AddedToken* longest = nullptr;
    for (const AddedToken& token : tokens) {
      if (text.compare(at, token.content.size(), token.content) != 0) continue;
      if (longest == nullptr || token.content.size() > longest->content.size()) longest = &token;
    }
    if (longest != nullptr) return AddedTokenMatch{at, at + longest->content.size(), longest->id};
  }
  return std::nullopt;
}

TEST(AddedTokens, FindsLeftmostThenLongest) {
  const AddedTokens added({{"<a>", 1}, {"<a>b", 2}, {"a>bc", 3}, {"<", 4}});
  const auto match = added.find("x<a>bc", 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 1U);
  EXPECT_EQ(match->end, 5U);
  EXPECT_EQ(match->id, 2);
  EXPECT_EQ(added.find("x<a>bc", 2)->id, 3);
  EXPECT_EQ(added.find("<a", 0)->id, 4);
  EXPECT_FALSE(added.find("a>b", 0));
  EXPECT_FALSE(added.find("", 0));
  EXPECT_FALSE(AddedTokens({}).find("<a>", 0));
}

TEST(AddedTokens, AgreesWithSlowSearch) {
  std::mt19937 rng(5);
  const auto random_string = [&rng](size_t n_max) {
    std::string text;
    for (size_t n = 1 + rng() % n_max; n > 0; --n) text += "ab\xFF"[rng() % 3];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<AddedToken> tokens;
    for (int i = 0; i < 6; ++i) {
      AddedToken token{random_string(5), i};
      bool known = false;
      for (const AddedToken& other : tokens) known |= other.content == token.content;
      if (!known) tokens.push_back(token);
    }
    const AddedTokens added(tokens);
    const std::string text = random_string(40);
    for (size_t from = 0; from <= text.size(); ++from) {
      const auto got = added.find(text, from);
      const auto wanted = find_slowly(tokens, text, from);
      ASSERT_EQ(got.has_value(), wanted.has_value());
      if (!got) break;
      ASSERT_EQ(got->begin, wanted->begin);
      ASSERT_EQ(got->id, wanted->id);
    }
  }
}

}  // namespace
}  // namespace deepinfer
