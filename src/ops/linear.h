#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// y = x W^T with quantised activations and block-FP8 weights, rounded once to bf16.
/// Shapes   x width w.n_in; y [n_rows, w.n_out]
/// Types    fp32 or wider sums of exact products; row-invariant order
/// Source   spec 3.5
struct LinearFp8Args {
  int32_t n_rows = 0;
  QuantizedRows x;
  Fp8Matrix w;
  Bf16* y = nullptr;
};

/// The same with FP4 weights.
struct LinearFp4Args {
  int32_t n_rows = 0;
  QuantizedRows x;
  Fp4Matrix w;
  Bf16* y = nullptr;
};

/// y = x W^T with bf16 operands. Exactly one of y (rounded once to bf16) and y_f32 (fp32) is set.
/// Shapes   x [n_rows, w.n_in]; y or y_f32 [n_rows, w.n_out]
struct LinearBf16Args {
  int32_t n_rows = 0;
  const Bf16* x = nullptr;
  Bf16Matrix w;
  Bf16* y = nullptr;
  float* y_f32 = nullptr;
};

}  // namespace deepinfer::ops
