#include "sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>

#include "base/check.h"
#include "sampling/exp.h"
#include "sampling/noise.h"

namespace deepinfer {
namespace {

constexpr size_t kBuckets = 2048;
constexpr double kBucketSpanMax = 64;  // e^-64 of the best token: what lies farther shares the last bucket
constexpr double kGumbelMax = 36.8;    // gumbel() of the largest uniform, rounded up

uint64_t make_candidate(float logit, int64_t token_id) {
  const uint32_t order = static_cast<uint32_t>(key_of_logit(logit)) ^ 0x80000000u;
  return (static_cast<uint64_t>(order) << 32) | (0xffffffffu - static_cast<uint32_t>(token_id));
}
int32_t token_of(uint64_t candidate) { return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(candidate)); }
float logit_of(uint64_t candidate) {
  return logit_of_key(static_cast<int32_t>(static_cast<uint32_t>(candidate >> 32) ^ 0x80000000u));
}

/// The running argmax of scaled logit + Gumbel noise; equal scores go to the lower id, so order does not matter.
struct Race {
  double best_score;
  int32_t best_id;

  void enter(int32_t id, double scaled, double uniform) {
    // Winning takes gumbel > best - scaled, hence log(1 - uniform) <= log(-log(uniform)) < scaled - best. The bits of
    // 1 - uniform read as a fixed-point number are a lower bound of its logarithm (log2(1 + m) >= m), which spares the
    // two logarithms for nearly all ids. The margin is far above rounding errors: the winner is the one without it.
    const double log_bound =
        (static_cast<double>(std::bit_cast<int64_t>(1.0 - uniform)) * 0x1p-52 - 1023) * std::numbers::ln2;
    if (log_bound > scaled - best_score + 1e-6) return;
    const double score = scaled + gumbel(uniform);
    if (score > best_score || (score == best_score && id < best_id)) {
      best_score = score;
      best_id = id;
    }
  }
};

int32_t first_with_key(std::span<const float> logits, int32_t key) {
  const auto found = std::find_if(logits.begin(), logits.end(), [key](float l) { return key_of_logit(l) == key; });
  return static_cast<int32_t>(found - logits.begin());
}

}  // namespace

Sampler::Sampler(int64_t vocab_size) : vocab_size_(vocab_size) {
  DI_CHECK(vocab_size >= 1 && vocab_size < INT64_C(0x80000000));
  const size_t n = static_cast<size_t>(vocab_size);
  candidates_.reserve(n);
  bucket_of_token_.resize(n);
  bucket_weights_.resize(kBuckets);
  survivor_ids_.reserve(n);
}

Result<LogitRange> Sampler::check(std::span<const float> logits, const SamplingParams& params) const {
  DI_CHECK(static_cast<int64_t>(logits.size()) == vocab_size_);
  DI_RETURN_IF_ERROR(validate(params));
  const LogitRange range = logit_range(logits);
  if (!range.all_comparable) {
    const auto bad = std::find_if(logits.begin(), logits.end(), [](float l) { return !(l < INFINITY); });
    return Error{Code::kInvalidArgument, "logit of token " + std::to_string(bad - logits.begin()) + " is " +
                                             (std::isnan(*bad) ? "nan" : "inf") + ", must be finite or -inf"};
  }
  if (range.highest == kKeyOfMinusInfinity) {
    return Error{Code::kInvalidArgument,
                 "no token is allowed: every one of " + std::to_string(logits.size()) + " logits is -inf"};
  }
  return range;
}

Result<int32_t> Sampler::sample(std::span<const float> logits, int64_t position, const SamplingParams& params) {
  DI_CHECK(position >= 0);
  DI_ASSIGN_OR_RETURN(const LogitRange range, check(logits, params));
  const int32_t highest_id = first_with_key(logits, range.highest);
  if (is_greedy(params)) return highest_id;

  const Scale scale{.highest = logit_of_key(range.highest), .inverse_temperature = 1.0 / params.temperature};
  const uint64_t noise_position = static_cast<uint64_t>(position);
  // The highest logit survives every truncation. Entering it first lets most others be dismissed at once.
  Race race{.best_score = gumbel(token_uniform(params.seed, noise_position, highest_id)), .best_id = highest_id};
  if (truncate(logits, range, scale, params)) {
    for (const Candidate candidate : candidates_) {
      const int32_t id = token_of(candidate);
      race.enter(id, scale(logit_of(candidate)), token_uniform(params.seed, noise_position, id));
    }
    return race.best_id;
  }
  for (size_t even = 0; even < logits.size(); even += 2) {
    const bool has_odd = even + 1 < logits.size();
    const double scaled_even = scale(logits[even]);
    const double scaled_odd = has_odd ? scale(logits[even + 1]) : -INFINITY;
    if (std::max(scaled_even, scaled_odd) + kGumbelMax < race.best_score) continue;  // -infinity always
    const UniformPair uniforms = token_uniforms(params.seed, noise_position, static_cast<uint32_t>(even / 2));
    race.enter(static_cast<int32_t>(even), scaled_even, uniforms.even);
    race.enter(static_cast<int32_t>(even + 1), scaled_odd, uniforms.odd);
  }
  return race.best_id;
}

