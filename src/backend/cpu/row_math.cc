#include "backend/cpu/row_math.h"

#include <cmath>

#include "numerics/functions.h"

namespace deepinfer::cpu {

namespace {
constexpr int kLanes = 8;
constexpr int64_t kChunk = 64;
}  // namespace

double sum_of_squares(const Bf16* x, int64_t n) {
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const double v = static_cast<double>(to_float(x[i + j]));
      lane[j] += v * v;
    }
  }
  double sum = 0;
  for (const double value : lane) sum += value;
  for (; i < n; ++i) sum += static_cast<double>(to_float(x[i])) * static_cast<double>(to_float(x[i]));
  return sum;
}

float inverse_rms(double sum_of_squares, int64_t n, float eps) {
  const float mean = static_cast<float>(sum_of_squares / static_cast<double>(n));
  return inverse_sqrt(mean + eps);
}

void rms_norm(const Bf16* x, const Bf16* weight, int64_t n, float eps, Bf16* y) {
  const float scale = inverse_rms(sum_of_squares(x, n), n, eps);
  for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(to_float(weight[i]) * (to_float(x[i]) * scale));
}

void collapse(const Bf16* streams, const float* carried, int64_t n_streams, int64_t dim, Bf16* out) {
  float sum[kChunk];
  for (int64_t c = 0; c < dim; c += kChunk) {
    const int64_t n = dim - c < kChunk ? dim - c : kChunk;
    for (int64_t i = 0; i < n; ++i) sum[i] = 0;
    for (int64_t s = 0; s < n_streams; ++s) {
      const float weight = carried[s];
      const Bf16* x = streams + s * dim + c;
      for (int64_t i = 0; i < n; ++i) sum[i] += weight * to_float(x[i]);
    }
    for (int64_t i = 0; i < n; ++i) out[c + i] = to_bf16(sum[i]);
  }
}

void rope_angles(const ops::Rope& rope, int64_t position, SinCos* angles) {
  for (int32_t i = 0; i < rope.n_pairs; ++i) angles[i] = rope_angle(position, rope.inv_freq[i]);
}

}  // namespace deepinfer::cpu
