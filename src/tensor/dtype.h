// Element types as the release stores them. Units: sizes are bits because FP4 packs two elements in a byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace deepinfer {

enum class DType : uint8_t {
  kF32,
  kBf16,
  kF8E4m3,     // E4M3FN
  kF8E8m0,     // power-of-two scales
  kPackedFp4,  // two E2M1 codes a byte, even element in the low nibble; safetensors tag I8
  kI32,
  kI64,
};

/// Bytes of one stored element; a kPackedFp4 element is one byte (two numbers).
int64_t element_bytes(DType dtype);

/// The safetensors tag ("F32", "BF16", "F8_E4M3", "F8_E8M0", "I8", "I32", "I64").
std::string_view safetensors_tag(DType dtype);

/// Inverse of safetensors_tag; nothing for a tag this project does not use.
std::optional<DType> dtype_from_safetensors_tag(std::string_view tag);

}  // namespace deepinfer
