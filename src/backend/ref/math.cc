#include "backend/ref/math.h"

#include "numerics/block_quant.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"
#include "numerics/functions.h"
#include "numerics/rope.h"

namespace deepinfer::ref {

// The two loops everything spends its time in are compiled once more for wider registers. Every product here is exact in
// double and the lanes are the same, so the results are too. (Sanitizer start-up cannot run the resolver this needs.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DI_REF_WIDER __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define DI_REF_WIDER
#endif

namespace {
constexpr int kLanes = 16;
}

DI_REF_WIDER double dot(const float* a, const float* b, int64_t n) {
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lane[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
  }
  double sum = 0;
  for (const double value : lane) sum += value;
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

DI_REF_WIDER void add_scaled(double scale, const float* x, int64_t n, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * static_cast<double>(x[i]);
}

double sum_of_squares(const float* x, int64_t n) { return dot(x, x, n); }

float inverse_rms(double sum_of_squares, int64_t n, float eps) {
  const float mean = static_cast<float>(sum_of_squares / static_cast<double>(n));
  return inverse_sqrt(mean + eps);
}

void rms_norm(const Bf16* x, const Bf16* weight, int64_t n, float eps, Bf16* y) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(to_float(x[i])) * static_cast<double>(to_float(x[i]));
  const float scale = inverse_rms(squares, n, eps);
  for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(to_float(weight[i]) * (to_float(x[i]) * scale));
}

void rotate_tail(Bf16* x, int64_t n, const ops::Rope& rope, int64_t position, bool inverse) {
  std::vector<SinCos> angles(static_cast<size_t>(rope.n_pairs));
  for (int32_t i = 0; i < rope.n_pairs; ++i) angles[static_cast<size_t>(i)] = rope_angle(position, rope.inv_freq[i]);
  rotate_pairs(x + n - 2 * rope.n_pairs, angles.data(), rope.n_pairs, inverse);
}

void decode_row(const ops::Fp8Matrix& w, int64_t row, float* out) {
  const uint8_t* codes = w.codes + row * w.n_in;
  const uint8_t* scales = w.scales + (row / 32) * (w.n_in / 32);
  for (int64_t i = 0; i < w.n_in; ++i) out[i] = e4m3_to_float(codes[i]) * e8m0_to_float(scales[i / 32]);
}

void decode_row(const ops::Fp4Matrix& w, int64_t row, float* out) {
  const uint8_t* packed = w.packed + row * (w.n_in / 2);
  const uint8_t* scales = w.scales + row * (w.n_in / 32);
  for (int64_t i = 0; i < w.n_in; i += 2) {
    const float scale = e8m0_to_float(scales[i / 32]);
    out[i] = e2m1_to_float(unpack_e2m1_even(packed[i / 2])) * scale;
    out[i + 1] = e2m1_to_float(unpack_e2m1_odd(packed[i / 2])) * scale;
  }
}

void decode_row(const ops::Bf16Matrix& w, int64_t row, float* out) { to_float(w.values + row * w.n_in, out, w.n_in); }

std::vector<float> decode_rows(const ops::QuantizedRows& x, int64_t n_rows) {
  std::vector<float> out(static_cast<size_t>(n_rows * x.width));
  dequantize_fp8_block32(x.codes, x.scales, n_rows * x.width, out.data());
  return out;
}

std::vector<float> decode_rows(const Bf16* x, int64_t n_rows, int64_t width) {
  std::vector<float> out(static_cast<size_t>(n_rows * width));
  to_float(x, out.data(), n_rows * width);
  return out;
}

void quantize_rows(const Bf16* x, int64_t n_rows, const ops::QuantizedRows& out) {
  quantize_fp8_block32(x, n_rows * out.width, out.codes, out.scales);
}

}  // namespace deepinfer::ref
