// E4M3FN: sign, 4 exponent bits (bias 7), 3 mantissa bits. Largest 448, smallest subnormal 2^-9, no infinity,
// NaN is 0x7f and 0xff. Pure functions, any thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace deepinfer {

inline constexpr float kE4m3Max = 448.0f;

namespace detail {
constexpr std::array<float, 256> make_e4m3_table() {
  std::array<float, 256> table{};
  for (uint32_t code = 0; code < 256; ++code) {
    const uint32_t exponent = (code >> 3) & 15u;
    const uint32_t mantissa = code & 7u;
    float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    if (exponent != 0) magnitude = std::bit_cast<float>(((exponent + 120u) << 23) | (mantissa << 20));
    if ((code & 127u) == 127u) magnitude = std::numeric_limits<float>::quiet_NaN();
    table[code] = (code & 128u) != 0 ? -magnitude : magnitude;
  }
  return table;
}
}  // namespace detail

inline constexpr std::array<float, 256> kE4m3Table = detail::make_e4m3_table();

/// Exact.
inline float e4m3_to_float(uint8_t code) { return kE4m3Table[code]; }

/// Nearest, ties to even, saturating at +-448 (infinities too). NaN gives 0x7f.
inline uint8_t float_to_e4m3(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = u & 0x7fffffffu;
  const uint32_t sign = (u >> 24) & 0x80u;
  const uint32_t clamped = magnitude > 0x43e00000u ? 0x43e00000u : magnitude;  // 448
  // Normal: drop 20 mantissa bits with rounding, then move the exponent bias from 127 to 7.
  const uint32_t normal = ((clamped + 0x7ffffu + ((clamped >> 20) & 1u)) >> 20) - (120u << 3);
  // Below 2^-6: one unit of 2^14 is 2^-9, so the addition itself rounds to a multiple of the subnormal step.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(clamped) + 0x1p14f) - 0x46800000u;
  const uint32_t code = (clamped < 0x3c800000u ? subnormal : normal) | sign;
  return static_cast<uint8_t>(magnitude > 0x7f800000u ? 0x7fu : code);
}

}  // namespace deepinfer
