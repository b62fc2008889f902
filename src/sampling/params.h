// How a token is drawn, as far as this layer is concerned, and what values are legal. Wire formats and defaults of the
// APIs live above.
#pragma once

#include <cstdint>

#include "deepinfer/status.h"

namespace deepinfer {

/// Below this, temperature means 0: the highest logit wins. (A division by less would only decide ties.)
inline constexpr float kGreedyTemperature = 1e-5f;

/// Applied in this order: temperature, top_k, top_p, min_p. Each truncation keeps a prefix of the tokens sorted by
/// logit, highest first, equal logits by lowest id.
struct SamplingParams {
  float temperature = 0;  // >= 0, finite; below kGreedyTemperature is greedy
  int64_t top_k = 0;      // keep the k highest; 0, -1 or at least the vocabulary is off, 1 is greedy
  float top_p = 1;        // [0, 1]: keep the fewest whose probabilities reach top_p; 1 is off, 0 is greedy
  float min_p = 0;        // [0, 1]: keep those with min_p times the highest probability; 0 is off, 1 is greedy
  uint64_t seed = 0;      // of the sequence (derive_seed in base/philox.h for the n sequences of a request)
};

/// kInvalidArgument with field, value and limit for anything out of range, NaN and infinities included.
Status validate(const SamplingParams& params);

/// Whether legal params mean "the highest logit wins".
bool is_greedy(const SamplingParams& params);

}  // namespace deepinfer
