#include "checkpoint/finite.h"

#include <cstdint>

namespace deepinfer {

namespace {

/// Whether some element has all bits of `mask` set; no early exit, so that the loop vectorises.
template <typename T>
bool any_has(const TensorView& view, T mask) {
  const T* values = reinterpret_cast<const T*>(view.data);
  const int64_t n = view.shape.n_elements();
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= (values[i] & mask) == mask;
  return found;
}

}  // namespace

bool all_finite(const TensorView& view) {
  switch (view.dtype) {
    case DType::kF32:
      return !any_has<uint32_t>(view, 0x7f800000U);
    case DType::kBf16:
      return !any_has<uint16_t>(view, 0x7f80U);
    case DType::kF8E4m3:
      return !any_has<uint8_t>(view, 0x7fU);
    case DType::kF8E8m0:
      return !any_has<uint8_t>(view, 0xffU);
    case DType::kPackedFp4:
    case DType::kI32:
    case DType::kI64:
      return true;
  }
  return true;
}

}  // namespace deepinfer
