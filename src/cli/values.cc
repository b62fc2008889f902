#include "cli/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "deepinfer/tokenizer.h"

namespace deepinfer::cli {

namespace {

constexpr size_t kShownBytesMax = 60;

Error rule(std::string text) { return Error{Code::kInvalidArgument, std::move(text)}; }

std::string number_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

template <typename T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// `text` with U+FFFD in place of what is not UTF-8.
std::string repaired(std::string_view text) {
  std::string result;
  Utf8Stream stream;
  stream.push(text, result);
  stream.finish(result);
  return result;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
  const auto value = whole<int64_t>(text);
  if (!value || *value < min || *value > max) {
    return rule("must be a whole number between " + std::to_string(min) + " and " + std::to_string(max));
  }
  return *value;
}

Result<uint64_t> parse_seed(std::string_view text) {
  const auto value = whole<uint64_t>(text);
  if (!value) return rule("must be a whole number between 0 and " + std::to_string(UINT64_MAX));
  return *value;
}

Result<float> parse_float(std::string_view text, float min, float max) {
  const auto value = whole<double>(text);
  const auto in_range = [&](double x) {
    return x >= static_cast<double>(min) && x <= static_cast<double>(max);
  };  // NaN: no
  if (!value || !in_range(*value)) {
    const bool open = max == std::numeric_limits<float>::max();
    return rule(open ? "must be a finite number, at least " + number_text(min)
                     : "must be a number between " + number_text(min) + " and " + number_text(max));
  }
  return static_cast<float>(*value);
}

Result<int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const Error wrong =
      rule("must be a number of bytes, at least 1 and below 2^60, with an optional K, M, G or T (of 1024)");
  int64_t unit = 1;
  if (!text.empty()) {
    const size_t power = kUnits.find(text.back());
    if (power != std::string_view::npos) {
      unit = int64_t{1} << (10 * (power + 1));
      text.remove_suffix(1);
    }
  }
  const auto value = whole<int64_t>(text);
  constexpr int64_t kMax = (int64_t{1} << 60) - 1;
  if (!value || *value < 1 || *value > kMax / unit) return wrong;
  return *value * unit;
}

Result<std::vector<int32_t>> parse_ids(std::string_view text, char separator) {
  std::vector<int32_t> ids;
  text = without_blanks(text);
  if (text.empty()) return rule("there are no token ids");
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view item = without_blanks(text.substr(0, end));
    const auto id = whole<int32_t>(item);
    if (!id || *id < 0) {
      return rule("\"" + shown(item) + "\" at position " + std::to_string(ids.size()) +
                  " must be a token id, a whole number from 0 to the vocabulary's size - 1");
    }
    ids.push_back(*id);
    if (end == text.size()) return ids;
    text.remove_prefix(end + 1);
    if (separator == ' ') text = without_blanks(text);
  }
}

std::optional<size_t> ill_formed_offset(std::string_view text) {
  const std::string good = repaired(text);
  const auto differ = std::ranges::mismatch(text, good);
  if (differ.in1 == text.end() && differ.in2 == good.end()) return std::nullopt;
  // The replacement and the bytes it stands for may begin alike: go back to where the replacement begins.
  auto offset = static_cast<size_t>(differ.in2 - good.begin());
  while (offset > 0 && offset < good.size() && is_continuation(good[offset])) --offset;
  return offset;
}

std::string shown(std::string_view text) {
  std::string result = repaired(text.substr(0, kShownBytesMax));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text.size() > kShownBytesMax ? result + "..." : result;
}

}  // namespace deepinfer::cli
