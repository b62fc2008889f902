#include "text/utf8.h"

#include <cstring>

#include "base/check.h"

namespace deepinfer {
namespace {

/// How many continuation bytes a lead byte asks for, and the range of the first of them; n == 0: not a lead byte.
struct Lead {
  uint8_t n_continuation;
  uint8_t second_min;
  uint8_t second_max;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  return {0, 0, 0};
}

bool has_high_bit(const char* eight_bytes) {
  uint64_t word;
  std::memcpy(&word, eight_bytes, sizeof word);
  return (word & 0x8080808080808080ULL) != 0;
}

/// Offset of the first non-ASCII byte at or after `at`.
size_t skip_ascii(std::string_view text, size_t at) {
  while (at + 8 <= text.size() && !has_high_bit(text.data() + at)) at += 8;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

Utf8Step next_utf8(std::string_view text) {
  DI_DCHECK(!text.empty());
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {Utf8Unit::kCharacter, 1};
  const Lead lead = lead_of(byte(0));
  if (lead.n_continuation == 0) return {Utf8Unit::kIllFormed, 1};
  uint8_t low = lead.second_min, high = lead.second_max;
  for (uint8_t i = 1; i <= lead.n_continuation; ++i) {
    if (i >= text.size()) return {Utf8Unit::kUnfinished, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Unit::kIllFormed, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Unit::kCharacter, static_cast<uint8_t>(lead.n_continuation + 1)};
}

std::optional<size_t> find_ill_formed(std::string_view text) {
  for (size_t at = skip_ascii(text, 0); at < text.size(); at = skip_ascii(text, at)) {
    const Utf8Step step = next_utf8(text.substr(at));
    if (step.unit != Utf8Unit::kCharacter) return at;
    at += step.n_bytes;
  }
  return std::nullopt;
}

std::string replace_ill_formed(std::string text) {
  const std::optional<size_t> first = find_ill_formed(text);
  if (!first) return text;
  std::string out = text.substr(0, *first);
  for (std::string_view rest = std::string_view(text).substr(*first); !rest.empty();) {
    const Utf8Step step = next_utf8(rest);
    out += step.unit == Utf8Unit::kCharacter ? rest.substr(0, step.n_bytes) : kReplacementCharacter;
    rest.remove_prefix(step.n_bytes);
  }
  return out;
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string quoted_for_message(std::string_view text) {
  constexpr size_t kShownBytesMax = 100;
  std::string shown(1, '"');
  for (const char c : replace_ill_formed(std::string(text.substr(0, kShownBytesMax)))) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    shown += control ? kReplacementCharacter : std::string_view(&c, 1);
  }
  if (text.size() > kShownBytesMax) shown += "...";
  return shown += '"';
}

}  // namespace deepinfer
