#include "tokenizer/token_map.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_tokenizer.h"

namespace deepinfer {
namespace {

TEST(TokenMap, Has449ClassesForTheGoldenTokenizer) {
  const auto tokenizer = Tokenizer::open(golden_dir());
  ASSERT_TRUE(tokenizer.ok());
  const auto map = compressed_token_map(*tokenizer, 512);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->n_classes, 449);
  ASSERT_EQ(map->class_of.size(), 512U);
  int32_t n_seen = 0;
  for (const int32_t token_class : map->class_of) {
    ASSERT_LE(token_class, n_seen);  // numbered as first seen
    n_seen = std::max(n_seen, token_class + 1);
  }
  EXPECT_EQ(n_seen, 449);
}

TEST(TokenMap, JoinsTokensThatDifferInCaseBlanksAndWidth) {
  const TinyTokenizer file{.merges = {{"A", "b"}, {"Ġ", "ab"}, {"a", "b"}, {"Ġ", "Ġ"}, {"Ã", "ī"}, {"Ã", "©"}}};
  const auto tokenizer = Tokenizer::from_json(file.json());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto map = *compressed_token_map(*tokenizer, tokenizer->vocab_size());
  const auto class_of = [&](std::string_view token) {
    return map.class_of[static_cast<size_t>(*tokenizer->token_to_id(token))];
  };
  EXPECT_EQ(class_of("Ab"), class_of("ab"));
  EXPECT_EQ(class_of("Ab"), class_of("Ġab"));
  EXPECT_EQ(class_of("Ġ"), class_of("ĠĠ"));
  EXPECT_EQ(class_of("Ġ"), class_of("Ċ"));   // a line end alone is a blank alone
  EXPECT_EQ(class_of("Ãī"), class_of("e"));  // É
  EXPECT_EQ(class_of("Ã©"), class_of("e"));
  EXPECT_NE(class_of("Ã"), class_of("Â"));  // parts of characters go by their string
  EXPECT_NE(class_of("a"), class_of("b"));
}

TEST(TokenMap, FoldsText) {
  EXPECT_EQ(fold_token_text(" The"), "the");
  EXPECT_EQ(fold_token_text("\t\n"), " ");
  EXPECT_EQ(fold_token_text("a \r\n\tb"), "a b");
  EXPECT_EQ(fold_token_text("\u00A0x\u2003"), "x");
  EXPECT_EQ(fold_token_text("\u000Bx\u0085"), "x");
  EXPECT_EQ(fold_token_text("\u001Cx"), "\u001Cx");
  EXPECT_EQ(fold_token_text("\u3000"), " ");
  EXPECT_EQ(fold_token_text("\u0301"), "");
  EXPECT_EQ(fold_token_text("Ｅ\u0301\uE000"), "e ");
  EXPECT_EQ(fold_token_text(""), "");
}

TEST(TokenMap, RefusesASizeTheTokenizerDoesNotHave) {
  const auto tokenizer = Tokenizer::from_json(TinyTokenizer{}.json());
  ASSERT_TRUE(tokenizer.ok());
  for (const int32_t size : {-1, 0, 257}) EXPECT_FALSE(compressed_token_map(*tokenizer, size).ok());
  EXPECT_EQ(compressed_token_map(*tokenizer, 257).error().message,
            "vocab_size 257 is outside [1, 256], the tokenizer's size");
}

}  // namespace
}  // namespace deepinfer
