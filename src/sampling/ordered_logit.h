// Logits as integers that order like them, so that comparing, selecting and finding the range vectorise and ties
// between -0 and +0 are ties. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

namespace deepinfer {

/// Monotone: a < b as numbers exactly when key(a) < key(b). NaN falls outside of the keys of the infinities.
inline int32_t key_of_logit(float logit) {
  const int32_t i = std::bit_cast<int32_t>(logit + 0.0f);  // -0 becomes +0
  return i ^ ((i >> 31) & 0x7fffffff);
}

inline float logit_of_key(int32_t key) { return std::bit_cast<float>(key ^ ((key >> 31) & 0x7fffffff)); }

inline constexpr int32_t kKeyOfPlusInfinity = 0x7f800000;
inline constexpr int32_t kKeyOfMinusInfinity = static_cast<int32_t>(0xff800000u ^ 0x7fffffffu);

struct LogitRange {
  int32_t highest;        // keys; that of -infinity when all logits are
  int32_t lowest_finite;  // above `highest` when none is finite
  bool all_comparable;    // no NaN and no +infinity
};

inline LogitRange logit_range(std::span<const float> logits) {
  int32_t highest = std::numeric_limits<int32_t>::min();
  int32_t lowest = std::numeric_limits<int32_t>::max();
  int32_t lowest_finite = std::numeric_limits<int32_t>::max();
  for (const float logit : logits) {
    const int32_t key = key_of_logit(logit);
    highest = std::max(highest, key);
    lowest = std::min(lowest, key);
    lowest_finite = std::min(lowest_finite, key > kKeyOfMinusInfinity ? key : std::numeric_limits<int32_t>::max());
  }
  return {.highest = highest,
          .lowest_finite = lowest_finite,
          .all_comparable = highest < kKeyOfPlusInfinity && lowest >= kKeyOfMinusInfinity};
}

}  // namespace deepinfer
