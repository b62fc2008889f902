// Random matrix products and experts: a row's bits do not depend on how many rows there are nor on the thread count.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "bench/random.h"
#include "numerics/block_quant.h"

namespace deepinfer {
namespace {

using bench::Random;

std::vector<Isa> supported_isas() {
  std::vector<Isa> list;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    if (cpu_backend_supports(isa)) list.push_back(isa);
  }
  return list;
}

std::vector<Bf16> random_bf16(Random& random, int64_t n) {
  std::vector<Bf16> x(static_cast<size_t>(n));
  for (Bf16& v : x) v = to_bf16(random.normal());
  return x;
}

std::vector<uint8_t> random_bytes(Random& random, int64_t n, uint8_t mask) {
  std::vector<uint8_t> x(static_cast<size_t>(n));
  for (uint8_t& v : x) v = static_cast<uint8_t>(random.next() & mask);
  return x;
}

std::vector<uint8_t> random_scales(Random& random, int64_t n) {
  std::vector<uint8_t> x(static_cast<size_t>(n));
  for (uint8_t& v : x) v = static_cast<uint8_t>(random.between(110, random.one_in(50) ? 140 : 125));
  return x;
}

struct Activations {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  int64_t width;

  Activations(Random& random, int64_t n_rows, int64_t n) : codes(n_rows * n), scales(n_rows * n / 32), width(n) {
    quantize_fp8_block32(random_bf16(random, n_rows * n).data(), n_rows * n, codes.data(), scales.data());
  }
  ops::QuantizedRows from(int64_t row) {
    return {codes.data() + row * width, scales.data() + row * (width / 32), width};
  }
};

struct Matrix8 {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  ops::Fp8Matrix view;

  Matrix8(Random& random, int64_t n_out, int64_t n_in)
      : codes(random_bytes(random, n_out * n_in, 0xbf)),
        scales(random_scales(random, (n_out + 31) / 32 * (n_in / 32))),
        view{codes.data(), scales.data(), n_out, n_in} {}
};

struct Matrix4 {
  std::vector<uint8_t> packed;
  std::vector<uint8_t> scales;
  ops::Fp4Matrix view;

  Matrix4(Random& random, int64_t n_out, int64_t n_in)
      : packed(random_bytes(random, n_out * n_in / 2, 0xff)),
        scales(random_scales(random, n_out * (n_in / 32))),
        view{packed.data(), scales.data(), n_out, n_in} {}
};

/// call(backend, first row, rows, output) for all rows at once, then row by row and in random chunks; thread counts
/// 1-3.
template <typename Y, typename Call>
void expect_row_invariant(Isa isa, Random& random, int32_t n_rows, int64_t n_out, const Call& call) {
  std::vector<Y> want(static_cast<size_t>(n_rows * n_out));
  call(*make_cpu_backend({.n_threads = 1, .isa = isa}), 0, n_rows, want.data());
  for (const int n_threads : {1, 2, 3}) {
    const std::unique_ptr<ops::Backend> backend = make_cpu_backend({.n_threads = n_threads, .isa = isa});
    for (const int64_t chunk_max : {int64_t{1}, int64_t{7}, int64_t{n_rows}}) {
      std::vector<Y> got(want.size());
      for (int32_t row = 0; row < n_rows;) {
        const auto n = static_cast<int32_t>(
            std::min<int64_t>(n_rows - row, chunk_max == n_rows ? n_rows : random.between(1, chunk_max)));
        call(*backend, row, n, got.data() + row * n_out);
        row += n;
      }
      ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(Y)), 0)
          << backend->name() << ", " << n_rows << " rows, " << n_out << " outputs, " << n_threads
          << " threads, chunks of " << chunk_max;
    }
  }
}

