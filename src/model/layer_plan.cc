#include "model/layer_plan.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

namespace {

/// Position of the largest element <= layer, -1 if none. `ids` ascends.
int32_t source_of(const std::vector<int32_t>& ids, int32_t layer) {
  return static_cast<int32_t>(std::upper_bound(ids.begin(), ids.end(), layer) - ids.begin()) - 1;
}

int32_t position_of(const std::vector<int32_t>& ids, int32_t layer) {
  const auto it = std::find(ids.begin(), ids.end(), layer);
  return it == ids.end() ? -1 : static_cast<int32_t>(it - ids.begin());
}

}  // namespace

std::string_view attention_mode_name(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::kWindowOnly:
      return "window";
    case AttentionMode::kFull:
      return "full";
    case AttentionMode::kReuse:
      return "reuse";
    case AttentionMode::kReindex:
      return "reindex";
  }
  DI_CHECK(false);
}

std::vector<LayerPlan> make_layer_plan(const ModelConfig& config) {
  std::vector<LayerPlan> plan(static_cast<size_t>(config.n_layers));
  for (int32_t l = 0; l < config.n_layers; ++l) {
    LayerPlan& layer = plan[static_cast<size_t>(l)];
    layer.ratio = config.compress_ratios[static_cast<size_t>(l)];
    layer.engram = position_of(config.engram_layer_ids, l);
    if (layer.ratio == 0) continue;
    layer.kv_source = source_of(config.kv_source_layer_ids, l);
    const int32_t index_source = source_of(config.index_source_layer_ids, l);
    DI_CHECK(layer.kv_source >= 0 && index_source >= 0);
    const int32_t kv_layer = config.kv_source_layer_ids[static_cast<size_t>(layer.kv_source)];
    layer.index_source_layer = config.index_source_layer_ids[static_cast<size_t>(index_source)];
    if (kv_layer == l) {
      layer.mode = AttentionMode::kFull;
      layer.publishes_candidates = l == config.candidate_source_layer_id;
    } else if (layer.index_source_layer == l) {
      layer.mode = AttentionMode::kReindex;
      layer.uses_candidates = kv_layer == config.candidate_source_layer_id;
    } else {
      layer.mode = AttentionMode::kReuse;
    }
  }
  return plan;
}

int32_t last_kv_source_layer(const ModelConfig& config) {
  return config.kv_source_layer_ids.empty() ? config.n_layers - 1 : config.kv_source_layer_ids.back();
}

}  // namespace deepinfer