Result<std::span<const int32_t>> Sampler::survivors(std::span<const float> logits, const SamplingParams& params) {
  DI_ASSIGN_OR_RETURN(const LogitRange range, check(logits, params));
  survivor_ids_.clear();
  if (is_greedy(params)) {
    survivor_ids_.push_back(first_with_key(logits, range.highest));
    return std::span<const int32_t>(survivor_ids_);
  }
  const Scale scale{.highest = logit_of_key(range.highest), .inverse_temperature = 1.0 / params.temperature};
  if (truncate(logits, range, scale, params)) {
    for (const Candidate candidate : candidates_) survivor_ids_.push_back(token_of(candidate));
  } else {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > -INFINITY) survivor_ids_.push_back(static_cast<int32_t>(i));
    }
  }
  return std::span<const int32_t>(survivor_ids_);
}

bool Sampler::truncate(std::span<const float> logits, const LogitRange& range, const Scale& scale,
                       const SamplingParams& params) {
  const bool top_k_on = params.top_k > 0 && params.top_k < vocab_size_;
  const bool top_p_on = params.top_p < 1;
  const bool min_p_on = params.min_p > 0;
  const double scaled_min = min_p_on ? std::log(static_cast<double>(params.min_p)) : -INFINITY;
  candidates_.clear();
  if (top_k_on) {
    keep_top_k(logits, params.top_k);
    if (top_p_on) keep_top_p_of_candidates(scale, params.top_p);
  } else if (top_p_on) {
    keep_top_p_of_all(logits, range, scale, params.top_p);
  } else if (min_p_on) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (scale(logits[i]) >= scaled_min) candidates_.push_back(make_candidate(logits[i], static_cast<int64_t>(i)));
    }
  } else {
    return false;
  }
  // The steps before kept prefixes of one order, and this keeps another, so it may come last whatever they did.
  std::erase_if(candidates_, [&](Candidate c) {
    const float logit = logit_of(c);
    return !(logit > -INFINITY && scale(logit) >= scaled_min);
  });
  return true;
}

/// One pass with a buffer of the best so far: once it is full, its worse half goes and sets the bar for what follows.
void Sampler::keep_top_k(std::span<const float> logits, int64_t k) {
  const auto kth = static_cast<std::ptrdiff_t>(k - 1);
  const size_t n_kept = static_cast<size_t>(k);
  const size_t n_max = std::min(logits.size(), std::max(2 * n_kept, n_kept + 64));
  Candidate bar = 0;
  const auto cut = [&] {
    std::nth_element(candidates_.begin(), candidates_.begin() + kth, candidates_.end(), std::greater<>());
    candidates_.resize(n_kept);
    bar = candidates_[n_kept - 1];
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate = make_candidate(logits[i], static_cast<int64_t>(i));
    if (candidate <= bar) continue;
    if (candidates_.size() == n_max) cut();
    candidates_.push_back(candidate);
  }
  if (candidates_.size() > n_kept) cut();
}

void Sampler::keep_top_p_of_candidates(const Scale& scale, double top_p) {
  std::sort(candidates_.begin(), candidates_.end(), std::greater<>());
  double total = 0;
  for (const Candidate c : candidates_) total += exp_nonpositive(scale(logit_of(c)));
  double reached = 0;
  size_t n_kept = 0;
  while (n_kept < candidates_.size() && reached < top_p * total) {
    reached += exp_nonpositive(scale(logit_of(candidates_[n_kept++])));
  }
  candidates_.resize(n_kept);
}

/// Buckets of scaled logit, best first, find where the sum of weights reaches top_p; only that bucket is sorted.
void Sampler::keep_top_p_of_all(std::span<const float> logits, const LogitRange& range, const Scale& scale,
                                double top_p) {
  const double span = std::min(-scale(logit_of_key(range.lowest_finite)), kBucketSpanMax);
  const double buckets_per_unit = span > 0 ? kBuckets / span : 1;
  std::fill(bucket_weights_.begin(), bucket_weights_.end(), 0.0);
  constexpr size_t kChunk = 256;  // a chunk of plain loops, so that they vectorise
  for (size_t begin = 0; begin < logits.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, logits.size() - begin);
    double weights[kChunk];
    for (size_t i = 0; i < n; ++i) {
      const double scaled = scale(logits[begin + i]);
      weights[i] = exp_nonpositive(scaled);
      const double place = std::min(-scaled * buckets_per_unit, kBuckets - 1.0);
      bucket_of_token_[begin + i] = static_cast<uint16_t>(static_cast<int32_t>(place));
    }
    for (size_t i = 0; i < n; ++i) bucket_weights_[bucket_of_token_[begin + i]] += weights[i];
  }
  double total = 0;
  for (const double w : bucket_weights_) total += w;
  const double wanted = top_p * total;
  double reached = 0;
  size_t last = 0;  // the bucket in which the sum reaches `wanted`
  while (last + 1 < kBuckets && reached + bucket_weights_[last] < wanted) reached += bucket_weights_[last++];

  for (size_t i = 0; i < logits.size(); ++i) {
    if (bucket_of_token_[i] < last) candidates_.push_back(make_candidate(logits[i], static_cast<int64_t>(i)));
  }
  const size_t n_certain = candidates_.size();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (bucket_of_token_[i] == last) candidates_.push_back(make_candidate(logits[i], static_cast<int64_t>(i)));
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(n_certain), candidates_.end(), std::greater<>());
  size_t n_kept = n_certain;
  while (n_kept < candidates_.size() && reached < wanted) {
    reached += exp_nonpositive(scale(logit_of(candidates_[n_kept++])));
  }
  candidates_.resize(n_kept);
}

}  // namespace deepinfer
