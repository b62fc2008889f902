#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

constexpr DType kAll[] = {DType::kF32,       DType::kBf16, DType::kF8E4m3, DType::kF8E8m0,
                          DType::kPackedFp4, DType::kI32,  DType::kI64};

TEST(DType, TagsGoBothWays) {
  for (const DType dtype : kAll) EXPECT_EQ(dtype_from_safetensors_tag(safetensors_tag(dtype)), dtype);
}

TEST(DType, KnowsTheReleasedTags) {
  EXPECT_EQ(safetensors_tag(DType::kF8E4m3), "F8_E4M3");
  EXPECT_EQ(safetensors_tag(DType::kF8E8m0), "F8_E8M0");
  EXPECT_EQ(safetensors_tag(DType::kPackedFp4), "I8");
  EXPECT_EQ(safetensors_tag(DType::kBf16), "BF16");
}

TEST(DType, RefusesOtherTags) {
  for (const char* tag : {"", "F16", "bf16", "F8_E5M2", "U8", "BF16 "}) {
    EXPECT_EQ(dtype_from_safetensors_tag(tag), std::nullopt) << tag;
  }
}

TEST(DType, ElementBytes) {
  EXPECT_EQ(element_bytes(DType::kF32), 4);
  EXPECT_EQ(element_bytes(DType::kBf16), 2);
  EXPECT_EQ(element_bytes(DType::kF8E4m3), 1);
  EXPECT_EQ(element_bytes(DType::kF8E8m0), 1);
  EXPECT_EQ(element_bytes(DType::kPackedFp4), 1);
  EXPECT_EQ(element_bytes(DType::kI32), 4);
  EXPECT_EQ(element_bytes(DType::kI64), 8);
}

}  // namespace
}  // namespace deepinfer
