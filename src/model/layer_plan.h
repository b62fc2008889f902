// What each layer does, derived once from the config (spec 2.1). Static: no weights, no state. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"

namespace deepinfer {

enum class AttentionMode : uint8_t {
  kWindowOnly,  // ratio 0: no compressed part
  kFull,        // own compressor, own index keys, own selection
  kReuse,       // reads the KV and the latest selection of its sources
  kReindex,     // own selection over its KV source's keys
};

std::string_view attention_mode_name(AttentionMode mode);

struct LayerPlan {
  AttentionMode mode = AttentionMode::kWindowOnly;
  int32_t ratio = 0;
  int32_t kv_source = -1;           // position in config.kv_source_layer_ids; -1 for window-only layers
  int32_t index_source_layer = -1;  // layer whose selection is used
  bool publishes_candidates = false;
  bool uses_candidates = false;
  int32_t engram = -1;  // position in config.engram_layer_ids; -1 without
};

/// One entry a layer. Precondition: a validated config.
std::vector<LayerPlan> make_layer_plan(const ModelConfig& config);

/// Layers 0..this one produce all global KV; later ones only read it, so a prompt needs them for its tail only.
/// The last layer when the model has no KV source.
int32_t last_kv_source_layer(const ModelConfig& config);

}  // namespace deepinfer
