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

constexpr int32_t kStreamsMax = 16;
constexpr int64_t kChannels = 64;    // channels expanded at a time
constexpr int64_t kSiteRows = 64;    // rows whose fp32 streams are held at a time
constexpr int64_t kRowsPerTask = 8;  // of the mix product
constexpr int64_t kOutputsPerTask = 4;

float exp_f32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

void expand_row(const ops::MhcExpandArgs& a, int64_t t) {
  const int64_t n_streams = a.n_streams;
  const float* post = a.post + t * n_streams;
  const float* comb = a.comb + t * n_streams * n_streams;
  Bf16* streams = a.streams + t * n_streams * a.dim;
  float old[kStreamsMax][kChannels];
  float y[kChannels];
  float sum[kChannels];
  for (int64_t c = 0; c < a.dim; c += kChannels) {
    const int64_t n = std::min(kChannels, a.dim - c);
    to_float(a.y + t * a.dim + c, y, n);
    for (int64_t j = 0; j < n_streams; ++j) to_float(streams + j * a.dim + c, old[j], n);
    for (int64_t k = 0; k < n_streams; ++k) {
      std::fill_n(sum, n, 0.0F);
      for (int64_t j = 0; j < n_streams; ++j) {
        const float weight = comb[j * n_streams + k];
        for (int64_t i = 0; i < n; ++i) sum[i] += weight * old[j][i];
      }
      for (int64_t i = 0; i < n; ++i) sum[i] = post[k] * y[i] + sum[i];
      to_bf16(sum, streams + k * a.dim + c, n);
    }
  }
}

/// C := softmax of each row + eps, then alternating column and row normalisation, ending on columns.
void sinkhorn(float* c, int64_t n, int32_t iters, float eps) {
  for (int64_t j = 0; j < n; ++j) {
    float* row = c + j * n;
    const float max = *std::max_element(row, row + n);
    float sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += row[k] = exp_f32(row[k] - max);
    for (int64_t k = 0; k < n; ++k) row[k] = row[k] / sum + eps;
  }
  for (int32_t i = 0; i < iters; ++i) {
    for (int64_t j = 0; i > 0 && j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += c[j * n + k];
      for (int64_t k = 0; k < n; ++k) c[j * n + k] /= sum + eps;
    }
    for (int64_t k = 0; k < n; ++k) {
      float sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += c[j * n + k];
      for (int64_t j = 0; j < n; ++j) c[j * n + k] /= sum + eps;
    }
  }
}

/// Coefficients of one row from its products with fn.
void mix_row(const ops::MhcSiteArgs& a, int64_t t, const float* product, float scale) {
  const int64_t n = a.expand.n_streams;
  // One fused multiply-add per coefficient, as the release computes it.
  const auto coefficient = [&](int64_t i, int group) {
    return std::fma(product[i] * scale, a.scale[group], a.base[i]);
  };
  for (int64_t s = 0; s < n; ++s) a.pre[t * n + s] = sigmoid(coefficient(s, 0)) + a.hc_eps;
  for (int64_t s = 0; s < n; ++s) a.post[t * n + s] = 2.0F * sigmoid(coefficient(n + s, 1));
  float* comb = a.comb + t * n * n;
  for (int64_t i = 0; i < n * n; ++i) comb[i] = coefficient(2 * n + i, 2);
  sinkhorn(comb, n, a.sinkhorn_iters, a.hc_eps);
}

/// product [x.n_rows, n_mix] = x fn^T.
void multiply_fn(Context& ctx, const ops::MhcSiteArgs& a, const PackedRows& x, int64_t width, float* product) {
  const int64_t n_mix = (2 + a.expand.n_streams) * int64_t{a.expand.n_streams};
  const WeightRows fn = weight_rows(a.fn, width, width);
  const int64_t n_row_tasks = (x.n_rows + kRowsPerTask - 1) / kRowsPerTask;
  const bool many_rows = n_row_tasks >= 2 * ctx.pool.n_threads();
  const int64_t outputs = many_rows ? n_mix : kOutputsPerTask;
  const int64_t n_output_tasks = (n_mix + outputs - 1) / outputs;
  ctx.pool.run(n_row_tasks * n_output_tasks, [&](int64_t task) {
    const int64_t row = task / n_output_tasks * kRowsPerTask;
    const int64_t output = task % n_output_tasks * outputs;
    multiply_outputs(ctx, fn, output, std::min(n_mix, output + outputs),
                     {x.row + row, std::min(kRowsPerTask, x.n_rows - row)},
                     {.f32 = product + row * n_mix, .stride = n_mix});
  });
}

/// Rows [first, first + n_rows) of a site.
void site_rows(Context& ctx, const ops::MhcSiteArgs& a, int64_t first, int64_t n_rows) {
  const ops::MhcExpandArgs& e = a.expand;
  const int64_t width = e.n_streams * e.dim;
  const int64_t n_mix = (2 + e.n_streams) * int64_t{e.n_streams};
  const Arena::Scope scope(ctx.arena);
  float* product = ctx.arena.take<float>(n_rows * n_mix);
  float* scale = ctx.arena.take<float>(n_rows);
  ctx.pool.run(n_rows, [&](int64_t r) {
    if (e.y != nullptr) expand_row(e, first + r);
    scale[r] = inverse_rms(sum_of_squares(e.streams + (first + r) * width, width), width, a.rms_eps);
  });
  multiply_fn(ctx, a, pack_rows(ctx, WeightFormat::kF32, e.streams + first * width, n_rows, width), width, product);
  ctx.pool.run(n_rows, [&](int64_t r) {
    const int64_t t = first + r;
    mix_row(a, t, product + r * n_mix, scale[r]);
    Bf16* x = a.x + t * e.dim;
    collapse(e.streams + t * width, a.carried + t * e.n_streams, e.n_streams, e.dim, x);
    rms_norm(x, a.norm_weight, e.dim, a.rms_eps, x);
    quantize_fp8_block32(x, e.dim, a.x_quantized.codes + t * e.dim, a.x_quantized.scales + t * (e.dim / kFp8Block));
  });
}

}  // namespace

void mhc_expand(Context& ctx, const ops::MhcExpandArgs& a) {
  DI_CHECK(a.n_streams <= kStreamsMax);
  ctx.pool.run(a.n_rows, [&](int64_t t) { expand_row(a, t); });
}

void mhc_site(Context& ctx, const ops::MhcSiteArgs& a) {
  DI_CHECK(a.x_quantized.width == a.expand.dim);
  DI_CHECK(a.expand.n_streams <= kStreamsMax);
  for (int64_t first = 0; first < a.expand.n_rows; first += kSiteRows) {
    site_rows(ctx, a, first, std::min<int64_t>(kSiteRows, a.expand.n_rows - first));
  }
}

Demand mhc_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n_rows = std::min<int64_t>(kSiteRows, limits.n_rows_max);
  return {Arena::bytes<float>(n_rows * config.n_mix()) + Arena::bytes<float>(n_rows) +
              pack_rows_bytes(n_rows, int64_t{config.hc_mult} * config.hidden_size),
          multiply_outputs_bytes()};
}

}  // namespace deepinfer::cpu
