// Rotary position embedding on adjacent channel pairs (2i, 2i+1), with the optional YaRN blend of frequencies and no
// magnitude scaling. Angles are binary32 products, sines and cosines those of the exact binary32 angle. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/bf16.h"

namespace deepinfer {

/// The rope_scaling numbers that change frequencies.
struct YarnParams {
  double factor;
  double beta_fast;
  double beta_slow;
  int64_t original_max_position_embeddings;
};

/// inv_freq [rope_dim/2]: base^(-2i/rope_dim), blended towards 1/factor of it when yarn is given. Evaluated in binary32
/// in the order of the model's own code. rope_dim even and positive, base > 1 (checked).
std::vector<float> rope_frequencies(int rope_dim, double base, const YarnParams* yarn_or_null);

struct SinCos {
  float cos;
  float sin;
};

/// theta = fp32(position) * inv_freq rounded to fp32; cosine and sine of that theta, with full range reduction.
SinCos rope_angle(int64_t position, float inv_freq);

/// Multiplies pair i of x [2*n_pairs] by cos+i*sin of angles[i], by its conjugate when `inverse`. Every product and sum
/// is rounded in fp32 (no fused multiply-add), the results to bf16.
void rotate_pairs(Bf16* x, const SinCos* angles, int n_pairs, bool inverse);

}  // namespace deepinfer
