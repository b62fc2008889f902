// AVX-512 (F, BW, VL) kernels. Compiled with its own -m flags: see kernels.h for what may not be included here.
#include <immintrin.h>

#include "backend/cpu/kernels.h"

namespace deepinfer::cpu {
namespace {

using Vec = __m512;
constexpr int kLanes = 16;
constexpr int kRowsInRegisters = 6;  // x 4 outputs = 24 of 32 registers
constexpr int kHeadsInRegisters = 8;

inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
inline Vec broadcast(float x) { return _mm512_set1_ps(x); }
inline Vec zero() { return _mm512_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512i bits(Vec x) { return _mm512_castps_si512(x); }
inline Vec from_bits(__m512i x) { return _mm512_castsi512_ps(x); }

inline __m256 upper_half(Vec x) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)); }
inline float reduce_add(Vec x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), upper_half(x));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Vec x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x), upper_half(x));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline Vec scale_pow2(Vec x, Vec t) { return _mm512_scalef_ps(x, sub(t, broadcast(12582912.0f))); }
inline Vec clear_below(Vec x, Vec y, float limit) {
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(y, broadcast(limit), _CMP_LT_OQ), zero());
}
inline Vec round_to_bf16(Vec x) {
  const __m512i u = bits(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet_nan = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  const __m512i chosen = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet_nan);
  return from_bits(_mm512_and_si512(chosen, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}
inline Vec load_bf16(const uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return from_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
inline void store_bf16(uint16_t* p, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits(x), 16)));
}

inline Vec e8m0(uint32_t code) {
  return from_bits(_mm512_set1_epi32(static_cast<int>(code == 0     ? 0x00400000u
                                                      : code == 255 ? 0x7fc00000u
                                                                    : code << 23)));
}

/// E4M3 codes as floats 2^120 too small, from the top byte of each 32-bit lane (kernels_avx2.cc has the argument).
inline Vec e4m3_shrunk(__m512i lanes) {
  return from_bits(_mm512_and_si512(_mm512_srai_epi32(lanes, 4), _mm512_set1_epi32(static_cast<int>(0x87f00000u))));
}

inline __m512i broadcast_16_bytes(const void* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

/// kWide: any scale; otherwise only scales that can be folded into the factor 2^120 (kLargestFoldedScale).
template <bool kWide>
struct Fp8Format {
  /// Lane 4q + i of vector 0 is byte q of 32-bit word i, of vector 1 that of word i + 4.
  static constexpr uint8_t kOrder[32] = {0,  4,  8,  12, 1,  5,  9,  13, 2,  6,  10, 14, 3,  7,  11, 15,
                                         16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31};
  static constexpr bool kSharedScale = true;
  struct Row {
    const uint8_t* codes;
    const uint8_t* scales;
  };
  struct Scale {
    Vec factor;  // 2^120 * scale, or 2^120 alone if kWide
    Vec scale;   // kWide only
  };

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const uint8_t*>(w.values) + n * w.row_bytes, w.scales + (n / 32) * (w.n_in / 32)};
  }
  static inline Scale scale(const Row& row, int64_t block) {
    const uint32_t code = row.scales[block];
    if constexpr (kWide) return {from_bits(_mm512_set1_epi32((127 + 120) << 23)), e8m0(code)};
    return {from_bits(_mm512_set1_epi32(static_cast<int>((code + 120) << 23))), zero()};
  }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[2]) {
    const uint8_t* codes = row.codes + block * 32;
    const __m512i shift = _mm512_setr_epi32(24, 24, 24, 24, 16, 16, 16, 16, 8, 8, 8, 8, 0, 0, 0, 0);
    v[0] = mul(e4m3_shrunk(_mm512_sllv_epi32(broadcast_16_bytes(codes), shift)), scale.factor);
    v[1] = mul(e4m3_shrunk(_mm512_sllv_epi32(broadcast_16_bytes(codes + 16), shift)), scale.factor);
    if constexpr (kWide) {
      for (int q = 0; q < 2; ++q) v[q] = mul(v[q], scale.scale);
    }
  }
};
using Fp8 = Fp8Format<false>;
using Fp8Wide = Fp8Format<true>;

