#include "protocol/special_tokens.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/tiny_tokenizer.h"

namespace deepinfer::protocol {
namespace {

/// All special tokens from id 256 on, in order, but for `missing`.
TinyTokenizer tiny_with_specials(std::string_view missing = "") {
  TinyTokenizer tiny;
  for (size_t i = 0; i < kNumSpecials; ++i) {
    const std::string text(spelling(static_cast<Special>(i)));
    if (text != missing) tiny.added.push_back({text, i < 6});
  }
  return tiny;
}

TEST(SpecialTokens, AreFoundBySpelling) {
  const auto tokenizer = Tokenizer::from_json(tiny_with_specials().json());
  ASSERT_TRUE(tokenizer.ok());
  const auto tokens = SpecialTokens::of(*tokenizer);
  ASSERT_TRUE(tokens.ok());
  for (size_t i = 0; i < kNumSpecials; ++i) {
    const auto special = static_cast<Special>(i);
    EXPECT_EQ(tokens->id(special), 256 + static_cast<int32_t>(i));
    EXPECT_EQ(tokens->find(256 + static_cast<int32_t>(i)), special);
  }
  EXPECT_EQ(tokens->find(255), std::nullopt);
  EXPECT_EQ(tokens->find(-1), std::nullopt);
}

TEST(SpecialTokens, AreNamedWhenMissing) {
  for (size_t i = 0; i < kNumSpecials; ++i) {
    const auto special = static_cast<Special>(i);
    const auto tokenizer = Tokenizer::from_json(tiny_with_specials(spelling(special)).json());
    ASSERT_TRUE(tokenizer.ok());
    const auto tokens = SpecialTokens::of(*tokenizer);
    ASSERT_EQ(tokens.ok(), is_grounding(special)) << spelling(special);
    if (tokens) {
      EXPECT_EQ(tokens->id(special), std::nullopt);
    } else {
      EXPECT_EQ(tokens.error().code, Code::kBadModelFile);
      EXPECT_NE(tokens.error().message.find(spelling(special)), std::string::npos);
    }
  }
}

TEST(SpecialTokens, MustBeAddedTokens) {
  TinyTokenizer tiny = tiny_with_specials("<think>");
  tiny.extra_vocabulary = R"(,"<think>":)" + std::to_string(256 + tiny.added.size());
  const auto tokenizer = Tokenizer::from_json(tiny.json());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_FALSE(SpecialTokens::of(*tokenizer).ok());
}

TEST(SpecialTokens, KnowTheOtherSpellingOfTheImage) {
  TinyTokenizer tiny = tiny_with_specials("<｜image｜>");
  tiny.added.push_back({"<｜deepseek_image｜>", false});
  const auto tokenizer = Tokenizer::from_json(tiny.json());
  ASSERT_TRUE(tokenizer.ok());
  const auto tokens = SpecialTokens::of(*tokenizer);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->id(Special::kImage), 256 + static_cast<int32_t>(kNumSpecials) - 1);
}

TEST(SpecialTokens, FindTheImageByItsIdFirst) {
  TinyTokenizer tiny = tiny_with_specials();
  for (int id = 256 + static_cast<int>(kNumSpecials); id < 129264; ++id)
    tiny.extra_vocabulary += ",\"!" + std::to_string(id) + "\":" + std::to_string(id);
  const std::string json = replaced(tiny.json(), R"(],"normalizer")",
                                    R"(,{"id":129264,"content":"<｜image2｜>","single_word":false,"lstrip":false,)"
                                    R"("rstrip":false,"normalized":false,"special":false}],"normalizer")");
  const auto tokenizer = Tokenizer::from_json(json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto tokens = SpecialTokens::of(*tokenizer);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->id(Special::kImage), 129264);
}

}  // namespace
}  // namespace deepinfer::protocol
