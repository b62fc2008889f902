#include "numerics/block_quant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"
#include "tests/unit/numerics/vectors.h"

namespace deepinfer {
namespace {

struct Blocks {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  std::vector<Bf16> values;
  std::vector<float> floats;
};

enum class Rule { kFp8, kMxfp4, kNvfp4 };

Blocks quantize(Rule rule, const std::vector<Bf16>& x) {
  const int64_t n = static_cast<int64_t>(x.size());
  Blocks out;
  out.values.resize(x.size());
  out.floats.resize(x.size());
  out.codes.resize(rule == Rule::kFp8 ? x.size() : x.size() / 2);
  out.scales.resize(x.size() / (rule == Rule::kNvfp4 ? kNvfp4Block : kFp8Block));
  uint8_t* codes = out.codes.data();
  uint8_t* scales = out.scales.data();
  switch (rule) {
    case Rule::kFp8:
      quantize_fp8_block32(x.data(), n, codes, scales);
      dequantize_fp8_block32(codes, scales, n, out.values.data());
      dequantize_fp8_block32(codes, scales, n, out.floats.data());
      break;
    case Rule::kMxfp4:
      quantize_mxfp4_block32(x.data(), n, codes, scales);
      dequantize_mxfp4_block32(codes, scales, n, out.values.data());
      dequantize_mxfp4_block32(codes, scales, n, out.floats.data());
      break;
    case Rule::kNvfp4:
      quantize_nvfp4_block16(x.data(), n, codes, scales);
      dequantize_nvfp4_block16(codes, scales, n, out.values.data());
      dequantize_nvfp4_block16(codes, scales, n, out.floats.data());
      break;
  }
  return out;
}

TEST(BlockQuant, MatchesEveryParityVector) {
  const auto vectors = load_vectors();
  int n_seen = 0;
  for (const auto& v : vectors.at("quant_blocks")) {
    const std::string format = v.at("format");
    SCOPED_TRACE(format);
    const bool fp8 = format.starts_with("fp8");
    const bool nvfp4 = format.find("block 16") != std::string::npos;
    const Blocks got = quantize(fp8 ? Rule::kFp8 : nvfp4 ? Rule::kNvfp4 : Rule::kMxfp4, bf16_from_hex(v.at("x_bf16")));
    EXPECT_EQ(got.codes, bytes_from_hex(v.at(fp8 ? "codes_hex" : "packed_hex")));
    ASSERT_EQ(got.scales.size(), 1u);
    if (nvfp4) {
      EXPECT_EQ(got.scales, bytes_from_hex(v.at("scale_e4m3_hex")));
      EXPECT_EQ(e4m3_to_float(got.scales[0]), v.at("scale").get<float>());
    } else {
      EXPECT_EQ(got.scales[0], v.at("scale_e8m0").get<int>());
    }
    if (v.contains("dequant_bf16")) {
      EXPECT_EQ(got.values, bf16_from_hex(v.at("dequant_bf16")));
    }
    ++n_seen;
  }
  EXPECT_EQ(n_seen, 12);
}

TEST(BlockQuant, DecodesRowsOfTheReleasedCheckpoint) {
  const auto vectors = load_vectors();
  float w[32];
  const auto& dense = vectors.at("fp8_dense_row");
  dequantize_fp8_block32(bytes_from_hex(dense.at("weight_hex")).data(),
                         bytes_from_hex(dense.at("scale_e8m0_hex")).data(), 32, w);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(w[i], dense.at("first8")[i].get<float>());

  const auto& expert = vectors.at("fp4_expert_row");
  dequantize_weight_fp4_row32(bytes_from_hex(expert.at("packed_hex")).data(),
                              bytes_from_hex(expert.at("scale_e8m0_hex")).data(), {.n_rows = 1, .n_columns = 32}, w);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(w[i], expert.at("first16")[i].get<float>());
}

std::vector<Bf16> random_values(uint32_t seed, size_t n) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-12, 8);
  std::vector<Bf16> x(n);
  float size = 1;
  for (size_t i = 0; i < n; ++i) {
    if (i % 16 == 0) size = std::exp2(exponent(rng));
    x[i] = to_bf16(size * normal(rng));
  }
  return x;
}

