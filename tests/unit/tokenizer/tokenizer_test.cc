#include "deepinfer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support/tiny_tokenizer.h"

namespace deepinfer {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer golden() {
  auto tokenizer = Tokenizer::open(golden_dir());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *std::move(tokenizer);
}

Tokenizer tiny(const TinyTokenizer& file) {
  auto tokenizer = Tokenizer::from_json(file.json());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *std::move(tokenizer);
}

// encode_cases.jsonl: ids of the golden tokenizer by `tokenizers` 0.23.3; special false: without the added tokens.
TEST(Tokenizer, AgreesWithTheReferenceOnTheGoldenVocabulary) {
  const Tokenizer tokenizer = golden();
  std::ifstream lines(DI_TESTS_DIR "/unit/tokenizer/encode_cases.jsonl");
  int n_cases = 0;
  for (std::string line; std::getline(lines, line); ++n_cases) {
    const auto record = nlohmann::json::parse(line);
    const std::string text = record["text"];
    const auto ids = tokenizer.encode(text, record["special"]);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, record["ids"].get<Ids>()) << line;
    EXPECT_EQ(*tokenizer.decode(*ids), text);
  }
  EXPECT_EQ(n_cases, 53);
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = golden();
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  EXPECT_EQ(tokenizer.token_to_id("<｜begin▁of▁sentence｜>"), 0);
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_TRUE(tokenizer.is_added(0));
  EXPECT_EQ(tokenizer.token_bytes(0), "<｜begin▁of▁sentence｜>");
  const auto the = tokenizer.token_to_id("Ġthe");
  ASSERT_TRUE(the);
  EXPECT_EQ(tokenizer.token_string(*the), "Ġthe");
  EXPECT_EQ(tokenizer.token_bytes(*the), " the");
  EXPECT_FALSE(tokenizer.is_added(*the));
  EXPECT_FALSE(tokenizer.contains(-1));
  EXPECT_FALSE(tokenizer.contains(512));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    EXPECT_EQ(tokenizer.token_to_id(tokenizer.token_string(id)), id);
}

TEST(Tokenizer, NamesTheByteThatIsNotUtf8) {
  const Tokenizer tokenizer = golden();
  for (const bool special : {true, false}) {
    const auto ids = tokenizer.encode("né\xE4\xB8", special);
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().code, Code::kInvalidArgument);
    EXPECT_EQ(ids.error().message, "text is not valid UTF-8 at byte 3");
  }
}

TEST(Tokenizer, NamesTheIdThatIsOutside) {
  const Tokenizer tokenizer = golden();
  for (const int32_t id : {-1, 512, INT32_MAX, INT32_MIN}) {
    const Ids ids = {5, id};
    const auto text = tokenizer.decode(ids);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().code, Code::kInvalidArgument);
    EXPECT_EQ(text.error().message, "token id " + std::to_string(id) + " is outside [0, 512)");
  }
}

TEST(Tokenizer, SkipsOnlySpecialTokensOnDecoding) {
  const Tokenizer tokenizer = tiny({.added = {{"<s>", true}, {"<think>", false}}});
  const Ids ids = *tokenizer.encode("a<s><think>b");
  EXPECT_EQ(ids, (Ids{97, 256, 257, 98}));
  EXPECT_EQ(*tokenizer.decode(ids), "a<s><think>b");
  EXPECT_EQ(*tokenizer.decode(ids, true), "a<think>b");
  const Ids split = {0xE4, 0xB8, 256, 0xAD};  // a character around a token
  EXPECT_EQ(*tokenizer.decode(split), "\uFFFD<s>\uFFFD");
  EXPECT_EQ(*tokenizer.decode(split, true), "中");
  EXPECT_EQ(*tokenizer.decode_bytes(split), "\xE4\xB8<s>\xAD");
}

TEST(Tokenizer, FindsNormalizedTokensOnlyInWhatOthersLeave) {
  const Tokenizer tokenizer = tiny({.added = {{"bc", true, false}, {"ab", false, true}}});
  EXPECT_EQ(*tokenizer.encode("abc"), (Ids{97, 256}));  // although "ab" begins earlier
  EXPECT_EQ(*tokenizer.encode("abbc"), (Ids{257, 256}));
  EXPECT_EQ(*tokenizer.encode("abbc", false), (Ids{97, 98, 98, 99}));
}

