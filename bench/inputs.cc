#include "bench/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "numerics/block_quant.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace deepinfer::bench {
namespace {

constexpr int64_t kBlock = 32;

/// Fills out from a table of ready codes: eight draws from one random word.
template <typename T>
void fill_from_table(Random& random, const std::array<T, 256>& table, std::vector<T>& out) {
  size_t i = 0;
  while (i < out.size()) {
    uint64_t word = random.next();
    for (int j = 0; j < 8 && i < out.size(); ++j, ++i, word >>= 8) out[i] = table[word & 255u];
  }
}

/// E8M0 codes around a power of two: the exponent of `center` +-`spread`.
void fill_scales(Random& random, double center, int spread, std::vector<uint8_t>& out) {
  const int exponent = static_cast<int>(std::lround(std::log2(center)));
  for (uint8_t& code : out) {
    code = static_cast<uint8_t>(kE8m0One + exponent + static_cast<int>(random.between(-spread, spread)));
  }
}

double inverse_sqrt(int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

/// A shuffled order of 0..n-1.
std::vector<int64_t> permutation(Random& random, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  return order;
}

/// For every output, the input it takes.
std::vector<int64_t> selection(Random& random, int64_t n_out, Columns from) {
  std::vector<int64_t> chosen;
  while (static_cast<int64_t>(chosen.size()) < n_out) {
    for (const int64_t i : permutation(random, from.last - from.first)) chosen.push_back(from.first + i);
  }
  chosen.resize(static_cast<size_t>(n_out));
  return chosen;
}

template <typename RowOf>
std::vector<float> norms(int64_t n_rows, int64_t width, const RowOf& decode) {
  std::vector<float> values(static_cast<size_t>(width));
  std::vector<float> result(static_cast<size_t>(n_rows));
  for (int64_t r = 0; r < n_rows; ++r) {
    decode(r, values.data());
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    result[static_cast<size_t>(r)] = static_cast<float>(std::sqrt(squares));
  }
  return result;
}

}  // namespace

std::vector<Bf16> bf16_rows(Random& random, int64_t n_rows, int64_t width, Fill fill) {
  std::vector<Bf16> rows(static_cast<size_t>(n_rows * width));
  for (int64_t r = 0; r < n_rows; ++r) {
    const float row_scale = fill == Fill::kWide ? random.power_of_two(-3, 3) : random.power_of_two(-1, 1);
    float scale = row_scale;
    for (int64_t c = 0; c < width; ++c) {
      Bf16& value = rows[static_cast<size_t>(r * width + c)];
      if (fill == Fill::kExact) {
        value = to_bf16(static_cast<float>(random.between(-3, 3)) * row_scale);
        continue;
      }
      if (c % kBlock == 0) scale = random.one_in(12) ? 0.0f : row_scale * random.power_of_two(-3, 3);
      const float outlier = random.one_in(200) ? 32.0f : 1.0f;
      value = to_bf16(scale == 0 ? 0.0f : random.normal() * scale * outlier);
    }
  }
  return rows;
}

std::vector<Bf16> unit_rms_rows(Random& random, int64_t n_rows, int64_t width, int64_t rows_a_scale) {
  DI_CHECK(width % 4 == 0);
  std::vector<Bf16> rows(static_cast<size_t>(n_rows * width));
  float scale = 1;
  for (int64_t r = 0; r < n_rows; ++r) {
    if (r % rows_a_scale == 0) scale = random.power_of_two(-2, 2);
    const std::vector<int64_t> order = permutation(random, width);
    for (int64_t group = 0; group < width; group += 4) {
      const bool lone = random.one_in(3);
      for (int64_t i = 0; i < 4; ++i) {
        if (lone && i > 0) continue;  // stays +0
        rows[static_cast<size_t>(r * width + order[static_cast<size_t>(group + i)])] =
            to_bf16(random.sign() * (lone ? 2.0f : 1.0f) * scale);
      }
    }
  }
  return rows;
}

std::vector<Bf16> sign_rows(Random& random, int64_t n_rows, int64_t width, int low, int high) {
  std::vector<Bf16> rows(static_cast<size_t>(n_rows * width));
  float scale = 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<int64_t>(i) % width == 0) scale = random.power_of_two(low, high);
    rows[i] = to_bf16(random.sign() * scale);
  }
  return rows;
}

