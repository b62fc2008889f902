#include <algorithm>
#include <cmath>

#include "backend/ref/collapse.h"
#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "numerics/functions.h"

namespace deepinfer::ref {

namespace {

void expand_row(const ops::MhcExpandArgs& a, int64_t t) {
  const int64_t n_streams = a.n_streams;
  const float* post = a.post + t * n_streams;
  const float* comb = a.comb + t * n_streams * n_streams;
  const Bf16* y = a.y + t * a.dim;
  Bf16* streams = a.streams + t * n_streams * a.dim;
  std::vector<float> old(static_cast<size_t>(n_streams));
  for (int64_t c = 0; c < a.dim; ++c) {
    for (int64_t j = 0; j < n_streams; ++j) old[static_cast<size_t>(j)] = to_float(streams[j * a.dim + c]);
    for (int64_t k = 0; k < n_streams; ++k) {
      float sum = 0;
      for (int64_t j = 0; j < n_streams; ++j) sum += comb[j * n_streams + k] * old[static_cast<size_t>(j)];
      streams[k * a.dim + c] = to_bf16(post[k] * to_float(y[c]) + sum);
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
    if (i > 0) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += c[j * n + k];
        for (int64_t k = 0; k < n; ++k) c[j * n + k] /= sum + eps;
      }
    }
    for (int64_t k = 0; k < n; ++k) {
      float sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += c[j * n + k];
      for (int64_t j = 0; j < n; ++j) c[j * n + k] /= sum + eps;
    }
  }
}

void mix_row(const ops::MhcSiteArgs& a, int64_t t) {
  const int64_t n = a.expand.n_streams;
  const int64_t width = n * a.expand.dim;
  std::vector<float> v(static_cast<size_t>(width));
  to_float(a.expand.streams + t * width, v.data(), width);
  const float scale = inverse_rms(sum_of_squares(v.data(), width), width, a.rms_eps);
  // One fused multiply-add per coefficient, as the release computes it.
  const auto coefficient = [&](int64_t i, int group) {
    const float m = static_cast<float>(dot(a.fn + i * width, v.data(), width)) * scale;
    return std::fma(m, a.scale[group], a.base[i]);
  };
  for (int64_t s = 0; s < n; ++s) a.pre[t * n + s] = sigmoid(coefficient(s, 0)) + a.hc_eps;
  for (int64_t s = 0; s < n; ++s) a.post[t * n + s] = 2.0F * sigmoid(coefficient(n + s, 1));
  float* comb = a.comb + t * n * n;
  for (int64_t i = 0; i < n * n; ++i) comb[i] = coefficient(2 * n + i, 2);
  sinkhorn(comb, n, a.sinkhorn_iters, a.hc_eps);
}

}  // namespace

void collapse_row(const Bf16* streams, const float* carried, int64_t n_streams, int64_t dim, Bf16* out) {
  for (int64_t c = 0; c < dim; ++c) {
    float sum = 0;
    for (int64_t s = 0; s < n_streams; ++s) sum += carried[s] * to_float(streams[s * dim + c]);
    out[c] = to_bf16(sum);
  }
}

void mhc_expand(ThreadPool& pool, const ops::MhcExpandArgs& a) {
  pool.parallel_for(a.n_rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) expand_row(a, t);
  });
}

void mhc_site(ThreadPool& pool, const ops::MhcSiteArgs& a) {
  const ops::MhcExpandArgs& e = a.expand;
  DI_CHECK(a.x_quantized.width == e.dim);
  pool.parallel_for(e.n_rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (e.y != nullptr) expand_row(e, t);
      mix_row(a, t);
      Bf16* x = a.x + t * e.dim;
      collapse_row(e.streams + t * e.n_streams * e.dim, a.carried + t * e.n_streams, e.n_streams, e.dim, x);
      rms_norm(x, a.norm_weight, e.dim, a.rms_eps, x);
    }
  });
  quantize_rows(a.x, e.n_rows, a.x_quantized);
}

}  // namespace deepinfer::ref
