// Words shared by all operations: rows, weight matrices, quantised activations. All pointers are memory of the backend
// that runs the operation (for ref and cpu: host memory); all borrow for the call. Matrices are row-major [n_out,
// n_in].
#pragma once

#include <cstdint>

#include "numerics/bf16.h"

namespace deepinfer::ops {

/// The tokens of one step. Rows of one sequence are contiguous and ascend by one in position.
struct Rows {
  int32_t n = 0;
  const int32_t* slot = nullptr;      // [n] the sequence's place in the ring pool
  const int32_t* position = nullptr;  // [n] absolute token position
  const int32_t* begin = nullptr;     // [n] index of the first row of the same sequence in this step
};

/// E4M3 weights, one E8M0 scale per 32x32 block: y[n] = sum over k-blocks of (sum_32 x*w) * s_x * s_w.
struct Fp8Matrix {
  const uint8_t* codes = nullptr;   // [n_out, n_in]
  const uint8_t* scales = nullptr;  // [ceil(n_out/32), n_in/32]
  int64_t n_out = 0;
  int64_t n_in = 0;
};

/// E2M1 weights (even column in the low nibble), one E8M0 scale per row and 32 columns.
struct Fp4Matrix {
  const uint8_t* packed = nullptr;  // [n_out, n_in/2]
  const uint8_t* scales = nullptr;  // [n_out, n_in/32]
  int64_t n_out = 0;
  int64_t n_in = 0;
};

struct Bf16Matrix {
  const Bf16* values = nullptr;  // [n_out, n_in]
  int64_t n_out = 0;
  int64_t n_in = 0;
};

/// Activations quantised per 32 along a row (spec 3.2): the input of every FP8 and FP4 matrix.
struct QuantizedRows {
  uint8_t* codes = nullptr;   // [n, width] E4M3
  uint8_t* scales = nullptr;  // [n, width/32] E8M0
  int64_t width = 0;
};

/// Rotation of adjacent channel pairs; the angle of pair i at position p is fp32(p) * inv_freq[i].
struct Rope {
  const float* inv_freq = nullptr;  // [n_pairs]
  int32_t n_pairs = 0;
};

}  // namespace deepinfer::ops
