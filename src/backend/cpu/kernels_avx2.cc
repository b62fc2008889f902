// AVX2 + FMA kernels. Compiled with -mavx2 -mfma: see kernels.h for what may not be included here.
#include <immintrin.h>

#include "backend/cpu/kernels.h"

namespace deepinfer::cpu {
namespace {

using Vec = __m256;
constexpr int kLanes = 8;
constexpr int kRowsInRegisters = 3;  // x 4 outputs = 12 of 16 registers
constexpr int kHeadsInRegisters = 4;

inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
inline Vec broadcast(float x) { return _mm256_set1_ps(x); }
inline Vec zero() { return _mm256_setzero_ps(); }
inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256i bits(Vec x) { return _mm256_castps_si256(x); }
inline Vec from_bits(__m256i x) { return _mm256_castsi256_ps(x); }

inline float reduce_add(Vec x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Vec x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/// The integer is in the low bits of t. Two half steps, so that results below 2^-126 are rounded once.
inline Vec scale_pow2(Vec x, Vec t) {
  const __m256i n = _mm256_sub_epi32(bits(t), bits(broadcast(12582912.0f)));
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256i rest = _mm256_sub_epi32(n, half);
  const __m256i bias = _mm256_set1_epi32(127);
  const Vec first = from_bits(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const Vec second = from_bits(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
  return mul(mul(x, first), second);
}
inline Vec clear_below(Vec x, Vec y, float limit) {
  return _mm256_andnot_ps(_mm256_cmp_ps(y, broadcast(limit), _CMP_LT_OQ), x);
}
inline Vec round_to_bf16(Vec x) {
  const __m256i u = bits(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet_nan = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const Vec unordered = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const Vec chosen = _mm256_blendv_ps(from_bits(rounded), from_bits(quiet_nan), unordered);
  return _mm256_and_ps(chosen, from_bits(_mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}
inline Vec load_bf16(const uint16_t* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return from_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
inline void store_bf16(uint16_t* p, Vec x) {
  const __m256i high = _mm256_srli_epi32(bits(x), 16);
  const __m256i packed = _mm256_packus_epi32(high, high);  // [0..3, 0..3, 4..7, 4..7]
  const __m256i ordered = _mm256_permute4x64_epi64(packed, 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}

inline Vec e8m0(uint32_t code) {
  return from_bits(_mm256_set1_epi32(static_cast<int>(code == 0     ? 0x00400000u
                                                      : code == 255 ? 0x7fc00000u
                                                                    : code << 23)));
}

/// E4M3 codes as floats 2^120 too small, from the top byte of each 32-bit lane: sign to bit 31, the rest to
/// bits 26..20. E4M3 subnormals become fp32 subnormals, which the multiplication with 2^120 makes exact normal numbers.
inline Vec e4m3_shrunk(__m256i lanes) {
  return from_bits(_mm256_and_si256(_mm256_srai_epi32(lanes, 4), _mm256_set1_epi32(static_cast<int>(0x87f00000u))));
}

/// kWide: any scale; otherwise only scales that can be folded into the factor 2^120 (kLargestFoldedScale).
template <bool kWide>
struct Fp8Format {
  /// Vector q holds the q-th byte of each 32-bit word: no byte shuffles.
  static constexpr uint8_t kOrder[32] = {0, 4, 8,  12, 16, 20, 24, 28, 1, 5, 9,  13, 17, 21, 25, 29,
                                         2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31};
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
    if constexpr (kWide) return {from_bits(_mm256_set1_epi32((127 + 120) << 23)), e8m0(code)};
    return {from_bits(_mm256_set1_epi32(static_cast<int>((code + 120) << 23))), zero()};
  }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[4]) {
    const uint8_t* codes = row.codes + block * 32;
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    v[0] = mul(e4m3_shrunk(_mm256_slli_epi32(words, 24)), scale.factor);
    v[1] = mul(e4m3_shrunk(_mm256_slli_epi32(words, 16)), scale.factor);
    v[2] = mul(e4m3_shrunk(_mm256_slli_epi32(words, 8)), scale.factor);
    v[3] = mul(e4m3_shrunk(words), scale.factor);
    if constexpr (kWide) {
      for (int q = 0; q < 4; ++q) v[q] = mul(v[q], scale.scale);
    }
  }
};
using Fp8 = Fp8Format<false>;
using Fp8Wide = Fp8Format<true>;

/// bf16 bytes of the 16 E2M1 values times every E8M0 scale (exact), as two byte tables for a byte shuffle.
struct Fp4Tables {
  struct alignas(32) Entry {
    uint8_t low[16];
    uint8_t high[16];
  };
  Entry entry[256];
};

constexpr Fp4Tables make_fp4_tables() {
  constexpr uint32_t kDoubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  Fp4Tables tables{};
  for (uint32_t code = 0; code < 256; ++code) {
    for (uint32_t i = 0; i < 16; ++i) {
      // kDoubled * 2^(code - 128): 1.mantissa * 2^exponent
      const uint32_t doubled = kDoubled[i & 7u];
      uint32_t top = 0;
      while ((doubled >> (top + 1)) != 0) ++top;
      const int32_t biased = static_cast<int32_t>(code + top) - 1;  // exponent + 127
      const uint32_t mantissa = ((doubled << 7) >> top) & 0x7fu;
      uint32_t u = 0;
      if (code == 255) {
        u = 0x7fc0;
      } else if (doubled == 0) {
        u = 0;
      } else if (biased <= 0) {
        u = (mantissa | 0x80u) >> (1 - biased);
      } else {
        u = biased >= 255 ? 0x7f80u : (static_cast<uint32_t>(biased) << 7) | mantissa;
      }
      if ((i & 8u) != 0) u |= 0x8000u;
      tables.entry[code].low[i] = static_cast<uint8_t>(u & 0xffu);
      tables.entry[code].high[i] = static_cast<uint8_t>(u >> 8);
    }
  }
  return tables;
}
constexpr Fp4Tables kFp4Tables = make_fp4_tables();

inline __m256i broadcast_16_bytes(const void* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

struct Fp4 {
  /// Low nibbles in the lower half, high nibbles in the upper; even and odd bf16 of each 32-bit lane apart.
  static constexpr uint8_t kOrder[32] = {0,  4,  8,  12, 1,  5,  9,  13, 2,  6,  10, 14, 3,  7,  11, 15,
                                         16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31};
  static constexpr bool kSharedScale = false;
  struct Row {
    const uint8_t* codes;
    const uint8_t* scales;
  };
  struct Scale {
    __m256i low;
    __m256i high;
  };

  static inline Row row(const WeightRows& w, int64_t n) {
    return {static_cast<const uint8_t*>(w.values) + n * w.row_bytes, w.scales + n * (w.n_in / 32)};
  }
  static inline Scale scale(const Row& row, int64_t block) {
    const Fp4Tables::Entry& entry = kFp4Tables.entry[row.scales[block]];
    return {broadcast_16_bytes(entry.low), broadcast_16_bytes(entry.high)};
  }
  static inline void decode(const Row& row, int64_t block, Scale scale, Vec v[4]) {
    const uint8_t* codes = row.codes + block * 16;
    const __m256i shifted = _mm256_srlv_epi64(broadcast_16_bytes(codes), _mm256_setr_epi64x(0, 0, 4, 4));
    const __m256i nibbles = _mm256_and_si256(shifted, _mm256_set1_epi8(15));
    const __m256i low = _mm256_shuffle_epi8(scale.low, nibbles);
    const __m256i high = _mm256_shuffle_epi8(scale.high, nibbles);
    const __m256i first = _mm256_unpacklo_epi8(low, high);
    const __m256i second = _mm256_unpackhi_epi8(low, high);
    const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    v[0] = from_bits(_mm256_slli_epi32(first, 16));
    v[1] = from_bits(_mm256_and_si256(first, odd));
    v[2] = from_bits(_mm256_slli_epi32(second, 16));
    v[3] = from_bits(_mm256_and_si256(second, odd));
  }
};

struct Bf16 {
  static constexpr uint8_t kOrder[32] = {0,  2,  4,  6,  8,  10, 12, 14, 1,  3,  5,  7,  9,  11, 13, 15,
                                         16, 18, 20, 22, 24, 26, 28, 30, 17, 19, 21, 23, 25, 27, 29, 31};
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
    alignas(32) char last[64];
    const int64_t bytes_left = row.n_bytes - block * 64;
    if (__builtin_expect(bytes_left < 64, 0)) {
      for (int64_t i = 0; i < 64; ++i) last[i] = i < bytes_left ? p[i] : 0;
      p = last;
    }
    const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    v[0] = from_bits(_mm256_slli_epi32(first, 16));
    v[1] = from_bits(_mm256_and_si256(first, odd));
    v[2] = from_bits(_mm256_slli_epi32(second, 16));
    v[3] = from_bits(_mm256_and_si256(second, odd));
  }
};

struct F32 {
  static constexpr uint8_t kOrder[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                         16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
};

void decode_fp8(const uint8_t* codes, const uint8_t* scales, int64_t n, float* out) {
  const Vec grow = from_bits(_mm256_set1_epi32((127 + 120) << 23));
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i));
    const __m256i lanes = _mm256_slli_epi32(_mm256_cvtepu8_epi32(eight), 24);
    store(out + i, mul(mul(e4m3_shrunk(lanes), grow), e8m0(scales[i / 32])));
  }
}

/// Twice the E2M1 value as signed bytes.
inline __m128i doubled_e2m1() { return _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12); }

/// 16 elements of 8 bytes, times half_scale.
inline void decode_16_fp4(const uint8_t* packed, Vec half_scale, float* out) {
  const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(packed));
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i even = _mm_and_si128(eight, mask);
  const __m128i odd = _mm_and_si128(_mm_srli_epi16(eight, 4), mask);
  const __m128i doubled = _mm_shuffle_epi8(doubled_e2m1(), _mm_unpacklo_epi8(even, odd));
  const __m256i first = _mm256_cvtepi8_epi32(doubled);
  const __m256i second = _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(doubled, doubled));
  store(out, mul(_mm256_cvtepi32_ps(first), half_scale));
  store(out + 8, mul(_mm256_cvtepi32_ps(second), half_scale));
}

void decode_mxfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += 16) {
    decode_16_fp4(packed + i / 2, mul(e8m0(scales[i / 32]), broadcast(0.5f)), out + i);
  }
}

void decode_nvfp4(const uint8_t* packed, const uint8_t* scales, int64_t n, float* out) {
  const Vec grow = from_bits(_mm256_set1_epi32((127 + 119) << 23));  // 2^120 / 2
  for (int64_t i = 0; i < n; i += 16) {
    const uint32_t code = scales[i / 16];
    const Vec half_scale = (code & 127u) == 127u
                               ? broadcast(__builtin_nanf(""))
                               : mul(e4m3_shrunk(_mm256_set1_epi32(static_cast<int>(code << 24))), grow);
    decode_16_fp4(packed + i / 2, half_scale, out + i);
  }
}

#include "backend/cpu/kernels_simd.inc"

}  // namespace

const Kernels kAvx2Kernels = {"avx2",       gemm,    pack_fp8,     pack_bf16,    decode_fp8, decode_mxfp4,
                              decode_nvfp4, softmax, weighted_sum, index_scores, swiglu};

}  // namespace deepinfer::cpu
