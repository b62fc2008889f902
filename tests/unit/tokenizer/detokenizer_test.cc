#include <gtest/gtest.h>

#include <random>

#include "deepinfer/tokenizer.h"
#include "tests/support/tiny_tokenizer.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

using Ids = std::vector<int32_t>;
using Pieces = std::vector<std::string>;

// Ids 0..255 are the bytes; 256 is special.
Tokenizer bytes_and_token() {
  auto tokenizer = Tokenizer::from_json(TinyTokenizer{.added = {{"<s>"}}}.json());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *std::move(tokenizer);
}

Ids ids_of(std::string_view bytes) {
  Ids ids;
  for (const char c : bytes) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

/// Pieces of the ids, and the last one.
Pieces pieces_of(Detokenizer detokenizer, const Ids& ids) {
  Pieces pieces;
  for (const int32_t id : ids) pieces.push_back(*detokenizer.push(id));
  pieces.push_back(detokenizer.finish());
  return pieces;
}

std::string joined(const Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

TEST(Detokenizer, ShowsWholeCharactersOnly) {
  const Tokenizer tokenizer = bytes_and_token();
  EXPECT_EQ(pieces_of(Detokenizer(tokenizer), ids_of("aé🌶")), (Pieces{"a", "", "é", "", "", "", "🌶", ""}));
  EXPECT_EQ(pieces_of(Detokenizer(tokenizer), {}), Pieces{""});
  EXPECT_EQ(pieces_of(Detokenizer(tokenizer), ids_of(" Paris"))[0], " ");
}

TEST(Detokenizer, ReplacesIllFormedBytesAsSoonAsTheyAreCertain) {
  const Tokenizer tokenizer = bytes_and_token();
  const Detokenizer fresh(tokenizer);
  EXPECT_EQ(pieces_of(fresh, ids_of("\x80"
                                    "a")),
            (Pieces{"\uFFFD", "a", ""}));
  EXPECT_EQ(pieces_of(fresh, ids_of("\xF0\x9F"
                                    "a")),
            (Pieces{"", "", "\uFFFDa", ""}));
  EXPECT_EQ(pieces_of(fresh, ids_of("\xED\xA0")), (Pieces{"", "\uFFFD\uFFFD", ""}));
  EXPECT_EQ(pieces_of(fresh, ids_of("\xE4\xE4\xB8")), (Pieces{"", "\uFFFD", "", "\uFFFD"}));
  EXPECT_EQ(pieces_of(fresh, {0xF0, 256}), (Pieces{"", "\uFFFD<s>", ""}));
  EXPECT_EQ(pieces_of(Detokenizer(tokenizer, true), {0xC3, 256, 0xA9}), (Pieces{"", "", "é", ""}));
}

TEST(Detokenizer, StreamsEveryCharacterSplitAtEveryByte) {
  const Tokenizer tokenizer = bytes_and_token();
  const std::string text = "삼겹살 ďábel 👩\u200D👩\u200D👧 𝔘 ﷽";
  const Ids ids = ids_of(text);
  const Pieces pieces = pieces_of(Detokenizer(tokenizer), ids);
  EXPECT_EQ(joined(pieces), text);
  for (const std::string& piece : pieces) EXPECT_EQ(find_ill_formed(piece), std::nullopt);
}

TEST(Detokenizer, EqualsOneShotDecodingForAnyIds) {
  auto opened = Tokenizer::open(golden_dir());
  ASSERT_TRUE(opened.ok());
  const Tokenizer& tokenizer = *opened;
  std::mt19937 rng(3);
  for (int round = 0; round < 10'000; ++round) {
    Ids ids;
    const uint32_t n_ids = round % 2 == 0 ? 512 : 260;  // the lower ids are nearly all single bytes
    for (size_t n = rng() % 16; n > 0; --n) ids.push_back(static_cast<int32_t>(rng() % n_ids));
    const bool skip_special = rng() % 2 == 0;
    const Pieces pieces = pieces_of(Detokenizer(tokenizer, skip_special), ids);
    ASSERT_EQ(joined(pieces), *tokenizer.decode(ids, skip_special));
    for (const std::string& piece : pieces) ASSERT_EQ(find_ill_formed(piece), std::nullopt);
  }
}

TEST(Detokenizer, RefusesAnIdAndKeepsItsState) {
  const Tokenizer tokenizer = bytes_and_token();
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(*detokenizer.push(0xC3), "");
  EXPECT_EQ(detokenizer.push(257).error().message, "token id 257 is outside [0, 257)");
  EXPECT_FALSE(detokenizer.prime(Ids{-1}).ok());
  EXPECT_EQ(*detokenizer.push(0xA9), "é");
}

TEST(Detokenizer, StartsAnewAfterFinish) {
  const Tokenizer tokenizer = bytes_and_token();
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(*detokenizer.push(0xE4), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(*detokenizer.push('a'), "a");
}

Pieces pieces_after(const Tokenizer& tokenizer, std::string_view prompt, const Ids& ids) {
  Detokenizer detokenizer(tokenizer);
  EXPECT_TRUE(detokenizer.prime(ids_of(prompt)).ok());
  return pieces_of(detokenizer, ids);
}

TEST(Detokenizer, CompletesACharacterThatThePromptBegan) {
  const Tokenizer tokenizer = bytes_and_token();
  const std::string pepper = "🌶";  // four bytes
  EXPECT_EQ(pieces_after(tokenizer, "Hello " + pepper.substr(0, 2), ids_of(pepper.substr(2))),
            (Pieces{"", pepper, ""}));
  EXPECT_EQ(pieces_after(tokenizer, "Hello", ids_of(" x")), (Pieces{" ", "x", ""}));
}

TEST(Detokenizer, ShowsNothingOfThePrompt) {
  const Tokenizer tokenizer = bytes_and_token();
  EXPECT_EQ(pieces_after(tokenizer, "Hello \xF0\x9F", ids_of("a")), (Pieces{"a", ""}));
  EXPECT_EQ(pieces_after(tokenizer, "Hello \xF0\x9F", {}), Pieces{""});
  EXPECT_EQ(pieces_after(tokenizer, "\xF0\x9F", ids_of("\x8C")), (Pieces{"", "\uFFFD"}));  // holds a new byte
  EXPECT_EQ(pieces_after(tokenizer, "\xF0\x9F",
                         ids_of("\x8C"
                                "a")),
            (Pieces{"", "\uFFFDa", ""}));
  EXPECT_EQ(pieces_after(tokenizer, "\xE4\xB8\xAD\x80", ids_of("\x80")), (Pieces{"\uFFFD", ""}));
}

}  // namespace
}  // namespace deepinfer