struct Fp4 {
  /// Lane 4q + i of vector 0 is nibble q of 32-bit word i, of vector 1 nibble q + 4.
  static constexpr uint8_t kOrder[32] = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                                         4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
  static constexpr bool kSharedScale = false;
  struct Row {
    const uint8_t* codes;
    const uint8_t* scales;
  };
  struct Scale {
    Vec table;  // the 16 values times the scale
  };

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const uint8_t*>(w.values) + n * w.row_bytes, w.scales + n * (w.n_in / 32)};
  }
  static inline Scale scale(const Row& row, int64_t block) {
    const Vec values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f,
                                      -3.0f, -4.0f, -6.0f);
    return {mul(values, e8m0(row.scales[block]))};
  }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[2]) {
    const uint8_t* codes = row.codes + block * 16;
    const __m512i words = broadcast_16_bytes(codes);
    const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    const __m512i second = _mm512_setr_epi32(16, 16, 16, 16, 20, 20, 20, 20, 24, 24, 24, 24, 28, 28, 28, 28);
    v[0] = _mm512_permutexvar_ps(_mm512_srlv_epi32(words, first), scale.table);  // reads the low four bits of an index
    v[1] = _mm512_permutexvar_ps(_mm512_srlv_epi32(words, second), scale.table);
  }
};

struct Bf16 {
  static constexpr uint8_t kOrder[32] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                         1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
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
  static inline void decode(const Row& row, int64_t block, Scale, Vec v[2]) {
    const char* p = row.values + block * 64;
    const int64_t bytes_left = row.n_bytes - block * 64;
    const __mmask32 present = bytes_left >= 64 ? 0xffffffffu : (1u << (bytes_left / 2)) - 1;
    const __m512i pairs = _mm512_maskz_loadu_epi16(present, p);
    v[0] = from_bits(_mm512_slli_epi32(pairs, 16));
    v[1] = from_bits(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
};

struct F32 {
  static constexpr uint8_t kOrder[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
};

void decode_fp8(const uint8_t* codes, const uint8_t* scales, int64_t n, float* out) {
  const Vec grow = from_bits(_mm512_set1_epi32((127 + 120) << 23));
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
    const __m512i lanes = _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 24);
    store(out + i, mul(mul(e4m3_shrunk(lanes), grow), e8m0(scales[i / 32])));
  }
}

/// 16 elements of 8 bytes, looked up in `table`.
inline void decode_16_fp4(const uint8_t* packed, Vec table, float* out) {
  const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(packed));
  const __m128i nibbles = _mm_unpacklo_epi8(eight, _mm_srli_epi16(eight, 4));
  store(out, _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(nibbles), table));
}
inline Vec e2m1_values() {
  return _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f,
                        -6.0f);
}

void decode_mxfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 16) decode_16_fp4(packed + i / 2, mul(e2m1_values(), e8m0(scales[i / 32])), out + i);
}

void decode_nvfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  const Vec grow = from_bits(_mm512_set1_epi32((127 + 120) << 23));
  for (int64_t i = 0; i < n; i += 16) {
    const uint32_t code = scales[i / 16];
    const Vec scale = (code & 127u) == 127u ? broadcast(__builtin_nanf(""))
                                            : mul(e4m3_shrunk(_mm512_set1_epi32(static_cast<int>(code << 24))), grow);
    decode_16_fp4(packed + i / 2, mul(e2m1_values(), scale), out + i);
  }
}

#include "backend/cpu/kernels_simd.inc"

}  // namespace

const Kernels kAvx512Kernels = {"avx512",     gemm,    pack_fp8,     pack_bf16,    decode_fp8, decode_mxfp4,
                                decode_nvfp4, softmax, weighted_sum, index_scores, swiglu};

}  // namespace deepinfer::cpu
