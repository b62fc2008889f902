#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// N-gram memory: looks up one table row per hash column, projects them to a key per stream and one value, and adds
/// gate_s * value to each stream (spec 8.5). A dead token (image span) has gate 0: its streams stay as they are.
/// Shapes   row_id [n_rows, n_columns]; table codes [table_rows, head_dim], scales [table_rows, head_dim/32]; wkv
///          [(S+1)*dim, n_columns*head_dim]; q_weight, k_weight [S, dim]; streams [n_rows, S, dim]
/// Types    table E4M3*E8M0 -> bf16 exact -> FP8 activations; wkv -> bf16; gate and update fp32; streams bf16, in place
/// Source   spec 8.5; 64-bit row arithmetic (tables exceed 2^31 bytes)
struct EngramArgs {
  int32_t n_rows = 0;
  int32_t n_columns = 0;
  int32_t head_dim = 0;
  const int64_t* row_id = nullptr;
  const uint8_t* dead = nullptr;  // [n_rows] 1 = image token; null: none is
  const uint8_t* table_codes = nullptr;
  const uint8_t* table_scales = nullptr;
  Fp8Matrix wkv;
  const Bf16* q_weight = nullptr;
  const Bf16* k_weight = nullptr;
  float rms_eps = 0;
  int32_t n_streams = 0;
  int64_t dim = 0;
  Bf16* streams = nullptr;
};

}  // namespace deepinfer::ops