/// A vocabulary of the bytes a, b, c and random merges, also such as training would not give: placed before the merges
/// of their parts, or two ways to one token.
struct RandomMerges {
  TinyTokenizer file;
  std::vector<std::string> tokens = {"a", "b", "c"};

  explicit RandomMerges(std::mt19937& rng) {
    for (int i = 0; i < 25; ++i) {
      const std::string left = tokens[rng() % tokens.size()], right = tokens[rng() % tokens.size()];
      if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
      if (left.size() + right.size() > 12) continue;
      tokens.push_back(left + right);
      file.merges.insert(file.merges.begin() + static_cast<std::ptrdiff_t>(rng() % (file.merges.size() + 1)),
                         {left, right});
    }
  }

  /// Lowest rank, leftmost, over and over.
  [[nodiscard]] std::vector<std::string> merge_slowly(const std::string& piece) const {
    const auto index_of = [this](const std::string& token) {
      return static_cast<size_t>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
    };
    std::vector<size_t> rank_of(tokens.size() * tokens.size(), SIZE_MAX);
    for (size_t rank = 0; rank < file.merges.size(); ++rank)
      rank_of[index_of(file.merges[rank].first) * tokens.size() + index_of(file.merges[rank].second)] = rank;
    std::vector<size_t> parts;
    for (const char c : piece) parts.push_back(index_of(std::string(1, c)));
    while (true) {
      size_t best = 0, best_rank = SIZE_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const size_t rank = rank_of[parts[i] * tokens.size() + parts[i + 1]];
        if (rank >= best_rank) continue;
        best = i;
        best_rank = rank;
      }
      if (best_rank == SIZE_MAX) break;
      parts[best] = index_of(file.merges[best_rank].first + file.merges[best_rank].second);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<std::string> strings;
    for (const size_t part : parts) strings.push_back(tokens[part]);
    return strings;
  }
};

// Lengths cross the paths for one token, short pieces, one heap and several windows.
TEST(Tokenizer, MergesLikeTheSlowDefinition) {
  std::mt19937 rng(11);
  for (int round = 0; round < 80; ++round) {
    const RandomMerges merges(rng);
    const Tokenizer tokenizer = tiny(merges.file);
    for (const size_t n : {1U, 2U, 5U, 9U, 16U, 17U, 48U, 49U, 60U, 130U, 300U, 1024U, 1025U, 2200U}) {
      std::string piece;
      const size_t n_letters = 1 + rng() % 3;
      for (size_t i = 0; i < n; ++i) piece += "abc"[rng() % n_letters];
      std::vector<std::string> strings;
      const Ids ids = *tokenizer.encode(piece);
      for (const int32_t id : ids) strings.emplace_back(tokenizer.token_string(id));
      ASSERT_EQ(strings, merges.merge_slowly(piece)) << piece;
    }
  }
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode(text);
  EXPECT_TRUE(ids.ok());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(*tokenizer.decode(*ids), text);
  return took.count();
}

// A quadratic algorithm needs hours for these; the bound leaves room for sanitizers and busy machines.
TEST(Tokenizer, TakesHostileTextInNearlyLinearTime) {
  const Tokenizer tokenizer = golden();
  std::string cjk, almost_added;
  for (uint32_t i = 0; i < 100'000; ++i) cjk += i % 2 == 0 ? "深" : "度";
  for (int i = 0; i < 20'000; ++i) almost_added += "<｜place▁holder▁";
  for (const std::string& text : {std::string(300'000, 'a'), std::string(300'000, '_'), std::string(300'000, ' '),
                                  std::string(300'000, '\n'), std::string(300'000, '<'), cjk, almost_added})
    EXPECT_LT(seconds_to_encode(tokenizer, text), 20) << text.substr(0, 20);
}

TEST(Tokenizer, EncodesFromManyThreadsAlike) {
  const Tokenizer tokenizer = golden();
  const std::string text = "The capital of France is <｜User｜> 你好 1234567 " + std::string(200, 't');
  const Ids wanted = *tokenizer.encode(text);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) ASSERT_EQ(*tokenizer.encode(text), wanted);
    });
  }
}

}  // namespace
}  // namespace deepinfer
