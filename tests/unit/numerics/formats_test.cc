// The element formats, exhaustively and against formulas written another way.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace deepinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t u) { return std::bit_cast<float>(u); }

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t u = 0; u < 65536; ++u) {
    const Bf16 x{static_cast<uint16_t>(u)};
    const float f = to_float(x);
    EXPECT_EQ(bits(f), u << 16);
    if (std::isnan(f)) {
      EXPECT_EQ(to_bf16(f).bits, u | 0x40u);
      EXPECT_TRUE(std::isnan(to_float(round_to_bf16(f))));
    } else {
      EXPECT_EQ(to_bf16(f), x);
      EXPECT_EQ(round_to_bf16(f), x);
    }
  }
}

TEST(Bf16, MidpointsGoToEvenAndNeighboursToTheNearer) {
  for (uint32_t u = 0; u < 0x7f80; ++u) {  // every finite positive value and its upper neighbour (infinity included)
    const uint16_t lower = static_cast<uint16_t>(u);
    const uint16_t upper = static_cast<uint16_t>(u + 1);
    const uint16_t even = (u & 1u) == 0 ? lower : upper;
    const uint32_t middle = (u << 16) | 0x8000u;
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const uint16_t s = static_cast<uint16_t>(sign >> 16);
      EXPECT_EQ(to_bf16(from_bits(sign | middle)).bits, s | even);
      EXPECT_EQ(to_bf16(from_bits(sign | (middle - 1))).bits, s | lower);
      EXPECT_EQ(to_bf16(from_bits(sign | (middle + 1))).bits, s | upper);
      // The same from double, a quarter of a binary32 unit off the midpoint: a double rounding would see the tie.
      const double m = from_bits(sign | middle);
      EXPECT_EQ(round_to_bf16(m).bits, s | even);
      EXPECT_EQ(round_to_bf16(std::nextafter(m, 0.0)).bits, s | lower);
      EXPECT_EQ(round_to_bf16(std::nextafter(m, m * 2)).bits, s | upper);
    }
  }
}

TEST(Bf16, DoubleExtremes) {
  EXPECT_EQ(round_to_bf16(1e300).bits, 0x7f80);
  EXPECT_EQ(round_to_bf16(-1e300).bits, 0xff80);
  EXPECT_EQ(round_to_bf16(1e-300).bits, 0x0000);
  EXPECT_EQ(round_to_bf16(-1e-300).bits, 0x8000);
  EXPECT_EQ(round_to_bf16(-0.0).bits, 0x8000);
  EXPECT_EQ(round_to_bf16(0x1.fefffffffffffp127).bits, 0x7f7f);  // just below the midpoint of the largest and infinity
  EXPECT_EQ(round_to_bf16(0x1.ffp127).bits, 0x7f80);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<double>::infinity()).bits, 0x7f80);
  EXPECT_EQ(round_to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(Bf16, BulkFormsEqualScalarForms) {
  std::vector<float> x(1003);
  uint32_t state = 1;
  for (float& v : x) v = from_bits(state = state * 1664525u + 1013904223u);
  std::vector<Bf16> y(x.size());
  std::vector<float> z(x.size());
  const int64_t n = static_cast<int64_t>(x.size());
  to_bf16(x.data(), y.data(), n);
  to_float(y.data(), z.data(), n);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], to_bf16(x[i]));
    EXPECT_EQ(bits(z[i]), bits(to_float(y[i])));
  }
}

double e4m3_by_formula(int code) {
  const int e = (code / 8) % 16;
  const int m = code % 8;
  const double magnitude = e == 0 ? std::ldexp(m, -9) : std::ldexp(8 + m, e - 10);
  return code >= 128 ? -magnitude : magnitude;
}

TEST(E4m3, TableMatchesTheFormula) {
  for (int code = 0; code < 256; ++code) {
    const float f = e4m3_to_float(static_cast<uint8_t>(code));
    if (code % 128 == 127) {
      EXPECT_TRUE(std::isnan(f));
      EXPECT_EQ(float_to_e4m3(f), 0x7f);
    } else {
      EXPECT_EQ(f, e4m3_by_formula(code));
      EXPECT_EQ(std::signbit(f), code >= 128);
      EXPECT_EQ(float_to_e4m3(f), code);
    }
  }
  EXPECT_EQ(e4m3_to_float(0x7e), kE4m3Max);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9f);
}

