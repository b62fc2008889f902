// Log-probabilities of the raw distribution: before temperature, truncation and constraints. Sums are in double in a
// fixed order. Nothing non-finite leaves: an impossible token has no log-probability. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace deepinfer {

/// log(sum(exp(logits))). -infinity when all are, NaN when any is NaN or +infinity.
double log_sum_exp(std::span<const float> logits);

/// logits[token_id] - normalizer, where normalizer is log_sum_exp(logits); nothing unless that is finite.
/// token_id in range (checked).
std::optional<double> logprob(std::span<const float> logits, int32_t token_id, double normalizer);

struct TokenLogprob {
  int32_t token_id;
  double logprob;
};

/// Fills `out` with the most probable tokens, highest first, equal ones by lowest id; returns how many there are (fewer
/// than out.size() when the vocabulary is smaller or the rest is impossible; 0 when the normalizer is not finite).
/// One pass for the few entries APIs ask for: O(V) plus O(V * out.size()) in the worst order.
int64_t top_logprobs(std::span<const float> logits, double normalizer, std::span<TokenLogprob> out);

}  // namespace deepinfer