TEST(BlockQuant, Bf16ResultIsExactAndErrorIsBounded) {
  const std::vector<Bf16> x = random_values(7, 32 * 512);
  for (const Rule rule : {Rule::kFp8, Rule::kMxfp4, Rule::kNvfp4}) {
    const Blocks got = quantize(rule, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(to_float(got.values[i]), got.floats[i]);
      const size_t block = i / (rule == Rule::kNvfp4 ? 16 : 32);
      const float scale = rule == Rule::kNvfp4 ? e4m3_to_float(got.scales[block]) : e8m0_to_float(got.scales[block]);
      // Half a step of the coarsest interval: 16 of 448, 1 of 6. A main-KV scale can round down by a third (from 1.5 to
      // 1 of its smallest step), so the clamp there may cut 9 to 6.
      const float bound = rule == Rule::kFp8 ? 16 * scale : rule == Rule::kMxfp4 ? scale : 3 * scale;
      EXPECT_LE(std::fabs(to_float(x[i]) - got.floats[i]), bound);
    }
  }
}

TEST(BlockQuant, Fp8RequantizationIsLossless) {
  const std::vector<Bf16> x = random_values(8, 32 * 512);
  const Blocks once = quantize(Rule::kFp8, x);
  EXPECT_EQ(quantize(Rule::kFp8, once.values).values, once.values);
}

TEST(BlockQuant, MatchesDivisionInDouble) {
  const std::vector<Bf16> x = random_values(9, 32 * 512);
  const Blocks fp8 = quantize(Rule::kFp8, x);
  const Blocks mxfp4 = quantize(Rule::kMxfp4, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = to_float(x[i]);
    EXPECT_EQ(fp8.codes[i], float_to_e4m3(static_cast<float>(v / std::ldexp(1.0, fp8.scales[i / 32] - 127))));
    const uint8_t byte = mxfp4.codes[i / 2];
    const int nibble = i % 2 == 0 ? byte & 15 : byte >> 4;
    EXPECT_EQ(nibble, float_to_e2m1(static_cast<float>(v / std::ldexp(1.0, mxfp4.scales[i / 32] - 127))));
  }
}

TEST(BlockQuant, Nvfp4ClampsWhereTheScaleRoundedDown) {
  std::vector<Bf16> x(16, to_bf16(0.0f));
  x[3] = to_bf16(6.3125f);  // /6 = 1.052 rounds to 1, the quotient exceeds 6
  const Blocks got = quantize(Rule::kNvfp4, x);
  EXPECT_EQ(e4m3_to_float(got.scales[0]), 1.0f);
  EXPECT_EQ(got.floats[3], 6.0f);
  x[3] = to_bf16(-1e6f);  // beyond 448 * 6
  EXPECT_EQ(quantize(Rule::kNvfp4, x).floats[3], -448.0f * 6);
}

TEST(BlockQuant, NonFiniteInputPoisonsItsBlockOnly) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const Rule rule : {Rule::kFp8, Rule::kMxfp4, Rule::kNvfp4}) {
      std::vector<Bf16> x(96, to_bf16(1.0f));
      x[40] = to_bf16(bad);
      const Blocks got = quantize(rule, x);
      const size_t block = rule == Rule::kNvfp4 ? 16 : 32;
      for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(got.floats[i]), i / block == 40 / block) << i;
    }
  }
}

TEST(BlockQuant, LargestFiniteAndSubnormalInputs) {
  std::vector<Bf16> x(32, to_bf16(0.0f));
  x[0] = Bf16{0x7f00};  // 2^127
  x[1] = Bf16{0x0001};  // smallest subnormal
  EXPECT_EQ(quantize(Rule::kFp8, x).floats[0], 0x1p127f);
  EXPECT_EQ(quantize(Rule::kMxfp4, x).floats[0], 0x1p127f);
  EXPECT_EQ(quantize(Rule::kMxfp4, x).floats[1], 0.0f);
  x[0] = Bf16{0x0040};  // 2^-127, the smallest code of the smallest scale
  EXPECT_EQ(quantize(Rule::kMxfp4, x).floats[0], 0x1p-127f);
}