TEST(E4m3, MidpointsGoToEvenAndNeighboursToTheNearer) {
  for (int code = 0; code < 126; ++code) {
    const float middle = static_cast<float>((e4m3_by_formula(code) + e4m3_by_formula(code + 1)) / 2);
    for (const int sign : {0, 128}) {
      const float m = sign != 0 ? -middle : middle;
      EXPECT_EQ(float_to_e4m3(m), sign + (code % 2 == 0 ? code : code + 1)) << m;
      EXPECT_EQ(float_to_e4m3(std::nextafter(m, 0.0f)), sign + code) << m;
      EXPECT_EQ(float_to_e4m3(std::nextafter(m, m * 2)), sign + code + 1) << m;
    }
  }
}

TEST(E4m3, SaturatesAndKeepsNan) {
  for (const float x : {449.0f, 464.0f, 480.0f, 1e30f, kInf}) {
    EXPECT_EQ(float_to_e4m3(x), 0x7e);
    EXPECT_EQ(float_to_e4m3(-x), 0xfe);
  }
  EXPECT_EQ(float_to_e4m3(kNan), 0x7f);
  EXPECT_EQ(float_to_e4m3(-kNan), 0x7f);
  EXPECT_EQ(float_to_e4m3(0.0f), 0x00);
  EXPECT_EQ(float_to_e4m3(-0.0f), 0x80);
  EXPECT_EQ(float_to_e4m3(1e-40f), 0x00);
}

TEST(E8m0, EveryCode) {
  for (int code = 0; code < 255; ++code) {
    const float f = e8m0_to_float(static_cast<uint8_t>(code));
    EXPECT_EQ(f, std::ldexp(1.0, code - 127));
    EXPECT_EQ(pow2_to_e8m0(f), code);
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
  EXPECT_EQ(pow2_to_e8m0(kNan), 255);
  EXPECT_EQ(pow2_to_e8m0(kInf), 255);
}

TEST(Pow2ceil, PowersAndTheirNeighbours) {
  for (int e = -126; e <= 127; ++e) {
    const float p = std::ldexp(1.0f, e);
    EXPECT_EQ(pow2ceil(p), p);
    if (e > -126) {
      EXPECT_EQ(pow2ceil(std::nextafter(p, 0.0f)), p);
    }
    EXPECT_EQ(pow2ceil(std::nextafter(p, kInf)), e == 127 ? kInf : 2 * p);
  }
  for (const float subnormal : {0x1p-149f, 0x1p-127f, 0x1.8p-127f}) EXPECT_EQ(pow2ceil(subnormal), 0x1p-126f);
}

/// The nearest magnitude by search, ties to the even code.
int e2m1_by_search(double a) {
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    const double d = std::fabs(a - e2m1_to_float(static_cast<uint8_t>(code)));
    const double d_best = std::fabs(a - e2m1_to_float(static_cast<uint8_t>(best)));
    if (d < d_best || (d == d_best && code % 2 == 0)) best = code;
  }
  return best;
}

TEST(E2m1, EveryCodeEveryTieAndTheirNeighbours) {
  const float magnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float f = e2m1_to_float(static_cast<uint8_t>(code));
    EXPECT_EQ(std::fabs(f), magnitudes[code % 8]);
    EXPECT_EQ(std::signbit(f), code >= 8);
    EXPECT_EQ(float_to_e2m1(f), code);
  }
  for (int code = 0; code < 7; ++code) {
    const float middle = (magnitudes[code] + magnitudes[code + 1]) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 9.0f)}) {
      EXPECT_EQ(float_to_e2m1(x), e2m1_by_search(x)) << x;
      EXPECT_EQ(float_to_e2m1(-x), e2m1_by_search(x) + 8) << x;
    }
    EXPECT_EQ(float_to_e2m1(middle), code % 2 == 0 ? code : code + 1);
  }
}

TEST(E2m1, ClampsAndPacks) {
  EXPECT_EQ(float_to_e2m1(100.0f), 7);
  EXPECT_EQ(float_to_e2m1(-kInf), 15);
  EXPECT_EQ(float_to_e2m1(kNan), 7);
  EXPECT_EQ(float_to_e2m1(-kNan), 7);
  EXPECT_EQ(float_to_e2m1(-1e-9f), 8);
  for (uint8_t even = 0; even < 16; ++even) {
    for (uint8_t odd = 0; odd < 16; ++odd) {
      const uint8_t packed = pack_e2m1(even, odd);
      EXPECT_EQ(packed, even + 16 * odd);
      EXPECT_EQ(unpack_e2m1_even(packed), even);
      EXPECT_EQ(unpack_e2m1_odd(packed), odd);
    }
  }
}

}  // namespace
}  // namespace deepinfer
