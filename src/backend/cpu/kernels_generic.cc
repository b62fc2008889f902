// Portable kernels, on compiler vector extensions: what runs where no other file does, and what checks those.
#include "backend/cpu/kernels.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace deepinfer::cpu {
namespace {

using Vec = float __attribute__((vector_size(32)));
using IntVec = int32_t __attribute__((vector_size(32)));
constexpr int kLanes = 8;
constexpr int kRowsInRegisters = 3;
constexpr int kHeadsInRegisters = 4;

inline Vec load(const float* p) {
  Vec x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store(float* p, Vec x) { __builtin_memcpy(p, &x, sizeof x); }
inline Vec broadcast(float x) { return Vec{x, x, x, x, x, x, x, x}; }
inline Vec zero() { return Vec{}; }
inline Vec add(Vec a, Vec b) { return a + b; }
inline Vec sub(Vec a, Vec b) { return a - b; }
inline Vec mul(Vec a, Vec b) { return a * b; }
inline Vec div(Vec a, Vec b) { return a / b; }
inline Vec max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec min(Vec a, Vec b) { return a < b ? a : b; }
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }  // two roundings; the same everywhere in this file
inline IntVec bits(Vec x) { return __builtin_bit_cast(IntVec, x); }
inline Vec from_bits(IntVec x) { return __builtin_bit_cast(Vec, x); }

inline float reduce_add(Vec x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }
inline float reduce_max(Vec x) {
  float top = x[0];
  for (int i = 1; i < kLanes; ++i) top = top > x[i] ? top : x[i];
  return top;
}

inline Vec scale_pow2(Vec x, Vec t) {
  const IntVec n = bits(t) - bits(broadcast(12582912.0f));
  const IntVec half = n >> 1;
  const IntVec rest = n - half;
  return x * from_bits((half + 127) << 23) * from_bits((rest + 127) << 23);
}
inline Vec clear_below(Vec x, Vec y, float limit) { return y < broadcast(limit) ? zero() : x; }
inline Vec round_to_bf16(Vec x) {
  const IntVec u = bits(x);
  const IntVec rounded = u + ((u >> 16) & 1) + 0x7fff;
  const IntVec quiet_nan = u | 0x400000;
  return from_bits((x != x ? quiet_nan : rounded) & static_cast<int32_t>(0xffff0000u));
}
inline Vec load_bf16(const uint16_t* p) {
  IntVec x{};
  for (int i = 0; i < kLanes; ++i) x[i] = static_cast<int32_t>(static_cast<uint32_t>(p[i]) << 16);
  return from_bits(x);
}
inline void store_bf16(uint16_t* p, Vec x) {
  const IntVec u = bits(x);
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(static_cast<uint32_t>(u[i]) >> 16);
}

constexpr uint8_t kNaturalOrder[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

/// Codes of a weight row and the scales of its blocks.
struct CodeRow {
  const uint8_t* codes;
  const uint8_t* scales;
};

struct Fp8 {
  static constexpr const uint8_t* kOrder = kNaturalOrder;
  static constexpr bool kSharedScale = true;
  using Row = CodeRow;
  using Scale = float;

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const uint8_t*>(w.values) + n * w.row_bytes, w.scales + (n / 32) * (w.n_in / 32)};
  }
  static inline Scale scale(const Row& row, int64_t block) { return e8m0_to_float(row.scales[block]); }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[4]) {
    const uint8_t* codes = row.codes + block * 32;
    for (int i = 0; i < 32; ++i) v[i / 8][i % 8] = e4m3_to_float(codes[i]) * scale;
  }
};

using Fp8Wide = Fp8;

struct Fp4 {
  static constexpr const uint8_t* kOrder = kNaturalOrder;
  static constexpr bool kSharedScale = false;
  using Row = CodeRow;
  using Scale = float;

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const uint8_t*>(w.values) + n * w.row_bytes, w.scales + n * (w.n_in / 32)};
  }
  static inline Scale scale(const Row& row, int64_t block) { return e8m0_to_float(row.scales[block]); }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[4]) {
    const uint8_t* codes = row.codes + block * 16;
    for (int i = 0; i < 32; i += 2) {
      v[i / 8][i % 8] = e2m1_to_float(unpack_e2m1_even(codes[i / 2])) * scale;
      v[i / 8][i % 8 + 1] = e2m1_to_float(unpack_e2m1_odd(codes[i / 2])) * scale;
    }
  }
};

struct Bf16 {
  static constexpr const uint8_t* kOrder = kNaturalOrder;
  static constexpr bool kSharedScale = true;
  struct Row {
    const char* values;
    int64_t n_bytes;
  };
  struct Scale {};

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const char*>(w.values) + n * w.row_bytes, w.row_bytes};
  }
  static inline Scale scale(const Row&, int64_t) { return {}; }
  static inline void decode(const Row& row, int64_t block, Scale, Vec v[4]) {
    const char* p = row.values + block * 64;
    const int64_t bytes_left = row.n_bytes - block * 64;
    uint16_t halves[32] = {};
    __builtin_memcpy(halves, p, static_cast<unsigned long>(bytes_left < 64 ? bytes_left : 64));
    for (int q = 0; q < 4; ++q) v[q] = load_bf16(halves + q * kLanes);
  }
};

struct F32 {
  static constexpr const uint8_t* kOrder = kNaturalOrder;
};

void decode_fp8(const uint8_t* codes, const uint8_t* scales, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = e4m3_to_float(codes[i]) * e8m0_to_float(scales[i / 32]);
}

inline void decode_fp4_pair(uint8_t packed, float scale, float* out) {
  out[0] = e2m1_to_float(unpack_e2m1_even(packed)) * scale;
  out[1] = e2m1_to_float(unpack_e2m1_odd(packed)) * scale;
}
void decode_mxfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 2) decode_fp4_pair(packed[i / 2], e8m0_to_float(scales[i / 32]), out + i);
}
void decode_nvfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 2) decode_fp4_pair(packed[i / 2], e4m3_to_float(scales[i / 16]), out + i);
}

#include "backend/cpu/kernels_simd.inc"

}  // namespace

const Kernels kGenericKernels = {"generic",    gemm,    pack_fp8,     pack_bf16,    decode_fp8, decode_mxfp4,
                                 decode_nvfp4, softmax, weighted_sum, index_scores, swiglu};

}  // namespace deepinfer::cpu
