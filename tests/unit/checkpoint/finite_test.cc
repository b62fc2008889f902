#include "checkpoint/finite.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "numerics/e8m0.h"

namespace deepinfer {
namespace {

/// 33 zeros with one value somewhere among them.
template <typename T>
bool finite_with(DType dtype, T value, size_t at) {
  std::vector<T> values(33);
  values[at] = value;
  return all_finite({reinterpret_cast<const std::byte*>(values.data()), dtype, Shape{33}});
}

TEST(Finite, EveryByteCodeIsJudgedAsTheFormatSays) {
  for (uint32_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<uint8_t>(code);
    for (const size_t at : {0U, 17U, 32U}) {
      EXPECT_EQ(finite_with(DType::kF8E4m3, byte, at), std::isfinite(e4m3_to_float(byte))) << code;
      EXPECT_EQ(finite_with(DType::kF8E8m0, byte, at), std::isfinite(e8m0_to_float(byte))) << code;
      EXPECT_TRUE(finite_with(DType::kPackedFp4, byte, at));
    }
  }
}

TEST(Finite, EveryBf16AndTheEdgesOfFp32) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const Bf16 value{static_cast<uint16_t>(bits)};
    EXPECT_EQ(finite_with(DType::kBf16, value.bits, bits % 33), std::isfinite(to_float(value))) << bits;
  }
  for (const uint32_t bits :
       {0x7f7fffffU, 0xff7fffffU, 0x00000001U, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0x7f800001U}) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    EXPECT_EQ(finite_with(DType::kF32, bits, 5), std::isfinite(value)) << bits;
  }
}

}  // namespace
}  // namespace deepinfer
