#include "numerics/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace deepinfer {
namespace {

/// The (fractional) channel whose pair turns n_rotations times over the original context.
double correction_channel(double n_rotations, int rope_dim, double base, const YarnParams& yarn) {
  const double turns =
      static_cast<double>(yarn.original_max_position_embeddings) / (n_rotations * 2 * std::numbers::pi);
  return rope_dim * std::log(turns) / (2 * std::log(base));
}

void blend_yarn(std::vector<float>& inv_freq, int rope_dim, double base, const YarnParams& yarn) {
  const double low = std::max(std::floor(correction_channel(yarn.beta_fast, rope_dim, base, yarn)), 0.0);
  // The bound is in channels, not pairs, as in the model's own code.
  double high = std::min(std::ceil(correction_channel(yarn.beta_slow, rope_dim, base, yarn)), rope_dim - 1.0);
  if (high == low) high += 0.001;
  const float low_f = static_cast<float>(low);
  const float width_f = static_cast<float>(high - low);
  const float factor_f = static_cast<float>(yarn.factor);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - low_f) / width_f, 0.0f, 1.0f);
    const float keep = 1.0f - ramp;
    inv_freq[i] = inv_freq[i] / factor_f * (1.0f - keep) + inv_freq[i] * keep;
  }
}

}  // namespace

std::vector<float> rope_frequencies(int rope_dim, double base, const YarnParams* yarn_or_null) {
  DI_CHECK(rope_dim > 0 && rope_dim % 2 == 0);
  DI_CHECK(base > 1);
  std::vector<float> inv_freq(static_cast<size_t>(rope_dim / 2));
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope_dim);
    // The power correctly rounded to binary32, then a binary32 reciprocal.
    inv_freq[i] = 1.0f / static_cast<float>(std::pow(static_cast<double>(static_cast<float>(base)), exponent));
  }
  if (yarn_or_null != nullptr) blend_yarn(inv_freq, rope_dim, base, *yarn_or_null);
  return inv_freq;
}

SinCos rope_angle(int64_t position, float inv_freq) {
  const float theta = static_cast<float>(position) * inv_freq;
  return SinCos{.cos = static_cast<float>(std::cos(static_cast<double>(theta))),
                .sin = static_cast<float>(std::sin(static_cast<double>(theta)))};
}

void rotate_pairs(Bf16* x, const SinCos* angles, int n_pairs, bool inverse) {
  const float sign = inverse ? -1.0f : 1.0f;
  for (int i = 0; i < n_pairs; ++i) {
    const float a = to_float(x[2 * i]);
    const float b = to_float(x[2 * i + 1]);
    const float c = angles[i].cos;
    const float s = sign * angles[i].sin;
    const float ac = a * c;
    const float bs = b * s;
    const float as = a * s;
    const float bc = b * c;
    x[2 * i] = to_bf16(ac - bs);
    x[2 * i + 1] = to_bf16(as + bc);
  }
}

}  // namespace deepinfer
