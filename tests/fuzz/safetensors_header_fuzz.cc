// A whole file image: whatever is accepted has to lie inside it, tile it, and be viewable.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file_size = static_cast<int64_t>(size);
  const auto header = deepinfer::parse_safetensors_header(std::as_bytes(std::span(data, size)), file_size);
  if (!header) {
    DI_CHECK(header.error().message.find('\n') == std::string::npos);
    return 0;
  }
  int64_t end = header->data_offset_bytes;
  for (const deepinfer::SafetensorsEntry& entry : header->entries) {
    DI_CHECK(entry.offset_bytes == end);
    DI_CHECK(entry.size_bytes >= 0);
    end += entry.size_bytes;
    if (entry.dtype) {
      DI_CHECK(entry.size_bytes == entry.shape.n_elements() * deepinfer::element_bytes(*entry.dtype));
    }
  }
  DI_CHECK(end == file_size);
  return 0;
}
