#include "model/layer_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

ModelConfig released() {
  ModelConfig config;
  config.n_layers = 40;
  config.compress_ratios.assign(40, 2);
  for (size_t l = 0; l < 40; ++l) config.compress_ratios[l] = l < 2 ? 0 : l < 20 ? 2 : 1;
  config.kv_source_layer_ids = {2, 8, 14, 20};
  config.index_source_layer_ids = {2, 8, 14, 20, 24, 28, 32, 36};
  config.candidate_source_layer_id = 20;
  config.engram_layer_ids = {1, 14};
  return config;
}

TEST(LayerPlan, ReleasedModesAreThoseOfTheSpec) {
  const ModelConfig config = released();
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  int n_full = 0;
  int n_reindex = 0;
  int n_reuse = 0;
  for (const LayerPlan& layer : plan) {
    n_full += layer.mode == AttentionMode::kFull ? 1 : 0;
    n_reindex += layer.mode == AttentionMode::kReindex ? 1 : 0;
    n_reuse += layer.mode == AttentionMode::kReuse ? 1 : 0;
  }
  EXPECT_EQ(n_full, 4);
  EXPECT_EQ(n_reindex, 4);
  EXPECT_EQ(n_reuse, 30);
  EXPECT_EQ(plan[0].mode, AttentionMode::kWindowOnly);
  EXPECT_EQ(plan[13].kv_source, 1);
  EXPECT_EQ(plan[13].index_source_layer, 8);
  EXPECT_EQ(plan[27].kv_source, 3);
  EXPECT_EQ(plan[27].index_source_layer, 24);
  EXPECT_TRUE(plan[20].publishes_candidates);
  EXPECT_FALSE(plan[20].uses_candidates);
  EXPECT_TRUE(plan[24].uses_candidates);
  EXPECT_FALSE(plan[14].publishes_candidates || plan[14].uses_candidates);
  EXPECT_EQ(plan[1].engram, 0);
  EXPECT_EQ(plan[14].engram, 1);
  EXPECT_EQ(plan[2].engram, -1);
  EXPECT_EQ(last_kv_source_layer(config), 20);
}

TEST(LayerPlan, AReindexLayerOfAnotherSourceIgnoresCandidates) {
  ModelConfig config = released();
  config.index_source_layer_ids = {2, 5, 8, 14, 20, 24};
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  EXPECT_EQ(plan[5].mode, AttentionMode::kReindex);
  EXPECT_FALSE(plan[5].uses_candidates);
  config.candidate_source_layer_id = -1;
  for (const LayerPlan& layer : make_layer_plan(config)) {
    EXPECT_FALSE(layer.publishes_candidates || layer.uses_candidates);
  }
}

TEST(LayerPlan, AModelWithoutCompressedLayersHasNoLateLayers) {
  ModelConfig config;
  config.n_layers = 3;
  config.compress_ratios = {0, 0, 0};
  EXPECT_EQ(last_kv_source_layer(config), 2);
  for (const LayerPlan& layer : make_layer_plan(config)) EXPECT_EQ(layer.mode, AttentionMode::kWindowOnly);
}

}  // namespace
}  // namespace deepinfer
