// Base64 with padding (RFC 4648, section 4). Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

std::string base64_encode(std::string_view bytes);

/// Strict: whole groups of four, padding only at the end, unused bits zero; nothing otherwise.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace deepinfer
