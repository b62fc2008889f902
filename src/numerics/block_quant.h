// The block quantisation rules of the model: FP8 activations and window KV, MXFP4 index vectors, scaled-FP4 main KV,
// and the rule for writing weights. These are the definition; vectorised forms elsewhere must give the same bits.
//
// Common to all: packed FP4 holds two elements a byte, even element low. A block that holds a NaN or an infinity gets
// a NaN scale, so all of it decodes to NaN and nothing non-finite is laundered into a number. Dequantised values are
// exact in bf16, except that a block whose largest magnitude is within a rounding of the bf16 limit can overflow to
// infinity. Buffers do not overlap. Wrong sizes are bugs (checked). Pure functions, any thread.
#pragma once

#include <cstdint>

#include "numerics/bf16.h"

namespace deepinfer {

inline constexpr int64_t kFp8Block = 32;    // elements that share an E8M0 scale, for E4M3 and MXFP4
inline constexpr int64_t kNvfp4Block = 16;  // elements that share an E4M3 scale

/// Activations of every FP8 and FP4 linear layer, window KV.
/// x [n], codes [n] E4M3, scales [n/32] E8M0; n a multiple of 32.
/// s = pow2ceil(max(amax, 1e-4) * fp32(1/448)); code = E4M3(clamp(x/s, +-448)).
void quantize_fp8_block32(const Bf16* x, int64_t n, uint8_t* codes, uint8_t* scales_e8m0);
void dequantize_fp8_block32(const uint8_t* codes, const uint8_t* scales_e8m0, int64_t n, Bf16* y);
void dequantize_fp8_block32(const uint8_t* codes, const uint8_t* scales_e8m0, int64_t n, float* y);

/// Index queries and keys. x [n], packed [n/2] E2M1, scales [n/32] E8M0; n a multiple of 32.
/// s = pow2ceil(max(amax, 6*2^-126) * fp32(1/6)); code = E2M1(clamp(x/s, +-6)).
void quantize_mxfp4_block32(const Bf16* x, int64_t n, uint8_t* packed, uint8_t* scales_e8m0);
void dequantize_mxfp4_block32(const uint8_t* packed, const uint8_t* scales_e8m0, int64_t n, Bf16* y);
void dequantize_mxfp4_block32(const uint8_t* packed, const uint8_t* scales_e8m0, int64_t n, float* y);

/// Compressed main KV. x [n], packed [n/2] E2M1, scales [n/16] E4M3 (not a power of two); n a multiple of 16.
/// s = E4M3(max(amax, 6*2^-9) / 6); code = E2M1(clamp(x/s, +-6)), IEEE divisions. An all-zero block stores 2^-9.
void quantize_nvfp4_block16(const Bf16* x, int64_t n, uint8_t* packed, uint8_t* scales_e4m3);
void dequantize_nvfp4_block16(const uint8_t* packed, const uint8_t* scales_e4m3, int64_t n, Bf16* y);
void dequantize_nvfp4_block16(const uint8_t* packed, const uint8_t* scales_e4m3, int64_t n, float* y);

struct MatrixSize {
  int64_t n_rows;
  int64_t n_columns;
};

/// Writing dense weights: w [rows, columns] dense, codes likewise in E4M3, scales [rows/32, columns/32] E8M0.
/// s = pow2ceil(amax/448) per 32x32 block, 1 for an all-zero block. Both sizes multiples of 32.
void quantize_weight_fp8_32x32(const float* w, MatrixSize size, uint8_t* codes, uint8_t* scales_e8m0);
void dequantize_weight_fp8_32x32(const uint8_t* codes, const uint8_t* scales_e8m0, MatrixSize size, float* w);

/// Writing expert weights: packed [rows, columns/2] E2M1, scales [rows, columns/32] E8M0.
/// s = pow2ceil(amax/6) per row and 32 columns, 1 for an all-zero block. Columns a multiple of 32.
void quantize_weight_fp4_row32(const float* w, MatrixSize size, uint8_t* packed, uint8_t* scales_e8m0);
void dequantize_weight_fp4_row32(const uint8_t* packed, const uint8_t* scales_e8m0, MatrixSize size, float* w);

}  // namespace deepinfer
