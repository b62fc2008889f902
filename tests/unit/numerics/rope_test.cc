#include "numerics/rope.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/unit/numerics/vectors.h"

namespace deepinfer {
namespace {

constexpr YarnParams kReleasedYarn{
    .factor = 16, .beta_fast = 32, .beta_slow = 1, .original_max_position_embeddings = 65536};

int64_t distance_in_ulp(float a, float b) {
  return std::abs(static_cast<int64_t>(std::bit_cast<int32_t>(a)) - std::bit_cast<int32_t>(b));
}

void expect_within_two_ulp(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(distance_in_ulp(got[i], static_cast<float>(want[i])), 2) << i;
}

TEST(RopeFrequencies, MatchTheVectors) {
  const auto vectors = load_vectors().at("rope");
  expect_within_two_ulp(rope_frequencies(64, 10000, nullptr), vectors.at("freq_plain_10000"));
  expect_within_two_ulp(rope_frequencies(64, 160000, &kReleasedYarn), vectors.at("freq_yarn_160000"));
}

TEST(RopeFrequencies, YarnLeavesFastPairsAndDividesSlowOnes) {
  const std::vector<float> plain = rope_frequencies(64, 160000, nullptr);
  const std::vector<float> yarn = rope_frequencies(64, 160000, &kReleasedYarn);
  for (size_t i = 0; i <= 15; ++i) EXPECT_EQ(yarn[i], plain[i]) << i;
  for (size_t i = 16; i < 25; ++i) EXPECT_TRUE(yarn[i] < plain[i] && yarn[i] > plain[i] / 16) << i;
  for (size_t i = 25; i < 32; ++i) EXPECT_EQ(yarn[i], plain[i] / 16) << i;
}

TEST(RopeFrequencies, EqualBoundsGiveANarrowRampNotADivisionByZero) {
  // beta just above context/2pi: the channel is a little below 0, so both bounds are 0 and pair 0 alone is kept.
  const YarnParams yarn{.factor = 4, .beta_fast = 10.7, .beta_slow = 10.7, .original_max_position_embeddings = 64};
  const std::vector<float> plain = rope_frequencies(16, 10000, nullptr);
  const std::vector<float> blended = rope_frequencies(16, 10000, &yarn);
  EXPECT_EQ(blended[0], plain[0]);
  for (size_t i = 1; i < blended.size(); ++i) EXPECT_EQ(blended[i], plain[i] / 4);
}

TEST(RopeAngle, IsTheSineOfTheRoundedProduct) {
  const std::vector<float> f = rope_frequencies(64, 160000, &kReleasedYarn);
  for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{12345}, int64_t{1'048'575}}) {
    for (const float inv_freq : f) {
      const float theta = static_cast<float>(position) * inv_freq;
      const SinCos got = rope_angle(position, inv_freq);
      EXPECT_EQ(got.cos, static_cast<float>(std::cos(static_cast<long double>(theta))));
      EXPECT_EQ(got.sin, static_cast<float>(std::sin(static_cast<long double>(theta))));
    }
  }
  EXPECT_EQ(rope_angle(0, 0.5f).cos, 1.0f);
  EXPECT_EQ(rope_angle(0, 0.5f).sin, 0.0f);
}

TEST(RotatePairs, RoundsEveryProductAndTheSum) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  std::vector<Bf16> x(64);
  std::vector<SinCos> angles(32);
  for (Bf16& v : x) v = to_bf16(normal(rng));
  for (size_t i = 0; i < angles.size(); ++i) angles[i] = rope_angle(static_cast<int64_t>(i) * 977, 0.37f);
  for (const bool inverse : {false, true}) {
    std::vector<Bf16> y = x;
    rotate_pairs(y.data(), angles.data(), 32, inverse);
    for (size_t i = 0; i < 32; ++i) {
      const double a = to_float(x[2 * i]);
      const double b = to_float(x[2 * i + 1]);
      const double c = angles[i].cos;
      const double s = inverse ? -angles[i].sin : angles[i].sin;
      // Products of binary32 numbers are exact in double, so these casts are the fp32 roundings.
      const float re = static_cast<float>(a * c) - static_cast<float>(b * s);
      const float im = static_cast<float>(a * s) + static_cast<float>(b * c);
      EXPECT_EQ(y[2 * i], to_bf16(re));
      EXPECT_EQ(y[2 * i + 1], to_bf16(im));
    }
  }
}

TEST(RotatePairs, InverseUndoesUpToRounding) {
  std::vector<Bf16> x = {to_bf16(1.5f), to_bf16(-0.25f), to_bf16(3.0f), to_bf16(2.0f)};
  const std::vector<Bf16> before = x;
  const SinCos angles[2] = {rope_angle(1000, 0.6876560f), rope_angle(1000, 0.05f)};
  rotate_pairs(x.data(), angles, 2, false);
  rotate_pairs(x.data(), angles, 2, true);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(to_float(x[i]), to_float(before[i]), 0.03f);
}

}  // namespace
}  // namespace deepinfer
