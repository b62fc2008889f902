// Matrix products shared by the operations: packing of activations, the parallel loop over output tiles, rounding.
#pragma once

#include <cstdint>

#include "backend/cpu/context.h"
#include "numerics/bf16.h"
#include "ops/types.h"

namespace deepinfer::cpu {

WeightRows weight_rows(const ops::Fp8Matrix& w);
WeightRows weight_rows(const ops::Fp4Matrix& w);
WeightRows weight_rows(const ops::Bf16Matrix& w);
/// Row-major fp32 [*, n_in].
WeightRows weight_rows(const float* w, int64_t n_in, int64_t stride);

/// Rows multiplied at a time: bounds the packed copy of the activations.
inline constexpr int64_t kRowChunk = 256;

/// Floats between packed rows of width n_in: padded, and for long rows off a power of two, so that rows spread over the
/// cache sets.
constexpr int64_t packed_stride(int64_t n_in) { return (n_in + 31) / 32 * 32 + (n_in >= 1024 ? 528 : 16); }

/// Rows in the form the kernels read.
struct PackedRows {
  const float* const* row = nullptr;  // [n_rows]
  int64_t n_rows = 0;
};

/// Packs into memory of ctx.arena, in parallel.
PackedRows pack_rows(Context& ctx, WeightFormat format, const ops::QuantizedRows& x, int64_t n_rows);
PackedRows pack_rows(Context& ctx, WeightFormat format, const Bf16* x, int64_t n_rows, int64_t n_in);
constexpr int64_t pack_rows_bytes(int64_t n_rows, int64_t n_in) {
  return Arena::bytes<float>(n_rows * packed_stride(n_in)) + Arena::bytes<const float*>(n_rows);
}

/// Where a product goes: bf16 (rounded once) or fp32; element (r, o) at r * stride + o - first_output.
struct LinearOutput {
  Bf16* bf16 = nullptr;
  float* f32 = nullptr;
  int64_t stride = 0;
  int64_t first_output = 0;
};

/// Outputs [begin, end) of all rows of x, on the calling thread. begin a multiple of kTileOutputs.
void multiply_outputs(Context& ctx, const WeightRows& w, int64_t begin, int64_t end, const PackedRows& x,
                      const LinearOutput& y);
/// Thread workspace of multiply_outputs.
constexpr int64_t multiply_outputs_bytes() {
  return Arena::bytes<float>(kGemmScratchFloats) + Arena::bytes<float>(int64_t{kTileRows} * kTileOutputs);
}

/// y = x w^T for any number of rows, in parallel.
void linear(Context& ctx, const ops::Fp8Matrix& w, const ops::QuantizedRows& x, int64_t n_rows, Bf16* y);
void linear(Context& ctx, const ops::Fp4Matrix& w, const ops::QuantizedRows& x, int64_t n_rows, Bf16* y);
void linear(Context& ctx, const ops::Bf16Matrix& w, const Bf16* x, int64_t n_rows, Bf16* y);
void linear(Context& ctx, const ops::Bf16Matrix& w, const Bf16* x, int64_t n_rows, float* y);

/// Workspace of linear().
constexpr int64_t linear_bytes(int64_t n_rows, int64_t n_in) {
  return pack_rows_bytes(n_rows < kRowChunk ? n_rows : kRowChunk, n_in);
}

}  // namespace deepinfer::cpu
