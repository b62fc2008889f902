// Host-side inputs of the operation cases: activations and weights in the model's formats, from a seed.
// Two kinds. Wide: values over several binades, zero blocks and outliers. Exact: small integers times powers of two,
// so that every sum the operation takes is exact in fp32 and its result does not depend on the order of summation.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/random.h"
#include "numerics/bf16.h"
#include "ops/types.h"

namespace deepinfer::bench {

enum class Fill { kWide, kExact };

struct HostFp8Matrix {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  int64_t n_out = 0;
  int64_t n_in = 0;
};
struct HostFp4Matrix {
  std::vector<uint8_t> packed;
  std::vector<uint8_t> scales;
  int64_t n_out = 0;
  int64_t n_in = 0;
};
struct HostBf16Matrix {
  std::vector<Bf16> values;
  int64_t n_out = 0;
  int64_t n_in = 0;
};
struct HostQuantizedRows {
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  int64_t width = 0;
};

/// [n_rows, width]. Wide: normal times a power of two per row and per 32 channels, some blocks all zero, some outliers.
/// Exact: integers in [-3, 3] times a power of two per row.
std::vector<Bf16> bf16_rows(Random& random, int64_t n_rows, int64_t width, Fill fill);

/// Rows whose mean square is a power of four exactly, so that RMSNorm's factor is a power of two: shuffled groups of
/// four (+-1, +-1, +-1, +-1) and (+-2, 0, 0, 0), times a power of two for every `rows_a_scale` rows. width a multiple
/// of 4.
std::vector<Bf16> unit_rms_rows(Random& random, int64_t n_rows, int64_t width, int64_t rows_a_scale = 1);

/// Rows of +-2^k, k per row in [low, high].
std::vector<Bf16> sign_rows(Random& random, int64_t n_rows, int64_t width, int low = -2, int high = 2);

/// Norm weights: around 1 (wide) or short binary fractions (exact).
std::vector<Bf16> norm_weights(Random& random, int64_t n, Fill fill);

HostQuantizedRows quantized(const std::vector<Bf16>& rows, int64_t width);

/// Weights with an output of about the input's size: standard deviation about 1/sqrt(n_in) when wide. Exact: integers
/// in [-2, 2] (FP4: magnitudes 0, 0.5, 1, 1.5) and block scales within a factor two of one another.
HostFp8Matrix fp8_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill);
HostFp4Matrix fp4_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill);
HostBf16Matrix bf16_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill);

/// Signed selection: every output is plus or minus `magnitude` (a power of two up to 64) times one input, each of the
/// inputs [first, last) used as evenly as the sizes allow. Takes sign_rows to sign rows.
struct Columns {
  int64_t first;
  int64_t last;
};
HostFp8Matrix fp8_selector(Random& random, int64_t n_out, int64_t n_in, float magnitude = 1);
HostFp4Matrix fp4_selector(Random& random, int64_t n_out, int64_t n_in, float magnitude = 1);
HostBf16Matrix bf16_selector(Random& random, int64_t n_out, int64_t n_in, Columns from, float magnitude = 1);

/// n random MXFP4 rows (index keys) or scaled-FP4 rows (compressed entries). Exact: one narrow range of scales.
struct HostPackedRows {
  std::vector<uint8_t> values;  // [n, width/2]
  std::vector<uint8_t> scales;  // [n, width/32] E8M0 or [n, width/16] E4M3
};
HostPackedRows mxfp4_rows(Random& random, int64_t n, int64_t width, Fill fill);
HostPackedRows nvfp4_rows(Random& random, int64_t n, int64_t width, Fill fill);

/// Euclidean norms of rows: what the error bounds of sums are made of.
std::vector<float> row_norms(const std::vector<Bf16>& rows, int64_t width);
std::vector<float> row_norms(const HostQuantizedRows& rows);
std::vector<float> row_norms(const HostFp8Matrix& w);
std::vector<float> row_norms(const HostFp4Matrix& w);
std::vector<float> row_norms(const HostBf16Matrix& w);

}  // namespace deepinfer::bench