std::vector<Bf16> norm_weights(Random& random, int64_t n, Fill fill) {
  std::vector<Bf16> weights(static_cast<size_t>(n));
  for (Bf16& w : weights) {
    w = to_bf16(fill == Fill::kWide ? 1.0f + 0.25f * random.normal()
                                    : 0.25f * static_cast<float>(random.between(2, 6)));
  }
  return weights;
}

HostQuantizedRows quantized(const std::vector<Bf16>& rows, int64_t width) {
  HostQuantizedRows out{std::vector<uint8_t>(rows.size()), std::vector<uint8_t>(rows.size() / kBlock), width};
  quantize_fp8_block32(rows.data(), static_cast<int64_t>(rows.size()), out.codes.data(), out.scales.data());
  return out;
}

HostFp8Matrix fp8_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill) {
  HostFp8Matrix w{std::vector<uint8_t>(static_cast<size_t>(n_out * n_in)),
                  std::vector<uint8_t>(static_cast<size_t>((n_out + kBlock - 1) / kBlock * (n_in / kBlock))), n_out,
                  n_in};
  constexpr float kDeviation = 32;
  std::array<uint8_t, 256> table;
  for (uint8_t& code : table) {
    code = float_to_e4m3(fill == Fill::kExact ? static_cast<float>(random.between(-2, 2))
                         : random.one_in(16)  ? random.normal() * random.power_of_two(-9, 6)
                                              : random.normal() * kDeviation);
  }
  fill_from_table(random, table, w.codes);
  if (fill == Fill::kExact) {
    fill_scales(random, 1, 1, w.scales);
  } else {
    fill_scales(random, inverse_sqrt(n_in) / kDeviation, 2, w.scales);
    if (n_in > kBlock) {  // one all-zero block, as a pruned weight would leave it
      for (int64_t r = 0; r < std::min(n_out, kBlock); ++r) {
        for (int64_t c = 0; c < kBlock; ++c) w.codes[static_cast<size_t>(r * n_in + c)] = 0;
      }
    }
  }
  return w;
}

HostFp4Matrix fp4_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill) {
  HostFp4Matrix w{std::vector<uint8_t>(static_cast<size_t>(n_out * n_in / 2)),
                  std::vector<uint8_t>(static_cast<size_t>(n_out * (n_in / kBlock))), n_out, n_in};
  std::array<uint8_t, 256> table;
  for (uint8_t& byte : table) {
    const uint64_t bits = random.next();
    const uint64_t mask = fill == Fill::kExact ? 0xbbu : 0xffu;  // clears bit 2: magnitudes 0, .5, 1, 1.5
    byte = static_cast<uint8_t>(bits & mask);
  }
  fill_from_table(random, table, w.packed);
  if (fill == Fill::kExact) {
    fill_scales(random, 2, 1, w.scales);
  } else {
    fill_scales(random, inverse_sqrt(n_in) / 3, 2, w.scales);
  }
  return w;
}

HostBf16Matrix bf16_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill) {
  HostBf16Matrix w{std::vector<Bf16>(static_cast<size_t>(n_out * n_in)), n_out, n_in};
  std::array<Bf16, 256> table;
  for (Bf16& value : table) {
    value = to_bf16(fill == Fill::kExact
                        ? static_cast<float>(random.between(-2, 2))
                        : random.normal() * static_cast<float>(inverse_sqrt(n_in)) * random.power_of_two(-2, 1));
  }
  fill_from_table(random, table, w.values);
  return w;
}

HostFp8Matrix fp8_selector(Random& random, int64_t n_out, int64_t n_in, float magnitude) {
  HostFp8Matrix w{std::vector<uint8_t>(static_cast<size_t>(n_out * n_in), uint8_t{0}),
                  std::vector<uint8_t>(static_cast<size_t>((n_out + kBlock - 1) / kBlock * (n_in / kBlock)), kE8m0One),
                  n_out, n_in};
  const std::vector<int64_t> chosen = selection(random, n_out, {0, n_in});
  for (int64_t o = 0; o < n_out; ++o) {
    w.codes[static_cast<size_t>(o * n_in + chosen[static_cast<size_t>(o)])] = float_to_e4m3(random.sign() * magnitude);
  }
  return w;
}

