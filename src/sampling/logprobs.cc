#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sampling/exp.h"
#include "sampling/ordered_logit.h"

namespace deepinfer {

double log_sum_exp(std::span<const float> logits) {
  const LogitRange range = logit_range(logits);
  if (!range.all_comparable) return std::numeric_limits<double>::quiet_NaN();
  if (range.highest == kKeyOfMinusInfinity) return -std::numeric_limits<double>::infinity();
  const double highest = logit_of_key(range.highest);
  constexpr size_t kLanes = 8;  // independent partial sums, so that the loop vectorises in a fixed order
  double sums[kLanes] = {};
  const size_t n_full = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < n_full; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += exp_nonpositive(logits[i + lane] - highest);
  }
  for (size_t i = n_full; i < logits.size(); ++i) sums[i - n_full] += exp_nonpositive(logits[i] - highest);
  double sum = 0;
  for (const double s : sums) sum += s;
  return highest + std::log(sum);
}

std::optional<double> logprob(std::span<const float> logits, int32_t token_id, double normalizer) {
  DI_CHECK(token_id >= 0 && static_cast<size_t>(token_id) < logits.size());
  const double value = logits[static_cast<size_t>(token_id)] - normalizer;
  if (!std::isfinite(value)) return std::nullopt;
  return std::min(value, 0.0);  // rounding of the normalizer must not give a probability above 1
}

int64_t top_logprobs(std::span<const float> logits, double normalizer, std::span<TokenLogprob> out) {
  if (out.empty() || !std::isfinite(normalizer)) return 0;
  // Insertion into a short sorted list; ids come in ascending order, so an equal logit goes behind.
  size_t n = 0;
  float lowest_kept = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > lowest_kept)) continue;  // -infinity never enters
    if (n < out.size()) ++n;
    size_t at = n - 1;
    for (; at > 0 && logits[static_cast<size_t>(out[at - 1].token_id)] < logits[i]; --at) out[at] = out[at - 1];
    out[at].token_id = static_cast<int32_t>(i);
    if (n == out.size()) lowest_kept = logits[static_cast<size_t>(out[n - 1].token_id)];
  }
  for (TokenLogprob& entry : out.first(n)) {
    entry.logprob = std::min(logits[static_cast<size_t>(entry.token_id)] - normalizer, 0.0);
  }
  return static_cast<int64_t>(n);
}

}  // namespace deepinfer
