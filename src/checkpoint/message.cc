#include "checkpoint/message.h"

#include <algorithm>

namespace deepinfer {
namespace {

constexpr size_t kProblemsSpelledOutMax = 20;
constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string printable(std::string_view text, size_t length_max) {
  size_t length = std::min(text.size(), length_max);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) --length;
  }
  std::string out;
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += kHexDigits[byte >> 4U];
      out += kHexDigits[byte & 0xFU];
    } else {
      out += c;
    }
  }
  if (length < text.size()) out += "...";
  return out;
}

std::string join_capped(std::span<const std::string> items, std::string_view separator, size_t n_max) {
  std::string out;
  const size_t n_shown = std::min(items.size(), n_max);
  for (size_t i = 0; i < n_shown; ++i) {
    if (i > 0) out += separator;
    out += items[i];
  }
  if (n_shown < items.size()) out += " and " + std::to_string(items.size() - n_shown) + " more";
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || length > text.size() - i) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80U) return false;
    }
    if (length > 2) {  // no overlong forms, no surrogates, nothing above U+10FFFF
      const auto second = static_cast<unsigned char>(text[i + 1]);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0)) return false;
      if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) return false;
    }
    i += length;
  }
  return true;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHexDigits[byte >> 4U];
      out += kHexDigits[byte & 0xFU];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Status problems_status(std::string_view title, std::span<const std::string> problems) {
  if (problems.empty()) return {};
  return Error{Code::kBadModelFile, std::string(title) + ": " + join_capped(problems, "; ", kProblemsSpelledOutMax)};
}

}  // namespace deepinfer
