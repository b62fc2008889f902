#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// Query path: low = RMSNorm(wq_a x); q = rope(wq_b low). The FP8 form of `low` also feeds the indexer.
/// Shapes   x width dim; low [n_rows, Rq]; low_quantized width Rq; q [n_rows, n_heads, head_dim]
/// Types    every arrow ends in bf16 (linear, norm, linear, rotation)
/// Source   spec 4.1 (no norm after wq_b)
struct QueryArgs {
  Rows rows;
  QuantizedRows x;
  Fp8Matrix wq_a;
  const Bf16* q_norm = nullptr;
  float rms_eps = 0;
  Fp8Matrix wq_b;
  int32_t n_heads = 0;
  int32_t head_dim = 0;
  Rope rope;
  Bf16* low = nullptr;
  QuantizedRows low_quantized;
  Bf16* q = nullptr;
};

}  // namespace deepinfer::ops
