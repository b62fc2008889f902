#include "numerics/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numerics/e2m1.h"
#include "tests/unit/numerics/vectors.h"

namespace deepinfer {
namespace {

TEST(SoftplusSqrt, MatchesTheVectors) {
  const auto v = load_vectors().at("router_score");
  for (size_t i = 0; i < v.at("logit").size(); ++i) {
    EXPECT_FLOAT_EQ(softplus_sqrt(v.at("logit")[i].get<float>()),
                    static_cast<float>(v.at("sqrt_softplus")[i].get<double>()));
  }
}

TEST(SoftplusSqrt, DoesNotUnderflowAndSwitchesAbove20) {
  EXPECT_GT(softplus_sqrt(-80.0f), 0.0f);
  EXPECT_NEAR(softplus_sqrt(-40.0f), std::exp(-20.0), 1e-14);
  EXPECT_EQ(softplus_sqrt(25.0f), 5.0f);
  EXPECT_FLOAT_EQ(softplus_sqrt(20.0f), std::sqrt(static_cast<float>(std::log1p(std::exp(20.0)))));
  EXPECT_TRUE(std::isnan(softplus_sqrt(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Sigmoid, LimitsAndSymmetry) {
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(200.0f), 1.0f);
  EXPECT_EQ(sigmoid(-1000.0f), 0.0f);
  for (float x = -20; x <= 20; x += 0.37f) EXPECT_NEAR(sigmoid(x) + sigmoid(-x), 1.0f, 2e-7f);
}

TEST(Silu, Limits) {
  EXPECT_EQ(silu(0.0f), 0.0f);
  EXPECT_EQ(silu(100.0f), 100.0f);
  EXPECT_EQ(silu(-1000.0f), 0.0f);
  EXPECT_FLOAT_EQ(silu(1.0f), 0.7310585786f);
}

TEST(E2m1, MatchesTheTieVectors) {
  const auto v = load_vectors().at("e2m1_ties");
  for (size_t i = 0; i < v.at("input").size(); ++i) {
    const uint8_t code = float_to_e2m1(v.at("input")[i].get<float>());
    EXPECT_EQ(code, v.at("codes")[i].get<int>());
    EXPECT_EQ(e2m1_to_float(code), v.at("values")[i].get<float>());
  }
}

}  // namespace
}  // namespace deepinfer
