// Logits to one token id: temperature, top-k, top-p, min-p, then a draw with position-keyed noise. The result is a pure
// function of (logits, position, params); nothing else in the engine can change it. One Sampler serves one thread at a
// time; it owns its scratch memory, so that a call allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deepinfer/status.h"
#include "sampling/ordered_logit.h"
#include "sampling/params.h"

namespace deepinfer {

class Sampler {
 public:
  /// Reserves about 14 bytes a token id. vocab_size in [1, 2^31) (checked).
  explicit Sampler(int64_t vocab_size);

  /// The token at `position` (>= 0, checked; the index of the new token in its sequence). logits [vocab_size]
  /// (checked), with constraints and penalties already applied: -infinity forbids a token. Equal logits: lowest id
  /// first. Errors (kInvalidArgument): illegal params; a NaN or +infinity logit; every logit -infinity. Cost O(V): a
  /// pass for the range, one for the truncation, noise for surviving tokens only.
  Result<int32_t> sample(std::span<const float> logits, int64_t position, const SamplingParams& params);

  /// The ids that sample() draws from, in no particular order, valid until the next call. Same errors.
  Result<std::span<const int32_t>> survivors(std::span<const float> logits, const SamplingParams& params);

 private:
  /// Orders like (logit ascending, id descending): a greater one is a better token.
  using Candidate = uint64_t;

  struct Scale {
    double highest;              // logit
    double inverse_temperature;  // 1/temperature
    /// (logit - highest) / temperature, <= 0. Never NaN.
    [[nodiscard]] double operator()(float logit) const {
      return (static_cast<double>(logit) - highest) * inverse_temperature;
    }
  };

  Result<LogitRange> check(std::span<const float> logits, const SamplingParams& params) const;
  /// Fills candidates_ with the tokens that survive; false when all tokens with a finite logit do (nothing filled).
  bool truncate(std::span<const float> logits, const LogitRange& range, const Scale& scale,
                const SamplingParams& params);
  void keep_top_k(std::span<const float> logits, int64_t k);
  void keep_top_p_of_candidates(const Scale& scale, double top_p);
  void keep_top_p_of_all(std::span<const float> logits, const LogitRange& range, const Scale& scale, double top_p);

  int64_t vocab_size_;
  std::vector<Candidate> candidates_;
  std::vector<uint16_t> bucket_of_token_;
  std::vector<double> bucket_weights_;
  std::vector<int32_t> survivor_ids_;
};

}  // namespace deepinfer
