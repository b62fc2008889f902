// The text model's weights as the operations want them, bound by name from a checkpoint. Views only: the checkpoint (or
// the backend's copy) owns the bytes and outlives this. Shapes were checked against the catalogue when it was opened.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "ops/backend.h"

namespace deepinfer {

struct MhcWeights {
  const float* fn = nullptr;
  const float* base = nullptr;
  const float* scale = nullptr;
};

struct CompressorWeights {
  ops::Bf16Matrix wkv;
  ops::Bf16Matrix wgate;  // values null at ratio 1
  const Bf16* norm = nullptr;
  ops::Bf16Matrix wk;
  const Bf16* k_norm = nullptr;
};

struct IndexerWeights {
  ops::Fp8Matrix wq_b;
  ops::Bf16Matrix weights_proj;
};

struct EngramWeights {
  const uint8_t* table_codes = nullptr;
  const uint8_t* table_scales = nullptr;
  ops::Fp8Matrix wkv;
  const Bf16* q_weight = nullptr;
  const Bf16* k_weight = nullptr;
};

struct LayerWeights {
  const Bf16* attn_norm = nullptr;
  const Bf16* ffn_norm = nullptr;
  MhcWeights hc_attn;
  MhcWeights hc_ffn;
  ops::Fp8Matrix wq_a;
  const Bf16* q_norm = nullptr;
  ops::Fp8Matrix wq_b;
  ops::Fp8Matrix wkv;
  const Bf16* kv_norm = nullptr;
  ops::Fp8Matrix wo_a;
  ops::Fp8Matrix wo_b;
  const float* attn_sink = nullptr;
  std::optional<CompressorWeights> compressor;  // Full layers
  std::optional<IndexerWeights> indexer;        // Full and Reindex layers
  std::optional<EngramWeights> engram;
  ops::Bf16Matrix gate;
  const float* gate_bias = nullptr;
  const float* gate_bias_image = nullptr;  // null without a vision tower
  std::vector<ops::RoutedExpert> experts;
  ops::SharedExpert shared;
};

struct ModelWeights {
  ops::Bf16Matrix embed;
  ops::Bf16Matrix head;
  const Bf16* norm = nullptr;
  std::vector<LayerWeights> layers;
};

/// Errors: kBadModelFile from the checkpoint, kOutOfCapacity from the backend.
Result<ModelWeights> bind_weights(const Checkpoint& checkpoint, ops::Backend& backend);

}  // namespace deepinfer
