#include "model/engram_hash.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace deepinfer {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json json = Json::parse(std::ifstream(DI_TESTS_DIR "/unit/model/data/engram_vectors.json"));
  return json;
}

ModelConfig released() {
  ModelConfig config;
  config.vocab_size = 129280;
  config.engram_layer_ids = {1, 14};
  config.engram_num_embeddings = {384006168, 384016682};
  config.engram_max_ngram_size = 4;
  config.engram_vocab_size = 16000000;
  config.engram_n_heads = 8;
  config.engram_head_dim = 256;
  config.engram_pad_token_id = 2;
  config.engram_compressed_vocab_size = 99092;
  return config;
}

ModelConfig tiny() {
  ModelConfig config = released();
  config.vocab_size = 512;
  config.engram_layer_ids = {1, 4};
  config.engram_num_embeddings = {2056, 2208};
  config.engram_max_ngram_size = 3;
  config.engram_vocab_size = 500;
  config.engram_n_heads = 2;
  config.engram_compressed_vocab_size = 512;
  return config;
}

/// A map of the right class count under which the vectors' compressed ids are raw ids.
std::vector<int32_t> identity_map(const ModelConfig& config) {
  std::vector<int32_t> map(static_cast<size_t>(config.vocab_size));
  const auto n_classes = static_cast<int32_t>(config.engram_compressed_vocab_size);
  for (int32_t i = 0; i < config.vocab_size; ++i) map[static_cast<size_t>(i)] = std::min(i, n_classes - 1);
  return map;
}

void expect_rows(const ModelConfig& config, const std::vector<int32_t>& tokens, int32_t engram, const Json& expected) {
  const Result<EngramHasher> hasher = EngramHasher::create(config, identity_map(config));
  ASSERT_TRUE(hasher.ok()) << hasher.error().message;
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::vector<int64_t> rows(static_cast<size_t>(hasher->n_columns()));
    hasher->rows(engram, tokens, static_cast<int64_t>(t), rows.data());
    EXPECT_EQ(rows, expected[t].get<std::vector<int64_t>>()) << "position " << t;
  }
}

TEST(EngramHash, MultipliersOfTheRelease) {
  for (const int32_t layer : {1, 14}) {
    EXPECT_EQ(engram_multipliers(layer, 99092, 4),
              vectors()["multipliers"][std::to_string(layer)].get<std::vector<int64_t>>());
  }
}

TEST(EngramHash, PrimesOfTheReleaseSumToTheTableSizes) {
  const std::vector<std::vector<int64_t>> primes = engram_primes(released());
  for (size_t i = 0; i < 2; ++i) {
    const std::string layer = i == 0 ? "1" : "14";
    std::vector<int64_t> expected;
    for (const Json& size : vectors()["primes"][layer]) {
      for (const Json& prime : size) expected.push_back(prime.get<int64_t>());
    }
    EXPECT_EQ(primes[i], expected);
    EXPECT_EQ(std::accumulate(expected.begin(), expected.end(), int64_t{0}),
              vectors()["table_rows"][layer].get<int64_t>());
  }
}

TEST(EngramHash, RowsOfTheRelease) {
  const Json& hash = vectors()["hash"];
  const auto tokens = hash["compressed_ids"].get<std::vector<int32_t>>();
  expect_rows(released(), tokens, 0, hash["row_ids"]["1"]);
  expect_rows(released(), tokens, 1, hash["row_ids"]["14"]);
}

TEST(EngramHash, ADeadTokenEndsEveryLookBack) {
  const Json& hash = vectors()["hash_dead"];
  expect_rows(released(), hash["compressed_ids_with_dead_-1"].get<std::vector<int32_t>>(), 0, hash["row_ids_layer1"]);
}

TEST(EngramHash, TinyConfig) {
  const Json& t = vectors()["tiny"];
  for (const int32_t layer : {1, 4}) {
    EXPECT_EQ(engram_multipliers(layer, 512, 3), t["multipliers"][std::to_string(layer)].get<std::vector<int64_t>>());
  }
  const auto tokens = t["example"]["ids"].get<std::vector<int32_t>>();
  expect_rows(tiny(), tokens, 0, t["example"]["row_ids"]["1"]);
  expect_rows(tiny(), tokens, 1, t["example"]["row_ids"]["4"]);
}

TEST(EngramHash, RefusesATokenizerWithAnotherClassCount) {
  ModelConfig config = tiny();
  std::vector<int32_t> map = identity_map(config);
  map.back() = 0;
  const Result<EngramHasher> hasher = EngramHasher::create(config, map);
  ASSERT_FALSE(hasher.ok());
  EXPECT_EQ(hasher.error().code, Code::kBadModelFile);
  EXPECT_NE(hasher.error().message.find("511"), std::string::npos) << hasher.error().message;
  EXPECT_NE(hasher.error().message.find("512"), std::string::npos) << hasher.error().message;
}

TEST(EngramHash, RefusesATableOfAnotherSize) {
  ModelConfig config = tiny();
  config.engram_num_embeddings[1] = 2207;
  const Result<EngramHasher> hasher = EngramHasher::create(config, identity_map(config));
  ASSERT_FALSE(hasher.ok());
  EXPECT_NE(hasher.error().message.find("engram_num_embeddings[1] is 2207"), std::string::npos)
      << hasher.error().message;
}

}  // namespace
}  // namespace deepinfer
