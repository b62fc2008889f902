// E2M1 (FP4): magnitudes 0, .5, 1, 1.5, 2, 3, 4, 6 by the low three bits, bit 3 is the sign. Two codes a byte, the
// even element in the low nibble. Pure functions, any thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace deepinfer {

inline constexpr float kE2m1Max = 6.0f;

inline constexpr std::array<float, 16> kE2m1Table = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                     -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// Exact. Bits above the low four are ignored.
inline float e2m1_to_float(uint8_t nibble) { return kE2m1Table[nibble & 15u]; }

/// Nearest, ties to the even code, clamped to +-6; a negative that rounds to zero keeps its sign. NaN gives 7 (+6), as
/// the hardware conversions do.
inline uint8_t float_to_e2m1(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const float a = std::bit_cast<float>(u & 0x7fffffffu);
  // The number of midpoints passed; >= where the tie goes up to an even code. Negated, so that NaN passes them all.
  const uint32_t code = static_cast<uint32_t>(!(a <= 0.25f)) + static_cast<uint32_t>(!(a < 0.75f)) +
                        static_cast<uint32_t>(!(a <= 1.25f)) + static_cast<uint32_t>(!(a < 1.75f)) +
                        static_cast<uint32_t>(!(a <= 2.5f)) + static_cast<uint32_t>(!(a < 3.5f)) +
                        static_cast<uint32_t>(!(a <= 5.0f));
  const uint32_t sign = a == a ? (u >> 28) & 8u : 0u;
  return static_cast<uint8_t>(code | sign);
}

inline uint8_t pack_e2m1(uint8_t even, uint8_t odd) {
  return static_cast<uint8_t>((even & 15u) | (static_cast<uint32_t>(odd) << 4));
}
inline uint8_t unpack_e2m1_even(uint8_t packed) { return packed & 15u; }
inline uint8_t unpack_e2m1_odd(uint8_t packed) { return static_cast<uint8_t>(packed >> 4); }

}  // namespace deepinfer
