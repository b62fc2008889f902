// Per-row arithmetic shared by the operations: norms, rotations, the weighted sum of streams. Sums run in double over
// eight lanes and a fixed tree, so they hardly ever differ from the reference after their rounding to fp32.
#pragma once

#include <cstdint>

#include "backend/cpu/arena.h"
#include "numerics/bf16.h"
#include "numerics/rope.h"
#include "ops/types.h"

namespace deepinfer::cpu {

double sum_of_squares(const Bf16* x, int64_t n);

/// 1 / sqrt(mean + eps) in fp32, the mean rounded to fp32 first.
float inverse_rms(double sum_of_squares, int64_t n, float eps);

/// y = bf16( weight * (x * inverse_rms) ), one rounding. x and y may be the same row.
void rms_norm(const Bf16* x, const Bf16* weight, int64_t n, float eps, Bf16* y);

/// out [dim] = bf16( sum_s carried[s] * streams[s, :] ), s ascending, fp32.
void collapse(const Bf16* streams, const float* carried, int64_t n_streams, int64_t dim, Bf16* out);

/// angles [rope.n_pairs] of a position.
void rope_angles(const ops::Rope& rope, int64_t position, SinCos* angles);

/// Rotates the last 2 * n_pairs of the n channels of x.
inline void rotate_tail(Bf16* x, int64_t n, const SinCos* angles, int32_t n_pairs, bool inverse) {
  rotate_pairs(x + n - 2 * n_pairs, angles, n_pairs, inverse);
}

}  // namespace deepinfer::cpu
