#include "numerics/block_quant.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace deepinfer {
namespace {

constexpr uint16_t kBf16Infinity = 0x7f80;
constexpr uint8_t kE4m3Nan = 0x7f;

/// Representation of max|x|: bf16 magnitudes order like integers, with infinity and NaN above every number.
template <int64_t kBlock>
uint16_t magnitude_max(const Bf16* x) {
  uint16_t bits = 0;
  for (int64_t i = 0; i < kBlock; ++i) bits = std::max(bits, static_cast<uint16_t>(x[i].bits & 0x7fffu));
  return bits;
}

template <int64_t kBlock>
void encode_fp4(const float* scaled, uint8_t* packed) {
  uint8_t codes[kBlock];
  for (int64_t i = 0; i < kBlock; ++i) codes[i] = float_to_e2m1(scaled[i]);
  for (int64_t i = 0; i < kBlock / 2; ++i) packed[i] = pack_e2m1(codes[2 * i], codes[2 * i + 1]);
}

/// x/s for a normal power of two s in [2^-126, 2^126]: the reciprocal is one too, so the product is the quotient.
template <int64_t kBlock, typename T>
void divide_by_pow2(const T* x, float s, float* scaled) {
  const float inverse = 1.0f / s;
  for (int64_t i = 0; i < kBlock; ++i) {
    if constexpr (std::is_same_v<T, Bf16>) {
      scaled[i] = to_float(x[i]) * inverse;
    } else {
      scaled[i] = x[i] * inverse;
    }
  }
}

float stored(float value, float*) { return value; }
Bf16 stored(float value, Bf16*) { return to_bf16(value); }

template <typename T>
void dequantize_fp8(const uint8_t* codes, const uint8_t* scales, int64_t n, T* y) {
  DI_CHECK(n >= 0 && n % kFp8Block == 0);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = stored(e4m3_to_float(codes[i]) * e8m0_to_float(scales[i / kFp8Block]), y);
  }
}

template <int64_t kBlock, typename T, typename ScaleToFloat>
void dequantize_fp4(const uint8_t* packed, const uint8_t* scales, int64_t n, T* y, ScaleToFloat scale_to_float) {
  DI_CHECK(n >= 0 && n % kBlock == 0);
  for (int64_t i = 0; i < n / 2; ++i) {
    const float s = scale_to_float(scales[2 * i / kBlock]);
    y[2 * i] = stored(e2m1_to_float(unpack_e2m1_even(packed[i])) * s, y);
    y[2 * i + 1] = stored(e2m1_to_float(unpack_e2m1_odd(packed[i])) * s, y);
  }
}

/// Scale of a weight block: NaN if amax is not finite, 1 for an all-zero block.
float weight_scale(float amax, float code_max) {
  if (amax == 0) return 1.0f;
  return std::isfinite(amax) ? pow2ceil(amax / code_max) : amax;
}

/// max|w| of n values, NaN if any is NaN.
float amax_of(const float* w, int64_t n) {
  uint32_t bits = 0;  // magnitudes order like integers, NaN above every number
  for (int64_t i = 0; i < n; ++i) bits = std::max(bits, std::bit_cast<uint32_t>(w[i]) & 0x7fffffffu);
  return std::bit_cast<float>(bits);
}

}  // namespace

void quantize_fp8_block32(const Bf16* x, int64_t n, uint8_t* codes, uint8_t* scales_e8m0) {
  DI_CHECK(n >= 0 && n % kFp8Block == 0);
  for (int64_t b = 0; b < n / kFp8Block; ++b, x += kFp8Block, codes += kFp8Block) {
    const uint16_t amax_bits = magnitude_max<kFp8Block>(x);
    if (amax_bits >= kBf16Infinity) {
      scales_e8m0[b] = kE8m0Nan;
      std::memset(codes, kE4m3Nan, kFp8Block);
      continue;
    }
    const float amax = std::max(to_float(Bf16{amax_bits}), 1e-4f);
    const float s = pow2ceil(amax * (1.0f / kE4m3Max));
    scales_e8m0[b] = pow2_to_e8m0(s);
    float scaled[kFp8Block];
    divide_by_pow2<kFp8Block>(x, s, scaled);
    for (int64_t i = 0; i < kFp8Block; ++i) codes[i] = float_to_e4m3(scaled[i]);
  }
}

void quantize_mxfp4_block32(const Bf16* x, int64_t n, uint8_t* packed, uint8_t* scales_e8m0) {
  DI_CHECK(n >= 0 && n % kFp8Block == 0);
  for (int64_t b = 0; b < n / kFp8Block; ++b, x += kFp8Block, packed += kFp8Block / 2) {
    const uint16_t amax_bits = magnitude_max<kFp8Block>(x);
    if (amax_bits >= kBf16Infinity) {
      scales_e8m0[b] = kE8m0Nan;
      std::memset(packed, 0, kFp8Block / 2);
      continue;
    }
    const float amax = std::max(to_float(Bf16{amax_bits}), 6 * 0x1p-126f);
    const float s = pow2ceil(amax * (1.0f / kE2m1Max));
    scales_e8m0[b] = pow2_to_e8m0(s);
    float scaled[kFp8Block];
    divide_by_pow2<kFp8Block>(x, s, scaled);
    encode_fp4<kFp8Block>(scaled, packed);
  }
}

