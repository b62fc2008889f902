#include "bench/output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "numerics/bf16.h"
#include "numerics/block_quant.h"

namespace deepinfer::bench {
namespace {

/// Significand bits of the output's type, the hidden one included.
int precision(OutputType type) {
  switch (type) {
    case OutputType::kF32:
      return 24;
    case OutputType::kBf16:
      return 8;
    default:
      return 0;  // codes and integers have no ulp
  }
}

double ulp(OutputType type, float value) {
  const int bits = precision(type);
  if (bits == 0 || value == 0 || !std::isfinite(value)) return 0;
  return std::ldexp(1.0, std::ilogb(value) - bits + 1);
}

bool same_number(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

float scale_at(const std::vector<float>& scale, int64_t i) {
  if (scale.empty()) return 1;
  DI_CHECK(i < static_cast<int64_t>(scale.size()));
  return scale[static_cast<size_t>(i)];
}

std::string at(const Output& o, int64_t row, int64_t column, double got, double want, double bound) {
  char text[256];
  std::snprintf(text, sizeof text, "%s[%lld, %lld] = %.9g, ref %.9g, off by %.3g, allowed %.3g", o.name.c_str(),
                static_cast<long long>(row), static_cast<long long>(column), got, want, std::fabs(got - want), bound);
  return text;
}

std::string compare_bytes(const Output& got, const Output& want) {
  if (got.bytes == want.bytes) return {};
  const int64_t bytes_a_row = row_bytes(want.type, want.width);
  int64_t n_rows_off = 0;
  int64_t first = -1;
  for (int64_t r = 0; r < want.n_rows; ++r) {
    if (std::memcmp(got.bytes.data() + r * bytes_a_row, want.bytes.data() + r * bytes_a_row,
                    static_cast<size_t>(bytes_a_row)) == 0) {
      continue;
    }
    if (first < 0) first = r;
    ++n_rows_off;
  }
  const std::vector<float> g = decode_row(got, first);
  const std::vector<float> w = decode_row(want, first);
  int64_t column = 0;
  while (column + 1 < want.width && same_number(g[static_cast<size_t>(column)], w[static_cast<size_t>(column)]))
    ++column;
  return at(want, first, column, g[static_cast<size_t>(column)], w[static_cast<size_t>(column)], 0) + "; bytes of " +
         std::to_string(n_rows_off) + " of " + std::to_string(want.n_rows) + " rows differ";
}

struct RowResult {
  int64_t n_equal = 0;
  std::string fault;
};

RowResult compare_row(const Output& got, const Output& want, int64_t row) {
  const Tolerance& t = want.tolerance;
  const std::vector<float> g = decode_row(got, row);
  const std::vector<float> w = decode_row(want, row);
  float row_max = 0;
  for (const float value : w) {
    if (std::isfinite(value)) row_max = std::max(row_max, std::fabs(value));
  }
  RowResult result;
  for (int64_t c = 0; c < want.width; ++c) {
    const float a = g[static_cast<size_t>(c)];
    const float b = w[static_cast<size_t>(c)];
    if (same_number(a, b)) {
      ++result.n_equal;
      continue;
    }
    const double sum_scale =
        static_cast<double>(scale_at(t.row_scale, row)) * static_cast<double>(scale_at(t.column_scale, c));
    const double bound =
        t.sum_error * sum_scale + t.ulps * ulp(want.type, b) + t.of_row_max * static_cast<double>(row_max);
    const double off = std::fabs(static_cast<double>(a) - static_cast<double>(b));
    if (!(off <= bound) && result.fault.empty()) result.fault = at(want, row, c, a, b, bound);  // NaN fails
  }
  return result;
}

}  // namespace

int64_t row_bytes(OutputType type, int64_t width) {
  switch (type) {
    case OutputType::kBytes:
      return width;
    case OutputType::kI32:
    case OutputType::kF32:
      return width * 4;
    case OutputType::kBf16:
      return width * 2;
    case OutputType::kFp8Rows:
      return width + width / 32;
    case OutputType::kMxfp4Rows:
      return width / 2 + width / 32;
    case OutputType::kNvfp4Rows:
      return width / 2 + width / 16;
  }
  return 0;
}

Tolerance bitwise(std::string_view why) { return Tolerance{.bitwise = true, .why = why}; }

Tolerance equal_numbers(std::string_view why) { return Tolerance{.equal_min = 1, .why = why}; }

double sum_error_bound(int64_t n) { return 6 * std::sqrt(static_cast<double>(n)) * 0x1p-24; }

Tolerance fp32_sum(int64_t n, std::vector<float> row_scale, std::vector<float> column_scale) {
  return Tolerance{.sum_error = sum_error_bound(n),
                   .row_scale = std::move(row_scale),
                   .column_scale = std::move(column_scale),
                   .ulps = 1,
                   .why = "error of an fp32 sum in another order"};
}

Tolerance bf16_sum(int64_t n, std::vector<float> row_scale, std::vector<float> column_scale) {
  Tolerance t = fp32_sum(n, std::move(row_scale), std::move(column_scale));
  // Flip probability per element about 2^-24 sqrt(n) |x||w| / ulp(y), with ulp(y) = 2^-8 |x||w| / sqrt(n) typically:
  // 2^-16 n, 6 % at n = 4096 for the worst-case constant and a tenth of that in practice.
  t.equal_min = 0.98;
  t.rows_min = 0.9;
  t.why = "error of an fp32 sum in another order plus one bf16 unit";
  return t;
}

Tolerance chain(double of_row_max, std::string_view why) {
  return Tolerance{.of_row_max = of_row_max, .equal_min = 0.99, .rows_min = 0.5, .why = why};
}

std::vector<float> decode_row(const Output& output, int64_t row) {
  const int64_t width = output.width;
  const uint8_t* bytes = output.bytes.data() + row * row_bytes(output.type, width);
  std::vector<float> values(static_cast<size_t>(width));
  switch (output.type) {
    case OutputType::kBytes:
      std::copy_n(bytes, width, values.begin());
      break;
    case OutputType::kI32:
      for (int64_t c = 0; c < width; ++c) {
        int32_t value;
        std::memcpy(&value, bytes + c * 4, 4);
        values[static_cast<size_t>(c)] = static_cast<float>(value);  // ids below 2^24: exact
      }
      break;
    case OutputType::kF32:
      std::memcpy(values.data(), bytes, static_cast<size_t>(width) * 4);
      break;
    case OutputType::kBf16:
      for (int64_t c = 0; c < width; ++c) {
        Bf16 value;
        std::memcpy(&value, bytes + c * 2, 2);
        values[static_cast<size_t>(c)] = to_float(value);
      }
      break;
    case OutputType::kFp8Rows:
      dequantize_fp8_block32(bytes, bytes + width, width, values.data());
      break;
    case OutputType::kMxfp4Rows:
      dequantize_mxfp4_block32(bytes, bytes + width / 2, width, values.data());
      break;
    case OutputType::kNvfp4Rows:
      dequantize_nvfp4_block16(bytes, bytes + width / 2, width, values.data());
      break;
  }
  return values;
}

std::string compare(const Output& got, const Output& want) {
  if (got.name != want.name || got.type != want.type || got.bytes.size() != want.bytes.size()) {
    return want.name + ": not the same output (" + got.name + ", " + std::to_string(got.bytes.size()) + " bytes)";
  }
  const Tolerance& t = want.tolerance;
  if (t.bitwise) return compare_bytes(got, want);
  int64_t n_rows_equal = 0;
  int64_t n_equal = 0;
  for (int64_t r = 0; r < want.n_rows; ++r) {
    const RowResult result = compare_row(got, want, r);
    if (!result.fault.empty()) return result.fault + " (" + std::string(t.why) + ")";
    n_equal += result.n_equal;
    if (static_cast<double>(result.n_equal) >= t.equal_min * static_cast<double>(want.width)) ++n_rows_equal;
  }
  if (static_cast<double>(n_rows_equal) >= t.rows_min * static_cast<double>(want.n_rows)) return {};
  char text[256];
  std::snprintf(text, sizeof text,
                "%s: only %lld of %lld rows have %.4g %% of their values equal to ref (%lld of %lld values equal)",
                want.name.c_str(), static_cast<long long>(n_rows_equal), static_cast<long long>(want.n_rows),
                t.equal_min * 100, static_cast<long long>(n_equal), static_cast<long long>(want.n_rows * want.width));
  return std::string(text) + " (" + std::string(t.why) + ")";
}

const Output& find(const std::vector<Output>& outputs, std::string_view name) {
  const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const Output& o) { return o.name == name; });
  DI_CHECK(found != outputs.end());
  return *found;
}

}  // namespace deepinfer::bench
