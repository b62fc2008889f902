#include "backend/cpu/linear.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "base/check.h"

namespace deepinfer::cpu {

WeightRows weight_rows(const ops::Fp8Matrix& w) { return {WeightFormat::kFp8, w.codes, w.scales, w.n_in, w.n_in}; }
WeightRows weight_rows(const ops::Fp4Matrix& w) { return {WeightFormat::kFp4, w.packed, w.scales, w.n_in, w.n_in / 2}; }
WeightRows weight_rows(const ops::Bf16Matrix& w) {
  return {WeightFormat::kBf16, w.values, nullptr, w.n_in, w.n_in * int64_t{sizeof(Bf16)}};
}
WeightRows weight_rows(const float* w, int64_t n_in, int64_t stride) {
  return {WeightFormat::kF32, w, nullptr, n_in, stride * int64_t{sizeof(float)}};
}

namespace {

/// Space for packed rows and the table of their addresses.
float** packed_space(Context& ctx, int64_t n_rows, int64_t n_in) {
  const int64_t stride = packed_stride(n_in);
  float* values = ctx.arena.take<float>(n_rows * stride);
  float** row = ctx.arena.take<float*>(n_rows);
  for (int64_t r = 0; r < n_rows; ++r) row[r] = values + r * stride;
  return row;
}

/// Outputs one task computes: enough tasks to keep the threads equally busy, few enough to read weights in long runs.
int64_t outputs_per_task(const Context& ctx, int64_t n_out) {
  const int64_t share = n_out / (int64_t{ctx.pool.n_threads()} * 4);
  return std::clamp<int64_t>(share / kTileOutputs * kTileOutputs, kTileOutputs, 4 * kTileOutputs);
}

void multiply(Context& ctx, const WeightRows& w, int64_t n_out, const PackedRows& x, const LinearOutput& y) {
  const int64_t step = outputs_per_task(ctx, n_out);
  ctx.pool.run((n_out + step - 1) / step,
               [&](int64_t task) { multiply_outputs(ctx, w, task * step, std::min(n_out, (task + 1) * step), x, y); });
}

template <typename Matrix, typename Y>
void linear_quantized(Context& ctx, const Matrix& w, const ops::QuantizedRows& x, int64_t n_rows, Y* y) {
  DI_CHECK(x.width == w.n_in);
  const WeightRows rows = weight_rows(w);
  for (int64_t r = 0; r < n_rows; r += kRowChunk) {
    const Arena::Scope scope(ctx.arena);
    const int64_t n = std::min(kRowChunk, n_rows - r);
    const ops::QuantizedRows chunk{x.codes + r * x.width, x.scales + r * (x.width / 32), x.width};
    multiply(ctx, rows, w.n_out, pack_rows(ctx, rows.format, chunk, n), {.bf16 = y + r * w.n_out, .stride = w.n_out});
  }
}

LinearOutput output_at(Bf16* y, int64_t stride) { return {.bf16 = y, .stride = stride}; }
LinearOutput output_at(float* y, int64_t stride) { return {.f32 = y, .stride = stride}; }

template <typename Y>
void linear_of_bf16(Context& ctx, const ops::Bf16Matrix& w, const Bf16* x, int64_t n_rows, Y* y) {
  const WeightRows rows = weight_rows(w);
  for (int64_t r = 0; r < n_rows; r += kRowChunk) {
    const Arena::Scope scope(ctx.arena);
    const int64_t n = std::min(kRowChunk, n_rows - r);
    multiply(ctx, rows, w.n_out, pack_rows(ctx, rows.format, x + r * w.n_in, n, w.n_in),
             output_at(y + r * w.n_out, w.n_out));
  }
}

void store_tile(const float* tile, int64_t n_rows, int64_t n_outputs, const LinearOutput& y, int64_t row,
                int64_t output) {
  for (int64_t r = 0; r < n_rows; ++r) {
    const float* from = tile + r * kTileOutputs;
    const int64_t at = (row + r) * y.stride + output - y.first_output;
    if (y.f32 != nullptr) {
      std::copy_n(from, n_outputs, y.f32 + at);
    } else {
      to_bf16(from, y.bf16 + at, n_outputs);
    }
  }
}

}  // namespace

PackedRows pack_rows(Context& ctx, WeightFormat format, const ops::QuantizedRows& x, int64_t n_rows) {
  float** row = packed_space(ctx, n_rows, x.width);
  ctx.pool.run(n_rows, [&](int64_t r) {
    ctx.kernels.pack_fp8(format, x.codes + r * x.width, x.scales + r * (x.width / 32), x.width, row[r]);
  });
  return {row, n_rows};
}

PackedRows pack_rows(Context& ctx, WeightFormat format, const Bf16* x, int64_t n_rows, int64_t n_in) {
  static_assert(sizeof(Bf16) == sizeof(uint16_t));
  float** row = packed_space(ctx, n_rows, n_in);
  ctx.pool.run(n_rows, [&](int64_t r) { ctx.kernels.pack_bf16(format, &x[r * n_in].bits, n_in, row[r]); });
  return {row, n_rows};
}

void multiply_outputs(Context& ctx, const WeightRows& w, int64_t begin, int64_t end, const PackedRows& x,
                      const LinearOutput& y) {
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  float* scratch = arena.take<float>(kGemmScratchFloats);
  float* tile = arena.take<float>(int64_t{kTileRows} * kTileOutputs);
  for (int64_t output = begin; output < end; output += kTileOutputs) {
    const int64_t n_outputs = std::min<int64_t>(kTileOutputs, end - output);
    for (int64_t row = 0; row < x.n_rows; row += kTileRows) {
      const int64_t n_rows = std::min<int64_t>(kTileRows, x.n_rows - row);
      const GemmTile args{.w = w,
                          .n_begin = output,
                          .n_outputs = static_cast<int32_t>(n_outputs),
                          .n_rows = static_cast<int32_t>(n_rows),
                          .x = x.row + row,
                          .out = tile,
                          .out_stride = kTileOutputs,
                          .scratch = scratch};
      ctx.kernels.gemm(&args);
      store_tile(tile, n_rows, n_outputs, y, row, output);
    }
  }
}

void linear(Context& ctx, const ops::Fp8Matrix& w, const ops::QuantizedRows& x, int64_t n_rows, Bf16* y) {
  linear_quantized(ctx, w, x, n_rows, y);
}
void linear(Context& ctx, const ops::Fp4Matrix& w, const ops::QuantizedRows& x, int64_t n_rows, Bf16* y) {
  linear_quantized(ctx, w, x, n_rows, y);
}
void linear(Context& ctx, const ops::Bf16Matrix& w, const Bf16* x, int64_t n_rows, Bf16* y) {
  linear_of_bf16(ctx, w, x, n_rows, y);
}
void linear(Context& ctx, const ops::Bf16Matrix& w, const Bf16* x, int64_t n_rows, float* y) {
  linear_of_bf16(ctx, w, x, n_rows, y);
}

void linear_fp8(Context& ctx, const ops::LinearFp8Args& a) { linear(ctx, a.w, a.x, a.n_rows, a.y); }
void linear_fp4(Context& ctx, const ops::LinearFp4Args& a) { linear(ctx, a.w, a.x, a.n_rows, a.y); }
void linear_bf16(Context& ctx, const ops::LinearBf16Args& a) {
  DI_CHECK((a.y == nullptr) != (a.y_f32 == nullptr));
  if (a.y != nullptr) {
    linear(ctx, a.w, a.x, a.n_rows, a.y);
  } else {
    linear(ctx, a.w, a.x, a.n_rows, a.y_f32);
  }
}

}  // namespace deepinfer::cpu
