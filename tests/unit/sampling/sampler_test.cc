#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/philox.h"
#include "sampling/noise.h"

namespace deepinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(p > 0 ? static_cast<float>(std::log(p)) : -kInf);
  return logits;
}

std::vector<float> random_logits(uint32_t seed, size_t n, float deviation) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(n);
  for (float& l : logits) l = normal(rng);
  return logits;
}

std::vector<int32_t> survivors_of(const std::vector<float>& logits, const SamplingParams& params) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  const auto got = sampler.survivors(logits, params);
  EXPECT_TRUE(got.ok());
  std::vector<int32_t> ids(got->begin(), got->end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

/// The definition: sort everything, cut in the documented order.
std::vector<int32_t> survivors_by_sorting(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  const double highest = logit(ids[0]);
  const auto weight = [&](int32_t id) { return std::exp((logit(id) - highest) / params.temperature); };
  if (params.top_k > 0 && params.top_k < static_cast<int64_t>(ids.size()))
    ids.resize(static_cast<size_t>(params.top_k));
  if (params.top_p < 1) {
    double total = 0;
    for (const int32_t id : ids) total += weight(id);
    double reached = 0;
    size_t n = 0;
    while (n < ids.size() && reached < params.top_p * total) reached += weight(ids[n++]);
    ids.resize(n);
  }
  std::erase_if(ids, [&](int32_t id) { return logit(id) == -kInf || weight(id) < params.min_p; });
  std::sort(ids.begin(), ids.end());
  return ids;
}

using Ids = std::vector<int32_t>;

TEST(Truncation, ByHand) {
  const std::vector<float> logits = logits_of({0.05, 0.4, 0.05, 0.2, 0.3});
  const auto at = [](int64_t top_k, float top_p, float min_p) {
    return SamplingParams{.temperature = 1, .top_k = top_k, .top_p = top_p, .min_p = min_p};
  };
  EXPECT_EQ(survivors_of(logits, at(0, 1, 0)), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(survivors_of(logits, at(2, 1, 0)), (Ids{1, 4}));
  EXPECT_EQ(survivors_of(logits, at(4, 1, 0)), (Ids{0, 1, 3, 4}));  // of the two equal ones the lower id
  EXPECT_EQ(survivors_of(logits, at(0, 0.39f, 0)), (Ids{1}));
  EXPECT_EQ(survivors_of(logits, at(0, 0.41f, 0)), (Ids{1, 4}));  // the one that crosses is in
  EXPECT_EQ(survivors_of(logits, at(0, 0.71f, 0)), (Ids{1, 3, 4}));
  EXPECT_EQ(survivors_of(logits, at(0, 0.92f, 0)), (Ids{0, 1, 3, 4}));
  EXPECT_EQ(survivors_of(logits, at(0, 0.99f, 0)), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(survivors_of(logits, at(0, 1, 0.4f)), (Ids{1, 3, 4}));
  EXPECT_EQ(survivors_of(logits, at(0, 1, 0.6f)), (Ids{1, 4}));
  // top-p acts on what top-k left: 0.4 of 0.7 is 0.571.
  EXPECT_EQ(survivors_of(logits, at(2, 0.56f, 0)), (Ids{1}));
  EXPECT_EQ(survivors_of(logits, at(2, 0.58f, 0)), (Ids{1, 4}));
  // min-p after both.
  EXPECT_EQ(survivors_of(logits, at(3, 0.95f, 0.6f)), (Ids{1, 4}));
}

TEST(Truncation, TemperatureComesFirst) {
  const std::vector<float> logits = logits_of({0.6, 0.3, 0.1});
  SamplingParams params{.temperature = 2, .min_p = 0.6f};  // ratios become sqrt(1/2), sqrt(1/6)
  EXPECT_EQ(survivors_of(logits, params), (Ids{0, 1}));
  params.temperature = 0.5f;  // 1/4, 1/36
  EXPECT_EQ(survivors_of(logits, params), (Ids{0}));
  params = {.temperature = 0.5f, .top_p = 0.75f};  // 0.36/0.46 = 0.783
  EXPECT_EQ(survivors_of(logits, params), (Ids{0}));
  params.temperature = 1;
  EXPECT_EQ(survivors_of(logits, params), (Ids{0, 1}));
}

TEST(Truncation, ForbiddenTokensNeverSurvive) {
  const std::vector<float> logits = {-kInf, 1.0f, -kInf, 1.0f, -kInf};
  for (const int64_t top_k : {0, 4}) {
    for (const float top_p : {1.0f, 0.999f}) {
      for (const float min_p : {0.0f, 0.5f}) {
        for (const float temperature : {1e-4f, 1.0f, 1e9f, 3e38f}) {
          const SamplingParams params{.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p};
          EXPECT_EQ(survivors_of(logits, params), (Ids{1, 3}));
        }
      }
    }
  }
}

TEST(Truncation, AgreesWithSortingEverything) {
  for (const size_t n : {1u, 2u, 300u, 5000u}) {
    for (const float deviation : {0.0f, 0.01f, 3.0f, 30.0f}) {
      std::vector<float> logits = random_logits(static_cast<uint32_t>(n), n, deviation);
      for (size_t i = 0; i < n; i += 7) logits[i] = std::round(logits[i]);  // ties
      for (size_t i = 1; i < n; i += 11) logits[i] = -kInf;
      for (const float temperature : {0.3f, 1.0f, 50.0f}) {
        for (const int64_t top_k : {0, 2, 40, 1000}) {
          for (const float top_p : {0.1f, 0.9f, 0.9999f, 1.0f}) {
            for (const float min_p : {0.0f, 0.05f}) {
              const SamplingParams params{.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p};
              EXPECT_EQ(survivors_of(logits, params), survivors_by_sorting(logits, params))
                  << n << ' ' << deviation << ' ' << temperature << ' ' << top_k << ' ' << top_p << ' ' << min_p;
            }
          }
        }
      }
    }
  }
}

TEST(SamplingParams, NonFiniteAndOutOfRangeValuesAreRefusedByName) {
  const auto expect_refused = [](const SamplingParams& params, const std::string& field) {
    const Status status = validate(params);
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(status.error().message.starts_with(field + " is ")) << status.error().message;
    EXPECT_NE(status.error().message.find("must be"), std::string::npos);
    Sampler sampler(2);
    EXPECT_FALSE(sampler.sample(std::vector<float>{1, 2}, 0, params).ok());
  };
  for (const float bad : {kNan, kInf, -kInf, -1.0f}) expect_refused({.temperature = bad}, "temperature");
  for (const float bad : {kNan, kInf, -0.1f, 1.1f}) expect_refused({.temperature = 1, .top_p = bad}, "top_p");
  for (const float bad : {kNan, kInf, -0.1f, 1.1f}) expect_refused({.temperature = 1, .min_p = bad}, "min_p");
  expect_refused({.temperature = 1, .top_k = -2}, "top_k");
  EXPECT_EQ(validate({.top_k = -2}).error().message, "top_k is -2, must be at least -1 (-1 and 0 switch it off)");
  for (const float good : {0.0f, 1e-6f, 1e-30f, 2.0f, 1e9f}) EXPECT_TRUE(validate({.temperature = good}).ok());
  for (const int64_t good : {-1L, 0L, 1L, 1L << 31}) EXPECT_TRUE(validate({.top_k = good}).ok());
  for (const float good : {0.0f, 1e-9f, 1.0f}) EXPECT_TRUE(validate({.top_p = good, .min_p = good}).ok());
}

TEST(Sampler, GreedyEquivalents) {
  std::vector<float> logits = random_logits(5, 1000, 2);
  logits[400] = logits[300] = 20;  // a tie for the highest
  Sampler sampler(1000);
  const std::vector<SamplingParams> all = {{.temperature = 0},
                                           {.temperature = 1e-6f},
                                           {.temperature = 1e-30f},
                                           {.temperature = 1, .top_k = 1},
                                           {.temperature = 1e9f, .top_k = 1},
                                           {.temperature = 1, .top_p = 0},
                                           {.temperature = 1, .min_p = 1}};
  for (SamplingParams params : all) {
    for (int64_t position = 0; position < 20; ++position) {
      params.seed = static_cast<uint64_t>(position) * 77;
      EXPECT_EQ(*sampler.sample(logits, position, params), 300);
    }
  }
  logits[400] = 20.001f;
  for (const SamplingParams& params : all) EXPECT_EQ(*sampler.sample(logits, 3, params), 400);
  // A nucleus smaller than the best token is the best token.
  EXPECT_EQ(*sampler.sample(logits, 3, {.temperature = 1, .top_p = 1e-9f}), 400);
}

TEST(Sampler, SignedZerosTie) {
  Sampler sampler(3);
  EXPECT_EQ(*sampler.sample(std::vector<float>{-1.0f, -0.0f, 0.0f}, 0, {}), 1);
  EXPECT_EQ(*sampler.sample(std::vector<float>{-1.0f, 0.0f, -0.0f}, 0, {}), 1);
}

TEST(Sampler, SwitchedOffTruncationsDrawTheSame) {
  const std::vector<float> logits = random_logits(6, 500, 2);
  Sampler sampler(500);
  for (int64_t position = 0; position < 300; ++position) {
    const int32_t plain = *sampler.sample(logits, position, {.temperature = 1.3f, .seed = 9});
    for (const int64_t top_k : {int64_t{-1}, int64_t{0}, int64_t{500}, int64_t{501}, int64_t{1} << 31}) {
      const SamplingParams params{.temperature = 1.3f, .top_k = top_k, .top_p = 1, .min_p = 0, .seed = 9};
      EXPECT_EQ(*sampler.sample(logits, position, params), plain);
    }
    // Truncations that remove nothing take other code paths to the same token.
    EXPECT_EQ(*sampler.sample(logits, position, {.temperature = 1.3f, .min_p = 1e-30f, .seed = 9}), plain);
  }
}

TEST(Sampler, EqualsTheArgmaxOfLogitPlusNoise) {
  for (const float deviation : {0.1f, 3.0f, 20.0f}) {
    const std::vector<float> logits = random_logits(7, 777, deviation);  // odd size: the last pair is half
    Sampler sampler(777);
    for (int64_t position = 0; position < 200; ++position) {
      const SamplingParams params{.temperature = 0.7f, .seed = 1234};
      double best = -INFINITY;
      int32_t best_id = -1;
      for (int32_t id = 0; id < 777; ++id) {
        const double score = logits[static_cast<size_t>(id)] / static_cast<double>(params.temperature) +
                             gumbel(token_uniform(params.seed, static_cast<uint64_t>(position), id));
        if (score > best) {
          best = score;
          best_id = id;
        }
      }
      EXPECT_EQ(*sampler.sample(logits, position, params), best_id);
    }
  }
}

TEST(Sampler, ForbiddingAnotherTokenKeepsTheDraw) {
  std::vector<float> logits = random_logits(8, 400, 2);
  Sampler sampler(400);
  const SamplingParams params{.temperature = 1, .seed = 4};
  for (int64_t position = 0; position < 100; ++position) {
    const int32_t drawn = *sampler.sample(logits, position, params);
    std::vector<float> masked = logits;
    for (size_t i = 0; i < masked.size(); i += 3) {
      if (static_cast<int32_t>(i) != drawn) masked[i] = -kInf;
    }
    EXPECT_EQ(*sampler.sample(masked, position, params), drawn);
  }
}

TEST(Sampler, DependsOnLogitsPositionAndParamsOnly) {
  const std::vector<float> logits = random_logits(9, 3000, 3);
  const SamplingParams params{.temperature = 1, .top_p = 0.95f, .seed = 11};
  std::vector<int32_t> alone;
  for (int64_t position = 0; position < 50; ++position)
    alone.push_back(*Sampler(3000).sample(logits, position, params));
  Sampler used(3000);  // other work in between, positions backwards
  for (int64_t position = 49; position >= 0; --position) {
    (void)used.sample(random_logits(static_cast<uint32_t>(position), 3000, 1), 5, {.temperature = 2, .top_k = 17});
    EXPECT_EQ(*used.sample(logits, position, params), alone[static_cast<size_t>(position)]);
  }
  EXPECT_GT(std::set<int32_t>(alone.begin(), alone.end()).size(), 5u);
}

TEST(Sampler, SequencesOfARequestDifferAndRepeat) {
  const std::vector<float> logits = random_logits(10, 2000, 1);
  const auto text = [&](uint64_t sequence_idx) {
    Sampler sampler(2000);
    std::vector<int32_t> ids;
    for (int64_t position = 0; position < 20; ++position) {
      ids.push_back(*sampler.sample(logits, position, {.temperature = 1, .seed = derive_seed(7, sequence_idx)}));
    }
    return ids;
  };
  std::set<std::vector<int32_t>> texts;
  for (uint64_t j = 0; j < 4; ++j) {
    EXPECT_EQ(text(j), text(j));
    texts.insert(text(j));
  }
  EXPECT_EQ(texts.size(), 4u);
}

/// Pearson's statistic of `n_draws` draws over consecutive positions against `probabilities`.
double chi_square(const std::vector<float>& logits, const SamplingParams& params,
                  const std::vector<double>& probabilities, int64_t n_draws) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::vector<int64_t> counts(logits.size(), 0);
  for (int64_t position = 0; position < n_draws; ++position) {
    ++counts[static_cast<size_t>(*sampler.sample(logits, position, params))];
  }
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(n_draws);
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << i;
    } else {
      statistic += (static_cast<double>(counts[i]) - expected) * (static_cast<double>(counts[i]) - expected) / expected;
    }
  }
  return statistic;
}

