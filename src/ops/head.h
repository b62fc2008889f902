#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// Logits of chosen rows: h = bf16( sum_s carried[t, s] * streams[t, s, :] ); logits = fp32( head RMSNorm(h) ).
/// Shapes   row [n_out_rows] indices into streams and carried; streams [*, S, dim]; head [vocab, dim]; logits
///          [n_out_rows, vocab]
/// Types    h and its norm bf16; products of bf16 operands summed in fp32 or wider; logits fp32
/// Source   spec 10
struct HeadArgs {
  int32_t n_out_rows = 0;
  const int32_t* row = nullptr;
  int32_t n_streams = 0;
  int64_t dim = 0;
  const Bf16* streams = nullptr;
  const float* carried = nullptr;
  const Bf16* norm_weight = nullptr;
  float rms_eps = 0;
  Bf16Matrix head;
  float* logits = nullptr;
};

}  // namespace deepinfer::ops
