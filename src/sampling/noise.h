// The position-keyed noise of a draw. The sampled token is argmax over ids of logit/temperature + gumbel(id), which has
// exactly the softmax distribution. Drafter and target call this with the same (seed, position, id), so a drafter whose
// logits agree samples the same token. Pure functions, any thread.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/philox.h"

namespace deepinfer {

/// Uniforms of token ids 2*pair_idx and 2*pair_idx + 1: one Philox block serves two ids.
struct UniformPair {
  double even;
  double odd;
};

inline UniformPair token_uniforms(uint64_t seed, uint64_t position, uint32_t pair_idx) {
  const auto words = Philox{seed}.block(position, RandomPurpose::kToken, pair_idx);
  return {.even = uniform_open(words[0], words[1]), .odd = uniform_open(words[2], words[3])};
}

inline double token_uniform(uint64_t seed, uint64_t position, int32_t token_id) {
  const UniformPair pair = token_uniforms(seed, position, static_cast<uint32_t>(token_id) / 2);
  return token_id % 2 == 0 ? pair.even : pair.odd;
}

/// Standard Gumbel variate of a uniform in (0, 1); finite, between about -3.6 and 36.8.
inline double gumbel(double uniform) { return -std::log(-std::log(uniform)); }

}  // namespace deepinfer
