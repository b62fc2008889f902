// The cost formulas against the numbers that the model specification states for the released model.
#include "bench/model_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace deepinfer::bench {
namespace {

ModelConfig released_config() {
  std::ifstream file(std::string(DI_TESTS_DIR) + "/unit/checkpoint/data/released_config.json");
  std::stringstream text;
  text << file.rdbuf();
  auto config = parse_model_config(text.str());
  EXPECT_TRUE(config.ok());
  return *std::move(config);
}

// Elements a token passes through: 40 layers, two Engram projections, eight indexers, compressors, head.
constexpr double kActiveElements = 40.0 * 377'290'752 + 2.0 * 157'286'400 + 8.0 * 5'406'720 + 18'612'224 + 661'913'600;

double decode_flops(double n_tokens) {
  const double keys =
      40 * std::min(n_tokens, 128.0) + 18 * std::min(512.0, n_tokens / 2) + 20 * std::min(512.0, n_tokens);
  const double scores = 2.5 * n_tokens + 4 * std::min(n_tokens, 16384.0);
  return 2 * kActiveElements + 131'072 * keys + 8192 * scores;
}

TEST(ModelCost, DecodeFlopsAreThoseOfTheSpecification) {
  const ModelConfig config = released_config();
  for (const int64_t n_tokens : {2, 100, 1024, 131'072}) {
    EXPECT_DOUBLE_EQ(decode_cost(config, n_tokens - 1, 1).flops, decode_flops(static_cast<double>(n_tokens)));
  }
}

TEST(ModelCost, DecodeBytesAreThoseOfTheSpecification) {
  const ModelConfig config = released_config();
  const double weights = decode_cost(config, 1, 1).bytes;
  EXPECT_NEAR(weights, 13.0e9, 0.05e9);
  // Window, selected entries and index keys at 128K tokens: 2.70 + 5.6 + 26.7 MB.
  EXPECT_NEAR(decode_cost(config, 131'071, 1).bytes - weights, 35.0e6, 0.2e6);
}

TEST(ModelCost, PrefillNeedsTheFlopsOfItsTokensInAnyChunks) {
  const ModelConfig config = released_config();
  const double head = 2.0 * 661'913'600;
  const double one_by_one = decode_cost(config, 0, 300).flops - 299 * head;
  EXPECT_NEAR(prefill_cost(config, {300, 1, 0}).flops / one_by_one, 1, 1e-12);
  EXPECT_NEAR(prefill_cost(config, {300, 128, 0}).flops / one_by_one, 1, 1e-12);
}

TEST(ModelCost, ChunksShareWeightsAndTailsLeaveLayersOut) {
  const ModelConfig config = released_config();
  EXPECT_LT(prefill_cost(config, {300, 300, 0}).bytes, 0.5 * prefill_cost(config, {300, 10, 0}).bytes);
  EXPECT_EQ(prefill_cost(config, {300, 128, 300}).flops, prefill_cost(config, {300, 128, 0}).flops);
  EXPECT_LT(prefill_cost(config, {300, 128, 140}).flops, 0.85 * prefill_cost(config, {300, 128, 0}).flops);
}

}  // namespace
}  // namespace deepinfer::bench