TEST(WeightQuant, ScaleIsTheRuleOfTheCheckpointWriter) {
  std::vector<float> w(64 * 96);
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0, 0.02f);
  for (float& v : w) v = normal(rng);
  for (int64_t r = 32; r < 64; ++r) {
    for (int64_t c = 64; c < 96; ++c) w[static_cast<size_t>(r * 96 + c)] = 0;  // the last block is all zero
  }
  const MatrixSize size{.n_rows = 64, .n_columns = 96};

  std::vector<uint8_t> codes(w.size());
  std::vector<uint8_t> scales(2 * 3);
  std::vector<float> back(w.size());
  quantize_weight_fp8_32x32(w.data(), size, codes.data(), scales.data());
  dequantize_weight_fp8_32x32(codes.data(), scales.data(), size, back.data());
  EXPECT_EQ(scales[5], 127);
  float amax = 0;
  for (int64_t r = 0; r < 32; ++r) {
    for (int64_t c = 32; c < 64; ++c) amax = std::fmax(amax, std::fabs(w[static_cast<size_t>(r * 96 + c)]));
  }
  EXPECT_EQ(scales[1], 127 + static_cast<int>(std::ceil(std::log2(amax / 448))));
  for (size_t i = 0; i < w.size(); ++i) {
    const float s = e8m0_to_float(scales[i / 96 / 32 * 3 + i % 96 / 32]);
    EXPECT_EQ(back[i], e4m3_to_float(float_to_e4m3(w[i] / s)) * s);
  }
  std::vector<uint8_t> codes_again(w.size());
  std::vector<uint8_t> scales_again(scales.size());
  quantize_weight_fp8_32x32(back.data(), size, codes_again.data(), scales_again.data());
  std::vector<float> back_again(w.size());
  dequantize_weight_fp8_32x32(codes_again.data(), scales_again.data(), size, back_again.data());
  EXPECT_EQ(back_again, back);

  std::vector<uint8_t> packed(w.size() / 2);
  std::vector<uint8_t> row_scales(64 * 3);
  quantize_weight_fp4_row32(w.data(), size, packed.data(), row_scales.data());
  dequantize_weight_fp4_row32(packed.data(), row_scales.data(), size, back.data());
  EXPECT_EQ(row_scales[32 * 3 + 2], 127);
  for (size_t i = 0; i < w.size(); ++i) {
    const float s = e8m0_to_float(row_scales[i / 32]);
    EXPECT_EQ(back[i], e2m1_to_float(float_to_e2m1(w[i] / s)) * s);
  }
}

TEST(WeightQuant, NonFiniteWeightsGetANanScale) {
  std::vector<float> w(32 * 32, 1.0f);
  w[5] = std::numeric_limits<float>::quiet_NaN();
  const MatrixSize size{.n_rows = 32, .n_columns = 32};
  std::vector<uint8_t> codes(w.size());
  std::vector<uint8_t> scales(32);
  quantize_weight_fp8_32x32(w.data(), size, codes.data(), scales.data());
  EXPECT_EQ(scales[0], 255);
  quantize_weight_fp4_row32(w.data(), size, codes.data(), scales.data());
  EXPECT_EQ(scales[0], 255);
  EXPECT_EQ(scales[1], 125);  // 1/6 -> 2^-2
}

TEST(BlockQuantDeathTest, RefusesPartialBlocks) {
  Bf16 x[32] = {};
  uint8_t codes[32];
  uint8_t scales[2];
  EXPECT_DEATH(quantize_fp8_block32(x, 31, codes, scales), "check failed");
  EXPECT_DEATH(quantize_nvfp4_block16(x, 8, codes, scales), "check failed");
}

}  // namespace
}  // namespace deepinfer
