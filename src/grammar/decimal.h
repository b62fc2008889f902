// Decimal numbers of any size as digit strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer::grammar {

/// digits * 10^exponent. `digits` has no zeros at either end; zero has no digits, exponent 0 and no sign.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;

  [[nodiscard]] bool is_zero() const { return digits.empty(); }
  /// Digits when written out without exponent.
  [[nodiscard]] int64_t n_digits() const;
  /// In front of the point ("0" if there are none) and behind it, without zeros at the end. Cost: n_digits()
  [[nodiscard]] std::string whole_part() const;
  [[nodiscard]] std::string fraction() const;
};

/// Nothing: no JSON number, or an exponent of more than 17 digits.
std::optional<Decimal> parse_decimal(std::string_view spelling);

/// Order of whole numbers as digits without zeros in front.
bool whole_less(std::string_view x, std::string_view y);
std::string whole_plus_one(std::string whole);
/// Precondition: not "0".
std::string whole_minus_one(std::string whole);

}  // namespace deepinfer::grammar