HostFp4Matrix fp4_selector(Random& random, int64_t n_out, int64_t n_in, float magnitude) {
  const auto scale = static_cast<uint8_t>(kE8m0One + std::ilogb(magnitude));
  HostFp4Matrix w{std::vector<uint8_t>(static_cast<size_t>(n_out * n_in / 2), uint8_t{0}),
                  std::vector<uint8_t>(static_cast<size_t>(n_out * (n_in / kBlock)), scale), n_out, n_in};
  const std::vector<int64_t> chosen = selection(random, n_out, {0, n_in});
  for (int64_t o = 0; o < n_out; ++o) {
    const int64_t column = chosen[static_cast<size_t>(o)];
    const uint8_t code = float_to_e2m1(random.sign());
    w.packed[static_cast<size_t>((o * n_in + column) / 2)] = column % 2 == 0 ? pack_e2m1(code, 0) : pack_e2m1(0, code);
  }
  return w;
}

HostBf16Matrix bf16_selector(Random& random, int64_t n_out, int64_t n_in, Columns from, float magnitude) {
  HostBf16Matrix w{std::vector<Bf16>(static_cast<size_t>(n_out * n_in), Bf16{0}), n_out, n_in};
  const std::vector<int64_t> chosen = selection(random, n_out, from);
  for (int64_t o = 0; o < n_out; ++o) {
    w.values[static_cast<size_t>(o * n_in + chosen[static_cast<size_t>(o)])] = to_bf16(random.sign() * magnitude);
  }
  return w;
}

HostPackedRows mxfp4_rows(Random& random, int64_t n, int64_t width, Fill fill) {
  HostPackedRows rows{std::vector<uint8_t>(static_cast<size_t>(n * width / 2)),
                      std::vector<uint8_t>(static_cast<size_t>(n * width / kBlock))};
  std::array<uint8_t, 256> table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  fill_from_table(random, table, rows.values);
  fill_scales(random, fill == Fill::kExact ? 1 : 0.25, fill == Fill::kExact ? 1 : 3, rows.scales);
  return rows;
}

HostPackedRows nvfp4_rows(Random& random, int64_t n, int64_t width, Fill fill) {
  HostPackedRows rows{std::vector<uint8_t>(static_cast<size_t>(n * width / 2)),
                      std::vector<uint8_t>(static_cast<size_t>(n * width / kNvfp4Block))};
  std::array<uint8_t, 256> table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  fill_from_table(random, table, rows.values);
  for (uint8_t& code : rows.scales) {
    code = float_to_e4m3(fill == Fill::kExact ? random.power_of_two(-1, 1)
                                              : random.power_of_two(-4, 0) * (1 + random.uniform()));
  }
  return rows;
}

std::vector<float> row_norms(const std::vector<Bf16>& rows, int64_t width) {
  return norms(static_cast<int64_t>(rows.size()) / width, width,
               [&](int64_t r, float* out) { to_float(rows.data() + r * width, out, width); });
}

std::vector<float> row_norms(const HostQuantizedRows& rows) {
  return norms(static_cast<int64_t>(rows.codes.size()) / rows.width, rows.width, [&](int64_t r, float* out) {
    dequantize_fp8_block32(rows.codes.data() + r * rows.width, rows.scales.data() + r * (rows.width / kBlock),
                           rows.width, out);
  });
}

std::vector<float> row_norms(const HostFp8Matrix& w) {
  return norms(w.n_out, w.n_in, [&](int64_t r, float* out) {
    dequantize_fp8_block32(w.codes.data() + r * w.n_in, w.scales.data() + r / kBlock * (w.n_in / kBlock), w.n_in, out);
  });
}

std::vector<float> row_norms(const HostFp4Matrix& w) {
  return norms(w.n_out, w.n_in, [&](int64_t r, float* out) {
    dequantize_mxfp4_block32(w.packed.data() + r * (w.n_in / 2), w.scales.data() + r * (w.n_in / kBlock), w.n_in, out);
  });
}

std::vector<float> row_norms(const HostBf16Matrix& w) { return row_norms(w.values, w.n_in); }

}  // namespace deepinfer::bench
