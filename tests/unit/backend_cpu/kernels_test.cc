// Every instruction set's kernels against the scalar numerics: decoding is exact for all codes and scales, products are
// as good as fp32 allows, exponentials are within one unit in the last place.
#include "backend/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "bench/random.h"
#include "numerics/bf16.h"
#include "numerics/block_quant.h"
#include "numerics/functions.h"

namespace deepinfer::cpu {
namespace {

using bench::Random;

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> list = {&kGenericKernels};
#if defined(__x86_64__)
  if (cpu_backend_supports(Isa::kAvx2)) list.push_back(&kAvx2Kernels);
  if (cpu_backend_supports(Isa::kAvx512)) list.push_back(&kAvx512Kernels);
#endif
  return list;
}

void expect_same(const std::vector<float>& got, const std::vector<float>& want, const char* what) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " at " << i;
    } else {
      ASSERT_EQ(got[i], want[i]) << what << " at " << i;
    }
  }
}

TEST(Kernels, DecodeEveryCodeUnderEveryScale) {
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    for (int scale = 0; scale < 256; ++scale) {
      std::vector<uint8_t> codes(256);
      for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
      codes[0x7f] = codes[0xff] = 0;  // NaN codes do not occur (kernels.h)
      const std::vector<uint8_t> scales(16, static_cast<uint8_t>(scale));
      std::vector<float> got(512);
      std::vector<float> want(512);
      dequantize_fp8_block32(codes.data(), scales.data(), 256, want.data());
      k->decode_fp8(codes.data(), scales.data(), 256, got.data());
      expect_same(got, want, "fp8");
      dequantize_mxfp4_block32(codes.data(), scales.data(), 512, want.data());
      k->decode_mxfp4(codes.data(), scales.data(), 512, got.data());
      expect_same(got, want, "mxfp4");
      dequantize_nvfp4_block16(codes.data(), scales.data(), 256, want.data());
      k->decode_nvfp4(codes.data(), scales.data(), 256, got.data());
      expect_same(got, want, "nvfp4");
    }
  }
}

/// One column of ones in x at a time picks single weights out of a product: every decoded weight is seen, exactly.
TEST(Kernels, ProductsDecodeEveryWeightUnderEveryScale) {
  constexpr int64_t kDepth = 256;
  std::vector<uint8_t> codes(kDepth);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  codes[0x7f] = codes[0xff] = 0;
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    std::vector<float> scratch(kGemmScratchFloats);
    std::vector<float> packed(kDepth * 9);
    std::vector<float> out(9);
    std::vector<const float*> x;
    for (int r = 0; r < 9; ++r) x.push_back(packed.data() + r * kDepth);
    for (const int scale : {0, 1, 100, 127, 134, 135, 200, 240, 255}) {
      const std::vector<uint8_t> scales(kDepth / 32, static_cast<uint8_t>(scale));
      for (const auto format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
        std::vector<float> want(kDepth);
        if (format == WeightFormat::kFp8) {
          dequantize_fp8_block32(codes.data(), scales.data(), kDepth, want.data());
        } else {
          dequantize_mxfp4_block32(codes.data(), scales.data(), kDepth, want.data());
        }
        for (int64_t column = 0; column < kDepth; ++column) {
          std::vector<Bf16> one(kDepth);
          one[static_cast<size_t>(column)] = to_bf16(1);
          for (const int32_t n_rows : {1, 2, 3, 4, 9}) {
            for (int r = 0; r < n_rows; ++r) k->pack_bf16(format, &one[0].bits, kDepth, packed.data() + r * kDepth);
            const GemmTile tile{{format, codes.data(), scales.data(), kDepth, kDepth},
                                0,
                                1,
                                n_rows,
                                x.data(),
                                out.data(),
                                1,
                                scratch.data()};
            k->gemm(&tile);
            expect_same({out.begin(), out.begin() + n_rows},
                        std::vector<float>(static_cast<size_t>(n_rows),
                                           scale == 255 ? std::nanf("") : want[static_cast<size_t>(column)]),
                        "weight");
          }
        }
      }
    }
  }
}

TEST(Kernels, ProductsAreAccurate) {
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    Random random(5);
    for (const int64_t n_in : {32, 96, 1056, 1504}) {
      std::vector<float> w(static_cast<size_t>(kTileOutputs * n_in));
      std::vector<float> x(static_cast<size_t>(kTileRows * n_in));
      for (float& v : w) v = random.normal();
      for (float& v : x) v = random.normal();
      std::vector<const float*> rows;
      for (int64_t r = 0; r < kTileRows; ++r) rows.push_back(x.data() + r * n_in);
      std::vector<float> scratch(kGemmScratchFloats);
      std::vector<float> out(int64_t{kTileRows} * kTileOutputs);
      for (const int32_t n_outputs : {1, 3, 8, kTileOutputs}) {
        const GemmTile tile{{WeightFormat::kF32, w.data(), nullptr, n_in, n_in * 4},
                            0,
                            n_outputs,
                            kTileRows,
                            rows.data(),
                            out.data(),
                            kTileOutputs,
                            scratch.data()};
        k->gemm(&tile);
        for (int64_t r = 0; r < kTileRows; ++r) {
          for (int64_t o = 0; o < n_outputs; ++o) {
            double sum = 0;
            double norm = 0;
            for (int64_t i = 0; i < n_in; ++i) {
              const double term = static_cast<double>(x[r * n_in + i]) * static_cast<double>(w[o * n_in + i]);
              sum += term;
              norm += std::fabs(term);
            }
            // A chain of n_in / 8 sums and a tree of at most four levels.
            ASSERT_NEAR(out[r * kTileOutputs + o], sum, norm * 0x1p-24 * (static_cast<double>(n_in) / 8 + 4));
          }
        }
      }
    }
  }
}

