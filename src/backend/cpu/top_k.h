// Exact selection of the k largest of n bf16 scores in linear time: two histogram passes over 16-bit keys, no sort.
#pragma once

#include <cstdint>

namespace deepinfer::cpu {

/// Keys ascend with the number: -0 and +0 share one, NaN is above infinity. Keys up to kKeyOfNegativeInfinity are never
/// selected.
inline constexpr uint16_t kKeyOfNegativeInfinity = 0x007f;
inline constexpr uint16_t kKeyOfInfinity = 0xff80;
inline uint16_t score_key(uint16_t bf16_bits) {
  if (bf16_bits == 0x8000u) return 0x8000u;
  return static_cast<uint16_t>((bf16_bits & 0x8000u) != 0 ? ~bf16_bits : bf16_bits | 0x8000u);
}

/// Writes the indices of the k largest keys, ties to the lowest index, ascending; returns how many there are (fewer
/// than k when fewer keys qualify).
int32_t select_top(const uint16_t* key, int64_t n, int32_t k, int32_t* index);

}  // namespace deepinfer::cpu
