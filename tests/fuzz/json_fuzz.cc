// The JSON reader of the protocol layer: it accepts what nlohmann-json accepts (but for its own limits), and what it
// writes reads back as the same value.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "text/json.h"
#include "text/utf8.h"

namespace json = deepinfer::json;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = json::parse(text);
  if (!value.ok()) {
    DI_CHECK(value.error().message.find('\n') == std::string::npos);
    DI_CHECK(!deepinfer::find_ill_formed(value.error().message));
    // The other parser has no depth limit, skips a byte order mark, ends at a NUL, and may differ on what overflows.
    const bool by_our_limits = value.error().message.find("deeper") != std::string::npos ||
                               value.error().message.find("64-bit float") != std::string::npos ||
                               text.starts_with("\xEF\xBB\xBF") || text.find('\0') != std::string_view::npos;
    DI_CHECK(by_our_limits || !nlohmann::json::accept(text));
    return 0;
  }
  DI_CHECK(nlohmann::json::accept(text));
  for (const json::Style style : {json::Style::kCompact, json::Style::kPython}) {
    const std::string written = json::to_string(*value, style);
    const auto again = json::parse(written);
    DI_CHECK(again.ok());
    DI_CHECK(json::to_string(*again, style) == written);
  }
  return 0;
}