TEST(Kernels, ExponentialIsWithinOneUnit) {
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    double worst = 0;
    for (int i = 0; i < 300000; ++i) {
      const float x = -87.0f * static_cast<float>(i) / 300000.0f;
      std::vector<float> score(kSoftmaxSlots);  // a score of zero after a maximum of x rescales by e^x
      SoftmaxBlock block{.score = score.data(), .n_slots = 1, .scale = 1, .max = x, .sum = 0, .rescale = 0};
      k->softmax(&block);
      const double want = std::exp(static_cast<double>(x));
      const double unit = std::ldexp(1.0, std::ilogb(want) - 23);
      worst = std::max(worst, std::fabs(static_cast<double>(block.rescale) - want) / unit);
    }
    EXPECT_LT(worst, 1.0);
    std::vector<float> score(kSoftmaxSlots);
    SoftmaxBlock block{.score = score.data(), .n_slots = 1, .scale = 1, .max = -1e30f, .sum = 0, .rescale = 1};
    k->softmax(&block);
    EXPECT_EQ(block.rescale, 0);
    EXPECT_EQ(block.sum, 1);
  }
}

TEST(Kernels, SoftmaxOfABlock) {
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    Random random(6);
    for (int32_t n = 1; n <= kSoftmaxSlots; ++n) {
      std::vector<float> score(kSoftmaxSlots, std::nanf(""));  // past n: not read
      for (int32_t i = 0; i < n; ++i) score[static_cast<size_t>(i)] = 3 * random.normal();
      const std::vector<float> given = score;
      SoftmaxBlock block{.score = score.data(), .n_slots = n, .scale = 0.5f, .max = 0.25f, .sum = 2, .rescale = 0};
      k->softmax(&block);
      float max = 0.25f;
      for (int32_t i = 0; i < n; ++i) max = std::max(max, given[static_cast<size_t>(i)] * 0.5f);
      EXPECT_EQ(block.max, max);
      double sum = 2 * std::exp(0.25 - static_cast<double>(max));
      for (int32_t i = 0; i < kSoftmaxSlots; ++i) {
        const float p = score[static_cast<size_t>(i)];
        if (i >= n) {
          EXPECT_EQ(p, 0);
          continue;
        }
        const double want = std::exp(static_cast<double>(given[static_cast<size_t>(i)] * 0.5f - max));
        sum += want;
        EXPECT_NEAR(p, want, want * 0x1p-8);
        EXPECT_EQ(p, to_float(to_bf16(p)));
      }
      EXPECT_NEAR(block.sum, sum, sum * 1e-6);
    }
  }
}

TEST(Kernels, SwiGluOfExtremes) {
  std::vector<Bf16> gate;
  std::vector<Bf16> up;
  for (const float g : {0.0f, -0.0f, 1.0f, -1.0f, 50.0f, -50.0f, 1e30f, -1e30f, 1e-30f, -100.0f, -89.0f, INFINITY}) {
    for (const float u : {1.0f, -1.0f, 0.0f, 12.0f, -12.0f, 1e-3f, 3.5f, -1e30f}) {
      gate.push_back(to_bf16(g));
      up.push_back(to_bf16(u));
    }
  }
  ASSERT_EQ(gate.size() % 16, 0u);
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    std::vector<Bf16> out(gate.size());
    const SwiGlu args{&gate[0].bits, &up[0].bits, &out[0].bits, 10.0f, 0.75f, static_cast<int32_t>(gate.size())};
    k->swiglu(&args);
    for (size_t i = 0; i < gate.size(); ++i) {
      const float g = std::min(to_float(gate[i]), 10.0f);
      const float u = std::clamp(to_float(up[i]), -10.0f, 10.0f);
      const float want = 0.75f * (silu(g) * u);
      // Below -88.8 the exponential is infinite, hence 0 for what is at most 1e-36.
      EXPECT_NEAR(to_float(out[i]), want, std::fabs(want) * 0x1p-8 + 1e-35)
          << to_float(gate[i]) << " " << to_float(up[i]);
    }
  }
}

TEST(Kernels, IndexScoresRoundThreeTimes) {
  constexpr int32_t kHeads = 5;
  Random random(7);
  std::vector<float> dot(kHeads * kTileOutputs);
  std::vector<float> g(kHeads);
  for (float& v : dot) v = 10 * random.normal();
  for (float& v : g) v = to_float(to_bf16(random.normal()));
  for (const Kernels* k : all_kernels()) {
    SCOPED_TRACE(k->name);
    std::vector<uint16_t> score(kTileOutputs);
    const IndexScores args{dot.data(), g.data(), kHeads, score.data()};
    k->index_scores(&args);
    for (size_t j = 0; j < kTileOutputs; ++j) {
      float sum = 0;
      for (size_t h = 0; h < kHeads; ++h) {
        sum += to_float(to_bf16(g[h] * std::max(to_float(to_bf16(dot[h * kTileOutputs + j])), 0.0f)));
      }
      EXPECT_EQ(score[j], to_bf16(sum).bits);
    }
  }
}

}  // namespace
}  // namespace deepinfer::cpu
