#include "protocol/image_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

constexpr size_t kWebUrlBytesMax = 8192;
constexpr size_t kNumDigitsPerGroup = 4;
constexpr size_t kNumPadsMax = 2;

/// Values of the base64 digits, -1 for every other byte.
constexpr std::array<int8_t, 256> kDigits = [] {
  std::array<int8_t, 256> table{};
  table.fill(-1);
  int8_t value = 0;
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
    table[static_cast<unsigned char>(c)] = value++;
  return table;
}();

int digit_of(char c) { return kDigits[static_cast<unsigned char>(c)]; }

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return to_lower(a) == b; });
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return equals_ignoring_case(text.substr(0, lower.size()), lower);
}

std::string_view without_spaces_around(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The next byte of a percent-encoded text. A % that begins no escape stands for itself (and is no base64).
char take_byte(std::string_view& text) {
  constexpr size_t kEscapeBytes = 3;
  if (text[0] == '%' && text.size() >= kEscapeBytes && hex_value(text[1]) >= 0 && hex_value(text[2]) >= 0) {
    const int byte = hex_value(text[1]) * 16 + hex_value(text[2]);
    text.remove_prefix(kEscapeBytes);
    return static_cast<char>(byte);
  }
  const char c = text[0];
  text.remove_prefix(1);
  return c;
}

bool is_lenient_base64(std::string_view text) {
  text = text.substr(0, text.find('#'));
  size_t n_digits = 0;
  size_t n_pads = 0;
  while (!text.empty()) {
    const char c = take_byte(text);
    if (is_blank(c)) continue;
    if (c == '=')
      ++n_pads;
    else if (digit_of(c) < 0 || n_pads > 0)
      return false;
    else
      ++n_digits;
  }
  if (n_digits % kNumDigitsPerGroup == 1) return false;
  return n_pads == 0 || (n_pads <= kNumPadsMax && (n_digits + n_pads) % kNumDigitsPerGroup == 0);
}

bool is_image_type(std::string_view type) {
  constexpr std::string_view kTypes[] = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"};
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [type](std::string_view known) { return equals_ignoring_case(type, known); });
}

constexpr std::string_view kDataScheme = "data:";

std::optional<std::string> find_data_url_problem(std::string_view url) {
  constexpr std::string_view kBase64 = ";base64";
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos) return "the data: URL of an image has no comma";
  const std::string_view header = url.substr(kDataScheme.size(), comma - kDataScheme.size());
  const std::string_view type = without_spaces_around(header.substr(0, header.find(';')));
  if (!is_image_type(type))
    return "the media type " + quoted_for_message(type) +
           " of a data: URL is not image/png, image/jpeg, image/gif or "
           "image/webp";
  if (!header.ends_with(kBase64) && !without_spaces_around(header).ends_with("; base64"))
    return "the data: URL of an image is not base64";
  if (!is_lenient_base64(url.substr(comma + 1))) return "the body of the data: URL of an image is no base64";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_web_url_problem(std::string_view url) {
  const bool is_http = starts_with_ignoring_case(url, "http://");
  const size_t n_scheme_bytes = std::string_view("http://").size() + (is_http ? 0 : 1);
  if (!is_http && !starts_with_ignoring_case(url, "https://"))
    return quoted_for_message(url) + " is no image URL with http:// or https://";
  if (url.size() == n_scheme_bytes) return quoted_for_message(url) + " is an image URL without a host";
  if (url.size() > kWebUrlBytesMax)
    return "the image URL is too long: " + std::to_string(url.size()) + " bytes, at most " +
           std::to_string(kWebUrlBytesMax) + " (data: URLs may be longer)";
  // Line feeds and the like would end the header line of whoever fetches it.
  if (std::any_of(url.begin(), url.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    return quoted_for_message(url) + " is an image URL with control characters";
  return std::nullopt;
}

std::optional<std::string> find_image_url_problem(std::string_view url) {
  if (starts_with_ignoring_case(url, kDataScheme)) return find_data_url_problem(url);
  auto problem = find_web_url_problem(url);
  if (problem && !starts_with_ignoring_case(url, "http"))
    return quoted_for_message(url) + " is no image URL with http://, https:// or data:";
  return problem;
}

bool is_base64(std::string_view text) {
  if (text.size() % kNumDigitsPerGroup != 0) return false;
  size_t n_pads = 0;
  while (n_pads < kNumPadsMax && n_pads < text.size() && text[text.size() - 1 - n_pads] == '=') ++n_pads;
  text.remove_suffix(n_pads);
  if (!std::all_of(text.begin(), text.end(), [](char c) { return digit_of(c) >= 0; })) return false;
  // Each missing digit leaves two bits of the last one unused.
  const int unused_bits = (1 << (2 * n_pads)) - 1;
  return n_pads == 0 || (digit_of(text.back()) & unused_bits) == 0;
}

}  // namespace deepinfer::protocol