TEST(Sampler, DrawsTheRightDistribution) {
  const std::vector<double> p = {0.02, 0.3, 0.1, 0.25, 0.05, 0.08, 0.2};
  const std::vector<float> logits = logits_of(p);
  // 0.999 quantiles of chi-square: 22.5 with 6 degrees of freedom, 16.3 with 3, 13.8 with 2.
  EXPECT_LT(chi_square(logits, {.temperature = 1, .seed = 1}, p, 40000), 22.5);
  EXPECT_LT(chi_square(logits, {.temperature = 1, .seed = 2}, p, 40000), 22.5);

  std::vector<double> tempered;
  for (const double x : p) tempered.push_back(std::pow(x, 2));
  const double total = std::accumulate(tempered.begin(), tempered.end(), 0.0);
  for (double& x : tempered) x /= total;
  EXPECT_LT(chi_square(logits, {.temperature = 0.5f, .seed = 3}, tempered, 40000), 22.5);

  const std::vector<double> top_3 = {0, 0.3 / 0.75, 0, 0.25 / 0.75, 0, 0, 0.2 / 0.75};
  EXPECT_LT(chi_square(logits, {.temperature = 1, .top_k = 3, .seed = 4}, top_3, 20000), 13.8);
  EXPECT_LT(chi_square(logits, {.temperature = 1, .top_p = 0.7f, .seed = 5}, top_3, 20000), 13.8);
  const std::vector<double> min_p = {0, 0.3 / 0.85, 0.1 / 0.85, 0.25 / 0.85, 0, 0, 0.2 / 0.85};
  EXPECT_LT(chi_square(logits, {.temperature = 1, .min_p = 0.3f, .seed = 6}, min_p, 20000), 16.3);
}

