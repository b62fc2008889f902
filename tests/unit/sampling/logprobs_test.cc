#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sampling/exp.h"

namespace deepinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ExpNonpositive, WithinTwoUlpOfTheLibrary) {
  for (double x = 0; x > -708; x -= 0.0137) {
    const double want = static_cast<double>(std::exp(static_cast<long double>(x)));
    EXPECT_LE(std::fabs(exp_nonpositive(x) - want), 2 * (std::nextafter(want, 2.0) - want)) << x;
  }
  EXPECT_EQ(exp_nonpositive(0), 1.0);
  EXPECT_EQ(exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(exp_nonpositive(-1e300), 0.0);
  EXPECT_EQ(exp_nonpositive(-INFINITY), 0.0);
  EXPECT_TRUE(std::isnan(exp_nonpositive(NAN)));
}

TEST(LogSumExp, MatchesLongDouble) {
  std::mt19937 rng(2);
  std::normal_distribution<float> normal(3, 8);
  for (const size_t n : {1u, 7u, 8u, 1003u, 129280u}) {
    std::vector<float> logits(n);
    for (float& l : logits) l = normal(rng);
    logits[n / 2] = -kInf;
    logits[0] = 1;
    long double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<long double>(l));
    EXPECT_NEAR(log_sum_exp(logits), static_cast<double>(std::log(sum)), 1e-13);
  }
}

TEST(LogSumExp, Extremes) {
  EXPECT_EQ(log_sum_exp(std::vector<float>{-kInf, 3, -kInf}), 3.0);
  EXPECT_EQ(log_sum_exp(std::vector<float>{-kInf, -kInf}), -INFINITY);
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{1, kNan})));
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{1, kInf})));
  const float max = std::numeric_limits<float>::max();
  EXPECT_NEAR(log_sum_exp(std::vector<float>{max, max}), static_cast<double>(max), 1e25);
}

TEST(Logprob, IsFiniteOrOmitted) {
  const std::vector<float> logits = {std::log(0.25f), -kInf, std::log(0.75f)};
  const double normalizer = log_sum_exp(logits);
  EXPECT_NEAR(*logprob(logits, 0, normalizer), std::log(0.25), 1e-7);
  EXPECT_NEAR(*logprob(logits, 2, normalizer), std::log(0.75), 1e-7);
  EXPECT_EQ(logprob(logits, 1, normalizer), std::nullopt);
  const std::vector<float> none = {-kInf, -kInf};
  EXPECT_EQ(logprob(none, 0, log_sum_exp(none)), std::nullopt);
  const std::vector<float> nan = {0, kNan};
  EXPECT_EQ(logprob(nan, 0, log_sum_exp(nan)), std::nullopt);
  EXPECT_EQ(*logprob(std::vector<float>{5}, 0, 5 - 1e-16), 0.0);
}

TEST(TopLogprobs, DescendingTiesByLowestId) {
  const std::vector<float> logits = {1, 3, 2, 3, -kInf, 3, 0};
  const double normalizer = log_sum_exp(logits);
  std::vector<TokenLogprob> out(5);
  ASSERT_EQ(top_logprobs(logits, normalizer, out), 5);
  const int32_t want[5] = {1, 3, 5, 2, 0};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(out[i].token_id, want[i]);
    EXPECT_EQ(out[i].logprob, *logprob(logits, want[i], normalizer));
  }
  out.resize(20);
  EXPECT_EQ(top_logprobs(logits, normalizer, out), 6);  // the impossible one is left out
  EXPECT_EQ(top_logprobs(logits, normalizer, {}), 0);
  const std::vector<float> nan = {0, kNan};
  EXPECT_EQ(top_logprobs(nan, log_sum_exp(nan), out), 0);
}

TEST(TopLogprobs, AgreesWithSorting) {
  std::mt19937 rng(3);
  std::vector<float> logits(5000);
  for (float& l : logits) l = static_cast<float>(rng() % 700);  // many ties
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  std::vector<TokenLogprob> out(50);
  ASSERT_EQ(top_logprobs(logits, log_sum_exp(logits), out), 50);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i].token_id, ids[i]);
}

}  // namespace
}  // namespace deepinfer
