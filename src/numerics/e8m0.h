// E8M0: a byte c that stands for the scale 2^(c-127); 255 is NaN. Pure functions, any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

inline constexpr uint8_t kE8m0One = 127;
inline constexpr uint8_t kE8m0Nan = 255;

/// Exact. Code 0 is 2^-127, a subnormal (shifting the code into the exponent field would give zero).
inline float e8m0_to_float(uint8_t code) {
  const uint32_t shifted = static_cast<uint32_t>(code) << 23;
  const uint32_t u = code == 0 ? 0x00400000u : (code == kE8m0Nan ? 0x7fc00000u : shifted);
  return std::bit_cast<float>(u);
}

/// The smallest normal power of two that is >= t, by bits. t > 0; a subnormal t gives 2^-126; above 2^127 infinity.
inline float pow2ceil(float t) {
  const uint32_t u = std::bit_cast<uint32_t>(t);
  const uint32_t exponent = (u >> 23) + ((u & 0x7fffffu) != 0 ? 1u : 0u);
  return std::bit_cast<float>(exponent << 23);
}

/// Inverse of e8m0_to_float for a power of two in [2^-127, 2^127]. Infinity and NaN give 255.
inline uint8_t pow2_to_e8m0(float power_of_two) {
  return static_cast<uint8_t>((std::bit_cast<uint32_t>(power_of_two) >> 23) & 0xffu);
}

}  // namespace deepinfer