TEST(Sampler, DistributionOverSeedsAtOnePosition) {
  const std::vector<double> p = {0.5, 0.2, 0.3};
  const std::vector<float> logits = logits_of(p);
  Sampler sampler(3);
  double counts[3] = {};
  for (uint64_t seed = 0; seed < 20000; ++seed) ++counts[*sampler.sample(logits, 5, {.temperature = 1, .seed = seed})];
  double statistic = 0;
  for (size_t i = 0; i < 3; ++i) statistic += (counts[i] - p[i] * 20000) * (counts[i] - p[i] * 20000) / (p[i] * 20000);
  EXPECT_LT(statistic, 13.8);
}

TEST(Sampler, ExtremeTemperatures) {
  std::vector<float> logits = random_logits(12, 1000, 5);
  logits[10] = std::numeric_limits<float>::max();
  logits[20] = std::numeric_limits<float>::lowest();
  logits[30] = -kInf;
  Sampler sampler(1000);
  for (const float temperature : {1e-30f, 1e-5f, 1.1e-5f, 1.0f, 1e9f}) {
    EXPECT_EQ(*sampler.sample(logits, 1, {.temperature = temperature, .top_p = 0.9f, .min_p = 0.01f}), 10);
  }
  logits[10] = 1;
  std::set<int32_t> seen;
  for (int64_t position = 0; position < 3000; ++position) {
    const int32_t id = *sampler.sample(logits, position, {.temperature = 3e38f});
    EXPECT_NE(id, 30);
    seen.insert(id);
  }
  EXPECT_GT(seen.size(), 900u);  // all but uniform: 1000 * (1 - e^-3) = 950
}

TEST(Sampler, BadLogitsAreErrors) {
  Sampler sampler(4);
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.temperature = 1}}) {
    auto got = sampler.sample(std::vector<float>{0, 1, kNan, 2}, 0, params);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().message, "logit of token 2 is nan, must be finite or -inf");
    got = sampler.sample(std::vector<float>{0, -kNan, 1, 2}, 0, params);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().message, "logit of token 1 is nan, must be finite or -inf");
    got = sampler.sample(std::vector<float>{0, 1, 2, kInf}, 0, params);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().message, "logit of token 3 is inf, must be finite or -inf");
    got = sampler.sample(std::vector<float>(4, -kInf), 0, params);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().message, "no token is allowed: every one of 4 logits is -inf");
  }
}

}  // namespace
}  // namespace deepinfer
