// UTF-8 by the letter of the Unicode Standard (tables 3-7 and 3-8): well-formedness, code points, maximal subparts.
// Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Unit : uint8_t {
  kCharacter,   // one well-formed character
  kIllFormed,   // one maximal subpart of an ill-formed sequence; certain whatever follows
  kUnfinished,  // the text ends inside what can still become a character
};

struct Utf8Step {
  Utf8Unit unit;
  uint8_t n_bytes;  // 1 to 4; never 0
};

/// What stands at the start of `text`. Precondition: not empty.
Utf8Step next_utf8(std::string_view text);

/// Byte offset of the first ill-formed or unfinished sequence; nothing when the whole text is well-formed.
std::optional<size_t> find_ill_formed(std::string_view text);

/// `text` with each maximal subpart of an ill-formed sequence replaced by U+FFFD.
std::string replace_ill_formed(std::string text);

void append_utf8(char32_t code_point, std::string& out);

/// `text` in quotes, fit for a one-line error message: cut after 100 bytes, control characters and ill-formed bytes
/// replaced by U+FFFD.
std::string quoted_for_message(std::string_view text);

struct CodePoint {
  char32_t value;
  uint32_t n_bytes;
};

/// Decodes the character at `p`. Precondition: well-formed there.
inline CodePoint decode_utf8(const char* p) {
  const auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

}  // namespace deepinfer
