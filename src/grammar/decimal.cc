#include "grammar/decimal.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr size_t kExponentDigitsMax = 17;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The digits at the start of `text`, which lose them.
std::string_view take_digits(std::string_view& text) {
  const auto end = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

}  // namespace

int64_t Decimal::n_digits() const {
  const auto n = static_cast<int64_t>(digits.size());
  if (exponent >= 0) return std::max<int64_t>(n + exponent, 1);
  return std::max(n, -exponent + 1);
}

std::string Decimal::whole_part() const {
  if (is_zero()) return "0";
  if (exponent >= 0) return digits + std::string(static_cast<size_t>(exponent), '0');
  const int64_t n = static_cast<int64_t>(digits.size()) + exponent;
  return n <= 0 ? "0" : digits.substr(0, static_cast<size_t>(n));
}

std::string Decimal::fraction() const {
  if (exponent >= 0) return "";
  const int64_t n = static_cast<int64_t>(digits.size()) + exponent;
  return n >= 0 ? digits.substr(static_cast<size_t>(n)) : std::string(static_cast<size_t>(-n), '0') + digits;
}

std::optional<Decimal> parse_decimal(std::string_view spelling) {
  Decimal number;
  if (spelling.starts_with('-')) {
    number.negative = true;
    spelling.remove_prefix(1);
  }
  const std::string_view whole = take_digits(spelling);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return std::nullopt;
  number.digits = whole;
  if (spelling.starts_with('.')) {
    spelling.remove_prefix(1);
    const std::string_view fraction = take_digits(spelling);
    if (fraction.empty()) return std::nullopt;
    number.digits += fraction;
    number.exponent = -static_cast<int64_t>(fraction.size());
  }
  if (spelling.starts_with('e') || spelling.starts_with('E')) {
    spelling.remove_prefix(1);
    const bool negative = spelling.starts_with('-');
    if (negative || spelling.starts_with('+')) spelling.remove_prefix(1);
    std::string_view exponent = take_digits(spelling);
    if (exponent.empty()) return std::nullopt;
    exponent.remove_prefix(std::min(exponent.find_first_not_of('0'), exponent.size()));
    if (exponent.size() > kExponentDigitsMax) return std::nullopt;
    int64_t value = 0;
    for (const char c : exponent) value = value * 10 + (c - '0');
    number.exponent += negative ? -value : value;
  }
  if (!spelling.empty()) return std::nullopt;
  const size_t last = number.digits.find_last_not_of('0');
  if (last == std::string::npos) return Decimal{};
  number.exponent += static_cast<int64_t>(number.digits.size() - last - 1);
  number.digits.resize(last + 1);
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  return number;
}

bool whole_less(std::string_view x, std::string_view y) { return x.size() != y.size() ? x.size() < y.size() : x < y; }

std::string whole_plus_one(std::string whole) {
  size_t i = whole.size();
  while (i > 0 && whole[i - 1] == '9') whole[--i] = '0';
  if (i == 0) return "1" + whole;
  ++whole[i - 1];
  return whole;
}

std::string whole_minus_one(std::string whole) {
  size_t i = whole.size();
  while (whole[i - 1] == '0') whole[--i] = '9';
  --whole[i - 1];
  if (whole.size() > 1 && whole[0] == '0') whole.erase(0, 1);
  return whole;
}

}  // namespace deepinfer::grammar
