#include "tokenizer/base64.h"

#include <array>
#include <cstdint>

namespace deepinfer {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValueOf = [] {
  std::array<int8_t, 256> values{};
  for (auto& value : values) value = -1;
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  return values;
}();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < n ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text += i <= n ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t n_padding = 0;
  while (n_padding < 2 && n_padding < text.size() && text[text.size() - 1 - n_padding] == '=') ++n_padding;
  const std::string_view digits = text.substr(0, text.size() - n_padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t held = 0;
  int n_held_bits = 0;
  for (const char digit : digits) {
    const int8_t value = kValueOf[static_cast<unsigned char>(digit)];
    if (value < 0) return std::nullopt;
    held = held << 6 | static_cast<uint32_t>(value);
    n_held_bits += 6;
    if (n_held_bits < 8) continue;
    n_held_bits -= 8;
    bytes += static_cast<char>(held >> n_held_bits & 0xFF);
  }
  if ((held & ((1U << n_held_bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace deepinfer
