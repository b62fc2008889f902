// Bfloat16: the upper half of an IEEE binary32. Conversions round to nearest, ties to even; NaN stays a quiet NaN.
// Scalar forms are inline and branch-light so that loops over them vectorise. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

struct Bf16 {
  uint16_t bits;

  /// Compares representations, not numbers: NaN equals itself, -0 differs from +0.
  friend bool operator==(Bf16 a, Bf16 b) = default;
};

/// Exact.
inline float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline Bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (u >> 16) | 0x40u;
  return Bf16{static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded)};
}

/// Rounds a double once. to_bf16(static_cast<float>(x)) would round twice and can miss by one unit.
inline Bf16 round_to_bf16(double x) {
  // Round to odd in binary32 first (truncate, then set the last bit if anything was lost): 16 spare bits keep which
  // side of every bf16 midpoint x lies on, so the second rounding is the only one that counts.
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  uint32_t u = std::bit_cast<uint32_t>(nearest);
  const bool away = x > 0 ? back > x : back < x;  // rounded away from zero (to infinity included)
  u -= away ? 1u : 0u;
  u |= (back < x || back > x) ? 1u : 0u;
  return to_bf16(std::bit_cast<float>(u));
}

/// y[i] = to_float(x[i]), i < n.
void to_float(const Bf16* x, float* y, int64_t n);
/// y[i] = to_bf16(x[i]), i < n.
void to_bf16(const float* x, Bf16* y, int64_t n);

}  // namespace deepinfer