void quantize_nvfp4_block16(const Bf16* x, int64_t n, uint8_t* packed, uint8_t* scales_e4m3) {
  DI_CHECK(n >= 0 && n % kNvfp4Block == 0);
  for (int64_t b = 0; b < n / kNvfp4Block; ++b, x += kNvfp4Block, packed += kNvfp4Block / 2) {
    const uint16_t amax_bits = magnitude_max<kNvfp4Block>(x);
    if (amax_bits >= kBf16Infinity) {
      scales_e4m3[b] = kE4m3Nan;
      std::memset(packed, 0, kNvfp4Block / 2);
      continue;
    }
    const float amax = std::max(to_float(Bf16{amax_bits}), 6 * 0x1p-9f);
    scales_e4m3[b] = float_to_e4m3(amax / kE2m1Max);
    const float s = e4m3_to_float(scales_e4m3[b]);  // >= 2^-9, so never zero
    float scaled[kNvfp4Block];
    for (int64_t i = 0; i < kNvfp4Block; ++i) scaled[i] = to_float(x[i]) / s;
    encode_fp4<kNvfp4Block>(scaled, packed);
  }
}

void dequantize_fp8_block32(const uint8_t* codes, const uint8_t* scales_e8m0, int64_t n, Bf16* y) {
  dequantize_fp8(codes, scales_e8m0, n, y);
}
void dequantize_fp8_block32(const uint8_t* codes, const uint8_t* scales_e8m0, int64_t n, float* y) {
  dequantize_fp8(codes, scales_e8m0, n, y);
}
void dequantize_mxfp4_block32(const uint8_t* packed, const uint8_t* scales_e8m0, int64_t n, Bf16* y) {
  dequantize_fp4<kFp8Block>(packed, scales_e8m0, n, y, e8m0_to_float);
}
void dequantize_mxfp4_block32(const uint8_t* packed, const uint8_t* scales_e8m0, int64_t n, float* y) {
  dequantize_fp4<kFp8Block>(packed, scales_e8m0, n, y, e8m0_to_float);
}
void dequantize_nvfp4_block16(const uint8_t* packed, const uint8_t* scales_e4m3, int64_t n, Bf16* y) {
  dequantize_fp4<kNvfp4Block>(packed, scales_e4m3, n, y, e4m3_to_float);
}
void dequantize_nvfp4_block16(const uint8_t* packed, const uint8_t* scales_e4m3, int64_t n, float* y) {
  dequantize_fp4<kNvfp4Block>(packed, scales_e4m3, n, y, e4m3_to_float);
}

void quantize_weight_fp8_32x32(const float* w, MatrixSize size, uint8_t* codes, uint8_t* scales_e8m0) {
  DI_CHECK(size.n_rows >= 0 && size.n_rows % kFp8Block == 0);
  DI_CHECK(size.n_columns >= 0 && size.n_columns % kFp8Block == 0);
  const int64_t n_columns = size.n_columns;
  for (int64_t row = 0; row < size.n_rows; row += kFp8Block) {
    for (int64_t column = 0; column < n_columns; column += kFp8Block) {
      uint32_t amax_bits = 0;
      for (int64_t r = row; r < row + kFp8Block; ++r) {
        amax_bits = std::max(amax_bits, std::bit_cast<uint32_t>(amax_of(w + r * n_columns + column, kFp8Block)));
      }
      const float s = weight_scale(std::bit_cast<float>(amax_bits), kE4m3Max);
      *scales_e8m0++ = pow2_to_e8m0(s);
      for (int64_t r = row; r < row + kFp8Block; ++r) {
        float scaled[kFp8Block];
        divide_by_pow2<kFp8Block>(w + r * n_columns + column, s, scaled);
        for (int64_t i = 0; i < kFp8Block; ++i) codes[r * n_columns + column + i] = float_to_e4m3(scaled[i]);
      }
    }
  }
}

void dequantize_weight_fp8_32x32(const uint8_t* codes, const uint8_t* scales_e8m0, MatrixSize size, float* w) {
  DI_CHECK(size.n_rows >= 0 && size.n_rows % kFp8Block == 0);
  DI_CHECK(size.n_columns >= 0 && size.n_columns % kFp8Block == 0);
  for (int64_t row = 0; row < size.n_rows; ++row) {
    const uint8_t* scales = scales_e8m0 + row / kFp8Block * (size.n_columns / kFp8Block);
    dequantize_fp8(codes + row * size.n_columns, scales, size.n_columns, w + row * size.n_columns);
  }
}

void quantize_weight_fp4_row32(const float* w, MatrixSize size, uint8_t* packed, uint8_t* scales_e8m0) {
  DI_CHECK(size.n_rows >= 0);
  DI_CHECK(size.n_columns >= 0 && size.n_columns % kFp8Block == 0);
  for (int64_t b = 0; b < size.n_rows * size.n_columns / kFp8Block; ++b) {
    const float* block = w + b * kFp8Block;
    const float s = weight_scale(amax_of(block, kFp8Block), kE2m1Max);
    scales_e8m0[b] = pow2_to_e8m0(s);
    float scaled[kFp8Block];
    divide_by_pow2<kFp8Block>(block, s, scaled);
    encode_fp4<kFp8Block>(scaled, packed + b * kFp8Block / 2);
  }
}

void dequantize_weight_fp4_row32(const uint8_t* packed, const uint8_t* scales_e8m0, MatrixSize size, float* w) {
  DI_CHECK(size.n_rows >= 0);
  DI_CHECK(size.n_columns >= 0 && size.n_columns % kFp8Block == 0);
  dequantize_mxfp4_block32(packed, scales_e8m0, size.n_rows * size.n_columns, w);
}

}  // namespace deepinfer
