#include "tensor/dtype.h"

#include <array>
#include <cstddef>

#include "base/check.h"

namespace deepinfer {
namespace {

struct DTypeInfo {
  DType dtype;
  int64_t element_bytes;
  std::string_view tag;
};

constexpr std::array<DTypeInfo, 7> kDTypes = {{
    {DType::kF32, 4, "F32"},
    {DType::kBf16, 2, "BF16"},
    {DType::kF8E4m3, 1, "F8_E4M3"},
    {DType::kF8E8m0, 1, "F8_E8M0"},
    {DType::kPackedFp4, 1, "I8"},
    {DType::kI32, 4, "I32"},
    {DType::kI64, 8, "I64"},
}};

constexpr bool is_indexed_by_value() {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (static_cast<size_t>(kDTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(is_indexed_by_value(), "kDTypes follows the order of DType");

const DTypeInfo& info(DType dtype) {
  DI_CHECK(static_cast<size_t>(dtype) < kDTypes.size());
  return kDTypes[static_cast<size_t>(dtype)];
}

}  // namespace

int64_t element_bytes(DType dtype) { return info(dtype).element_bytes; }

std::string_view safetensors_tag(DType dtype) { return info(dtype).tag; }

std::optional<DType> dtype_from_safetensors_tag(std::string_view tag) {
  for (const DTypeInfo& candidate : kDTypes) {
    if (candidate.tag == tag) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace deepinfer
