// Results of an operation on the host, with the tolerance they carry, and the comparison of two of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::bench {

enum class OutputType {
  kBytes,      // raw
  kI32,        //
  kF32,        //
  kBf16,       //
  kFp8Rows,    // [width] E4M3, then [width/32] E8M0
  kMxfp4Rows,  // [width/2] E2M1 pairs, then [width/32] E8M0
  kNvfp4Rows,  // [width/2] E2M1 pairs, then [width/16] E4M3
};

/// Bytes of one row of `width` elements.
int64_t row_bytes(OutputType type, int64_t width);

/// How far a result may lie from the reference. An element is accepted when
///   |got - ref| <= sum_error * row_scale[row] * column_scale[column] + ulps * ulp(ref) + of_row_max * max|ref row|,
/// where an empty scale means 1 and the ulp is that of the output's type at |ref|. Numbers equal as numbers are equal
/// (-0 and +0 too, NaN and NaN); a NaN or infinity on one side only is refused.
/// In addition `rows_min` of all rows must have at least `equal_min` of their elements equal to the reference.
struct Tolerance {
  bool bitwise = false;  // bytes must be the same, nothing else applies
  double sum_error = 0;
  std::vector<float> row_scale;
  std::vector<float> column_scale;
  double ulps = 0;
  double of_row_max = 0;
  double equal_min = 0;
  double rows_min = 1;
  std::string_view why;  // the argument, printed with a failure
};

/// The result has one right answer: copies, quantisers, sums of inputs chosen exact, selections of exact scores.
Tolerance bitwise(std::string_view why = "one right answer");

/// Exact values whose zeros may have either sign.
Tolerance equal_numbers(std::string_view why);

/// Error of a sum of n fp32 products taken in any order, divided by sum |x_i w_i| <= |x| |w|: rounding errors of random
/// sign add up to lambda * sqrt(n) * 2^-24 except with probability 2 exp(-lambda^2/2) (Higham and Mary 2019); lambda 6.
double sum_error_bound(int64_t n);

/// fp32 results that are sums of n products; scales are the operands' norms.
Tolerance fp32_sum(int64_t n, std::vector<float> row_scale, std::vector<float> column_scale);

/// The same rounded once to bf16: the sum's error may move the rounding by one unit, and rarely does.
Tolerance bf16_sum(int64_t n, std::vector<float> row_scale, std::vector<float> column_scale);

/// Several roundings in a row. A sum's error flips the rounding of an intermediate value with probability of about
/// 2^-24 sqrt(n) / 2^-9 < 1e-3; where a flipped value crosses an FP8 or FP4 step (one in sixteen or fewer) it moves its
/// whole row by about a unit. So most rows agree nearly everywhere, and nowhere is the deviation large: half of the
/// rows have 99 % equal values, and no value is off by more than `of_row_max` of the row's largest.
Tolerance chain(double of_row_max, std::string_view why);

struct Output {
  std::string name;
  OutputType type = OutputType::kBytes;
  int64_t n_rows = 0;
  int64_t width = 0;  // elements a row
  std::vector<uint8_t> bytes;
  Tolerance tolerance;
};

/// Elements of one row as numbers. kBytes rows give the bytes.
std::vector<float> decode_row(const Output& output, int64_t row);

/// Empty when `got` is accepted against `want`, whose tolerance applies; else one line that says where and how much.
std::string compare(const Output& got, const Output& want);

/// The output of that name; a bug if there is none.
const Output& find(const std::vector<Output>& outputs, std::string_view name);

}  // namespace deepinfer::bench
