// Inner loops that exist once per instruction set, behind one table of function pointers. The files that fill it are
// compiled with their own -m flags, so they include nothing with inline code (an inline function of a shared header
// compiled there could be the copy the linker keeps for everybody). Declarations and constants only.
//
// Row invariance: every output element is a sum in an order that depends on its length alone: kLanes partial sums, each
// a chain of fused multiply-adds over ascending k, then a fixed tree. Tile shapes never change it.
// A NaN code inside E4M3 weights counts as +-480; NaN scales (and so non-finite activations) propagate.
#pragma once

#include <cstdint>

namespace deepinfer::cpu {

enum class WeightFormat : int32_t { kFp8, kFp4, kBf16, kF32 };

inline constexpr int32_t kTileOutputs = 32;  // outputs of one gemm call at most
inline constexpr int32_t kTileRows = 64;     // rows of one gemm call at most
inline constexpr int32_t kTileDepth = 512;   // columns decoded at a time
inline constexpr int32_t kLanesMax = 16;
/// Decoded weights and partial sums of one gemm call.
inline constexpr int64_t kGemmScratchFloats =
    int64_t{kTileOutputs} * (kTileDepth + 16) + int64_t{kTileOutputs} * kTileRows * kLanesMax;
/// Slots of one softmax block at most.
inline constexpr int32_t kSoftmaxSlots = 64;

/// A weight matrix as stored; row n starts at values + n * row_bytes.
struct WeightRows {
  WeightFormat format;
  const void* values;
  const uint8_t* scales;  // kFp8: [ceil(n_out/32), n_in/32], kFp4: [n_out, n_in/32], else null
  int64_t n_in;           // multiple of 32 except for kBf16
  int64_t row_bytes;
};

/// out[r * out_stride + o] = sum over k of x[r][k] * w[n_begin + o][k].
struct GemmTile {
  WeightRows w;
  int64_t n_begin;        // kFp8: a multiple of kTileOutputs, so that a tile has one row of scales
  int32_t n_outputs;      // <= kTileOutputs
  int32_t n_rows;         // <= kTileRows
  const float* const* x;  // n_rows packed rows (pack_*) for the format of w
  float* out;             // [n_rows, out_stride]
  int64_t out_stride;
  float* scratch;  // kGemmScratchFloats
};

/// One block of the online softmax of one head.
struct SoftmaxBlock {
  float* score;     // [kSoftmaxSlots] raw dot products in, probabilities out rounded to bf16 (0 past n_slots)
  int32_t n_slots;  // 1..kSoftmaxSlots
  float scale;      // scores are dot * scale
  float max;        // in and out: running maximum
  float sum;        // in and out: running denominator, of unrounded probabilities
  float rescale;    // out: factor that earlier sums have to be multiplied with
};

/// out[h, :] = out[h, :] * rescale[h] + sum over slots ascending of p[h, slot] * v[slot, :].
struct WeightedSum {
  const float* p;        // [n_heads, p_stride]
  const float* rescale;  // [n_heads]
  const float* v;        // [n_slots, v_stride]
  float* out;            // [n_heads, dim]
  int64_t p_stride;
  int64_t v_stride;
  int64_t dim;  // multiple of 32
  int32_t n_heads;
  int32_t n_slots;
};

/// score[j] = bf16( sum over heads ascending of bf16( g[h] * max(bf16(dot[h, j]), 0) ) ), as bits.
struct IndexScores {
  const float* dot;  // [n_heads, kTileOutputs]
  const float* g;    // [n_heads]
  int32_t n_heads;
  uint16_t* score;  // [kTileOutputs]
};

/// a[i] = bf16( weight * (silu(min(gate[i], limit)) * clamp(up[i], -limit, limit)) ).
struct SwiGlu {
  const uint16_t* gate;
  const uint16_t* up;
  uint16_t* out;
  float limit;
  float weight;
  int32_t n;  // multiple of 16
};

struct Kernels {
  const char* name;
  void (*gemm)(const GemmTile* tile);
  /// Activations as the gemm of `format` wants them: fp32, exact, in that kernel's own order of k, padded with zeros to
  /// a multiple of 32.
  void (*pack_fp8)(WeightFormat format, const uint8_t* codes, const uint8_t* scales, int64_t n, float* out);
  void (*pack_bf16)(WeightFormat format, const uint16_t* x, int64_t n, float* out);
  /// Exact fp32 values in natural order. n a multiple of 32.
  void (*decode_fp8)(const uint8_t* codes, const uint8_t* scales_e8m0, int64_t n, float* out);
  void (*decode_mxfp4)(const uint8_t* packed, const uint8_t* scales_e8m0, int64_t n, float* out);
  void (*decode_nvfp4)(const uint8_t* packed, const uint8_t* scales_e4m3, int64_t n, float* out);
  void (*softmax)(SoftmaxBlock* block);
  void (*weighted_sum)(const WeightedSum* args);
  void (*index_scores)(const IndexScores* args);
  void (*swiglu)(const SwiGlu* args);
};

extern const Kernels kGenericKernels;
extern const Kernels kAvx2Kernels;    // x86-64 only
extern const Kernels kAvx512Kernels;  // x86-64 only

}  // namespace deepinfer::cpu