TEST(RowInvariance, OfLinearLayers) {
  for (const Isa isa : supported_isas()) {
    Random random(1);
    for (int32_t n_rows = 1; n_rows <= 17; ++n_rows) {
      const int64_t n_out = random.between(1, 150);
      const int64_t n_in = 32 * random.between(1, 40);
      Activations x(random, n_rows, n_in);
      const Matrix8 w8(random, n_out, n_in);
      const Matrix4 w4(random, n_out, n_in);
      const std::vector<Bf16> xb = random_bf16(random, n_rows * n_in);
      const std::vector<Bf16> wb = random_bf16(random, n_out * n_in);
      expect_row_invariant<Bf16>(isa, random, n_rows, n_out, [&](ops::Backend& b, int64_t row, int32_t n, Bf16* y) {
        ASSERT_TRUE(b.linear_fp8({n, x.from(row), w8.view, y}).ok());
      });
      expect_row_invariant<Bf16>(isa, random, n_rows, n_out, [&](ops::Backend& b, int64_t row, int32_t n, Bf16* y) {
        ASSERT_TRUE(b.linear_fp4({n, x.from(row), w4.view, y}).ok());
      });
      expect_row_invariant<float>(isa, random, n_rows, n_out, [&](ops::Backend& b, int64_t row, int32_t n, float* y) {
        ASSERT_TRUE(b.linear_bf16({n, xb.data() + row * n_in, {wb.data(), n_out, n_in}, nullptr, y}).ok());
      });
    }
  }
}

TEST(RowInvariance, OfWidthsThatAreNoMultipleOf32) {
  for (const Isa isa : supported_isas()) {
    Random random(2);
    for (const int64_t n_in : {1, 5, 31, 588, 601}) {
      const std::vector<Bf16> x = random_bf16(random, 11 * n_in);
      const std::vector<Bf16> w = random_bf16(random, 37 * n_in);
      expect_row_invariant<float>(isa, random, 11, 37, [&](ops::Backend& b, int64_t row, int32_t n, float* y) {
        ASSERT_TRUE(b.linear_bf16({n, x.data() + row * n_in, {w.data(), 37, n_in}, nullptr, y}).ok());
      });
    }
  }
}

TEST(RowInvariance, OfExperts) {
  constexpr int64_t kDim = 96;
  constexpr int64_t kInner = 64;
  constexpr int32_t kExperts = 6;
  constexpr int32_t kActive = 3;
  for (const Isa isa : supported_isas()) {
    Random random(3);
    std::vector<Matrix4> w;
    for (int32_t e = 0; e < kExperts; ++e) {
      w.emplace_back(random, kInner, kDim);
      w.emplace_back(random, kInner, kDim);
      w.emplace_back(random, kDim, kInner);
    }
    std::vector<ops::RoutedExpert> experts;
    for (size_t e = 0; e < kExperts; ++e) experts.push_back({w[3 * e].view, w[3 * e + 1].view, w[3 * e + 2].view});
    const Matrix8 s1(random, kInner, kDim);
    const Matrix8 s3(random, kInner, kDim);
    const Matrix8 s2(random, kDim, kInner);
    for (const int32_t n_rows : {1, 2, 5, 17, 90}) {
      Activations x(random, n_rows, kDim);
      std::vector<int32_t> expert;
      std::vector<float> weight;
      for (int32_t i = 0; i < n_rows; ++i) {
        const auto first = static_cast<int32_t>(random.below(kExperts));
        for (int32_t k = 0; k < kActive; ++k) {
          expert.push_back((first + 5 * k) % kExperts);  // not in ascending order
          weight.push_back(random.uniform());
        }
      }
      expect_row_invariant<Bf16>(isa, random, n_rows, kDim, [&](ops::Backend& b, int64_t row, int32_t n, Bf16* y) {
        ASSERT_TRUE(b.moe({n,
                           x.from(row),
                           kActive,
                           expert.data() + row * kActive,
                           weight.data() + row * kActive,
                           experts.data(),
                           kExperts,
                           {s1.view, s3.view, s2.view},
                           10.0f,
                           y})
                        .ok());
      });
    }
  }
}

TEST(RowInvariance, NoRowsAreNoWork) {
  Random random(4);
  const Matrix8 w(random, 32, 32);
  EXPECT_TRUE(make_cpu_backend(2)->linear_fp8({0, {nullptr, nullptr, 32}, w.view, nullptr}).ok());
}

}  // namespace
}  // namespace deepinfer
