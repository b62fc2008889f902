#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "base/check.h"
#include "numerics/block_quant.h"
#include "numerics/functions.h"

namespace deepinfer::cpu {

namespace {

/// sum x * (q_weight * k_weight) * key in double, eight lanes.
double weighted_product(const Bf16* x, const Bf16* q_weight, const Bf16* k_weight, const Bf16* key, int64_t n) {
  constexpr int kLanes = 8;
  const auto term = [&](int64_t i) {
    const double weight = static_cast<double>(to_float(q_weight[i])) * static_cast<double>(to_float(k_weight[i]));
    return static_cast<double>(to_float(x[i])) * weight * static_cast<double>(to_float(key[i]));
  };
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lane[j] += term(i + j);
  }
  double sum = 0;
  for (const double value : lane) sum += value;
  for (; i < n; ++i) sum += term(i);
  return sum;
}

/// Gate of one stream: sigmoid of the signed square root of the normalised key-stream product.
float gate(const ops::EngramArgs& a, const Bf16* x, const Bf16* key, int64_t stream) {
  const float scale = inverse_rms(sum_of_squares(x, a.dim), a.dim, a.rms_eps) *
                      inverse_rms(sum_of_squares(key, a.dim), a.dim, a.rms_eps);
  const double product = weighted_product(x, a.q_weight + stream * a.dim, a.k_weight + stream * a.dim, key, a.dim);
  const float dim_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.dim)));
  const float dot = static_cast<float>(product) * scale * dim_scale;
  return sigmoid(std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6F)), dot));
}

void add_scaled(float scale, const Bf16* value, int64_t n, Bf16* x) {
  for (int64_t i = 0; i < n; ++i) x[i] = to_bf16(to_float(x[i]) + scale * to_float(value[i]));
}

/// Rows [first, first + n_rows).
void engram_rows(Context& ctx, const ops::EngramArgs& a, int64_t first, int64_t n_rows) {
  const int64_t width = static_cast<int64_t>(a.n_columns) * a.head_dim;
  const int64_t n_out = a.wkv.n_out;
  const Arena::Scope scope(ctx.arena);
  uint8_t* codes = ctx.arena.take<uint8_t>(n_rows * width);
  uint8_t* scales = ctx.arena.take<uint8_t>(n_rows * (width / kFp8Block));
  Bf16* projected = ctx.arena.take<Bf16>(n_rows * n_out);
  ctx.pool.run(n_rows, [&](int64_t r) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope thread_scope(arena);
    Bf16* row = arena.take<Bf16>(width);
    for (int64_t i = 0; i < a.n_columns; ++i) {
      const int64_t id = a.row_id[(first + r) * a.n_columns + i];
      dequantize_fp8_block32(a.table_codes + id * a.head_dim, a.table_scales + id * (a.head_dim / kFp8Block),
                             a.head_dim, row + i * a.head_dim);
    }
    quantize_fp8_block32(row, width, codes + r * width, scales + r * (width / kFp8Block));
  });
  linear(ctx, a.wkv, {codes, scales, width}, n_rows, projected);
  ctx.pool.run(n_rows * a.n_streams, [&](int64_t task) {
    const int64_t r = task / a.n_streams;
    const int64_t s = task % a.n_streams;
    if (a.dead != nullptr && a.dead[first + r] != 0) return;  // gate 0
    const Bf16* keys = projected + r * n_out;
    Bf16* x = a.streams + ((first + r) * a.n_streams + s) * a.dim;
    add_scaled(gate(a, x, keys + s * a.dim, s), keys + a.n_streams * a.dim, a.dim, x);
  });
}

}  // namespace

void engram(Context& ctx, const ops::EngramArgs& a) {
  DI_CHECK(a.wkv.n_in == static_cast<int64_t>(a.n_columns) * a.head_dim);
  for (int64_t first = 0; first < a.n_rows; first += kRowChunk) {
    engram_rows(ctx, a, first, std::min<int64_t>(kRowChunk, a.n_rows - first));
  }
}

Demand engram_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  if (config.engram_layer_ids.empty()) return {};
  const int64_t n_rows = std::min<int64_t>(kRowChunk, limits.n_rows_max);
  const int64_t width = int64_t{config.n_engram_columns()} * config.engram_head_dim;
  const int64_t n_out = int64_t{config.hc_mult + 1} * config.hidden_size;
  return {Arena::bytes<uint8_t>(n_rows * width) + Arena::bytes<uint8_t>(n_rows * (width / kFp8Block)) +
              Arena::bytes<Bf16>(n_rows * n_out) + linear_bytes(n_rows, width),
          std::max(multiply_outputs_bytes(), Arena::bytes<Bf16>(width))};
}

}  // namespace deepinfer::cpu
