// Arithmetic shared by the reference operations. Sums are taken in double: products of the model's operands are exact
// there, so the order of a sum hardly matters, and the one rounding that follows is the model's own.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/bf16.h"
#include "ops/types.h"
#include "platform/thread_pool.h"

namespace deepinfer::ref {

/// sum a[i] * b[i].
double dot(const float* a, const float* b, int64_t n);

/// y[i] += scale * x[i].
void add_scaled(double scale, const float* x, int64_t n, double* y);

/// sum x[i]^2.
double sum_of_squares(const float* x, int64_t n);

inline float exp_f32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

/// 1 / sqrt(mean + eps) in fp32, the mean rounded to fp32 first.
float inverse_rms(double sum_of_squares, int64_t n, float eps);

/// y = bf16( weight * (x * inverse_rms) ), one rounding. x and y may be the same row.
void rms_norm(const Bf16* x, const Bf16* weight, int64_t n, float eps, Bf16* y);

/// Rotates the last 2 * rope.n_pairs of the n channels of x for a token position.
void rotate_tail(Bf16* x, int64_t n, const ops::Rope& rope, int64_t position, bool inverse);

/// One row of a weight matrix as fp32 (exact).
void decode_row(const ops::Fp8Matrix& w, int64_t row, float* out);
void decode_row(const ops::Fp4Matrix& w, int64_t row, float* out);
void decode_row(const ops::Bf16Matrix& w, int64_t row, float* out);

/// Rows of quantised activations as fp32 (exact), [n_rows, width].
std::vector<float> decode_rows(const ops::QuantizedRows& x, int64_t n_rows);
std::vector<float> decode_rows(const Bf16* x, int64_t n_rows, int64_t width);

/// y(t, o) = x[t] . w[row_begin + o] in double, given to store(t, o, sum). Weight rows are decoded once.
template <typename Matrix, typename Store>
void multiply(ThreadPool& pool, const std::vector<float>& x, int64_t n_rows, const Matrix& w, const Store& store) {
  pool.parallel_for(w.n_out, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> weight(static_cast<size_t>(w.n_in));
    for (int64_t o = begin; o < end; ++o) {
      decode_row(w, o, weight.data());
      for (int64_t t = 0; t < n_rows; ++t) store(t, o, dot(x.data() + t * w.n_in, weight.data(), w.n_in));
    }
  });
}

/// y [n_rows, w.n_out] = bf16(x w^T).
template <typename Matrix>
void multiply_to_bf16(ThreadPool& pool, const std::vector<float>& x, int64_t n_rows, const Matrix& w, Bf16* y) {
  multiply(pool, x, n_rows, w,
           [&](int64_t t, int64_t o, double sum) { y[t * w.n_out + o] = to_bf16(static_cast<float>(sum)); });
}

/// Quantises n_rows rows of bf16 activations per 32 (spec 3.2).
void quantize_rows(const Bf16* x, int64_t n_rows, const ops::QuantizedRows& out);

}  // namespace deepinfer::ref
