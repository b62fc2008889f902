#include "grammar/numbers.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "grammar/decimal.h"
#include "grammar/number_automaton.h"
#include "grammar/number_ranges.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kDigitsMax = 2000;  // of a limit when written out

Lang join(Languages& languages, std::initializer_list<Lang> parts) {
  return languages.concat({parts.begin(), parts.size()});
}
Lang either(Languages& languages, std::initializer_list<Lang> parts) {
  return languages.any_of({parts.begin(), parts.size()});
}
Lang digits(Languages& languages, int32_t min, int32_t max = -1) {
  return languages.repeat(languages.bytes('0', '9'), min, max);
}
Lang zeros(Languages& languages, int32_t min) { return languages.repeat(languages.text("0"), min, -1); }

/// Exponents up to 308, or none: positive ones, negative ones, and always those of zero. Larger ones are beyond what most
/// readers hold, ours too.
Lang exponents(Languages& languages, bool positive, bool negative) {
  const Lang any =
      either(languages, {digits(languages, 1, 2), join(languages, {languages.bytes('0', '2'), digits(languages, 2, 2)}),
                         join(languages, {languages.text("30"), languages.bytes('0', '8')})});
  const Lang none = languages.repeat(languages.text("0"), 1, 3);
  const Lang plus = languages.repeat(languages.text("+"), 0, 1);
  const Lang e = either(languages, {languages.text("e"), languages.text("E")});
  const Lang up = join(languages, {plus, positive ? any : none});
  const Lang down = join(languages, {languages.text("-"), negative ? any : none});
  return languages.repeat(join(languages, {e, either(languages, {up, down})}), 0, 1);
}

Result<Decimal> limit_of(std::string_view spelling, std::string_view name) {
  const std::optional<Decimal> number = parse_decimal(spelling);
  if (!number.has_value() || number->n_digits() > kDigitsMax) {
    return Error{Code::kInvalidArgument, std::string(name) + " " + quoted_for_message(spelling) +
                                             (number.has_value() ? " has more than 2000 digits" : " is not supported")};
  }
  return *number;
}

MagnitudeLimit magnitude(const Decimal& number, bool exclusive) {
  return {.whole = number.whole_part(), .fraction = number.fraction(), .exclusive = exclusive};
}

/// Limits of the numbers of one sign, without it; nothing: no such numbers.
struct OneSign {
  MagnitudeLimit low;
  std::optional<MagnitudeLimit> high;
};

/// `low` and `high` are limits of the numbers that have the sign; the other sign's are got by turning both around.
std::optional<OneSign> limits_of_sign(const std::optional<Decimal>& low, bool low_exclusive,
                                      const std::optional<Decimal>& high, bool high_exclusive) {
  OneSign result;
  if (low.has_value() && !low->negative) result.low = magnitude(*low, low_exclusive);
  if (high.has_value()) {
    if (high->negative || (high->is_zero() && high_exclusive)) return std::nullopt;
    result.high = magnitude(*high, high_exclusive);
  }
  return result;
}

std::optional<Decimal> turned(std::optional<Decimal> number) {
  if (number.has_value() && !number->is_zero()) number->negative = !number->negative;
  return number;
}

/// Numbers of one sign, without it.
Lang language_of_sign(Languages& languages, const OneSign& limits, bool integer, const std::optional<Lang>& multiples) {
  const bool by_places = integer || multiples.has_value();  // more places could break it
  const bool above_zero = limits.low.whole != "0" || !limits.low.fraction.empty();
  Lang mantissa;
  if (multiples.has_value() && !above_zero && !limits.low.exclusive && !limits.high.has_value()) {
    mantissa = *multiples;  // where a divisor of `integer` is whole; without an intersection nothing has to be searched
  } else {
    mantissa = magnitudes_between(languages, limits.low, limits.high, integer);
    if (multiples.has_value()) {
      const Lang both[] = {mantissa, *multiples};
      mantissa = languages.all_of(both);
    }
  }
  return join(languages, {mantissa, exponents(languages, !limits.high.has_value(), !by_places && !above_zero)});
}

/// canonical_number() where the exponent does not fit 64 bits: it is added up digit by digit.
std::string canonical_of_huge_exponent(std::string_view spelling) {
  const size_t e = spelling.find_first_of("eE");
  const std::optional<Decimal> mantissa = parse_decimal(spelling.substr(0, e));
  if (!mantissa.has_value() || e == std::string_view::npos) return std::string(spelling);
  if (mantissa->is_zero()) return "0";
  std::string_view exponent = spelling.substr(e + 1);
  const bool negative = exponent.starts_with('-');
  exponent.remove_prefix(std::min(exponent.find_first_of("123456789"), exponent.size()));
  std::string digits(exponent);
  int64_t carry = negative ? -mantissa->exponent : mantissa->exponent;  // much smaller than the exponent
  for (size_t i = digits.size(); i-- > 0 && carry != 0;) {
    const int64_t sum = (digits[i] - '0') + carry;
    const int64_t digit = (sum % 10 + 10) % 10;
    digits[i] = static_cast<char>('0' + digit);
    carry = (sum - digit) / 10;
  }
  if (carry > 0) digits.insert(0, std::to_string(carry));
  digits.erase(0, digits.find_first_not_of('0'));
  return (mantissa->negative ? "-" : "") + mantissa->digits + (negative ? "e-" : "e") + digits;
}

}  // namespace

Lang plain_numbers(Languages& languages) {
  const Lang whole =
      either(languages, {languages.text("0"), join(languages, {languages.bytes('1', '9'), digits(languages, 0)})});
  const Lang fraction = join(languages, {languages.text("."), digits(languages, 1)});
  return join(languages, {languages.repeat(languages.text("-"), 0, 1), whole, languages.repeat(fraction, 0, 1)});
}

Lang numbers_with_exponent(Languages& languages) {
  const Lang e = either(languages, {languages.text("e"), languages.text("E")});
  const Lang sign = either(languages, {kEmptyText, languages.text("+"), languages.text("-")});
  const Lang not_zero = join(languages, {zeros(languages, 0), languages.bytes('1', '9'), digits(languages, 0)});
  return join(languages, {plain_numbers(languages), e, sign, not_zero});
}

bool has_every_spelling(const NumberLimits& limits) {
  return limits.minimum.empty() && limits.maximum.empty() && limits.multiple_of.empty() && !limits.integer;
}

namespace {

/// number_language() as an expression.
Result<Lang> number_expression(Languages& languages, const NumberLimits& limits) {
  std::optional<Decimal> low;
  std::optional<Decimal> high;
  std::optional<Lang> multiples;
  bool integer = limits.integer;
  if (!limits.minimum.empty()) {
    DI_ASSIGN_OR_RETURN(low, limit_of(limits.minimum, "the minimum"));
  }
  if (!limits.maximum.empty()) {
    DI_ASSIGN_OR_RETURN(high, limit_of(limits.maximum, "the maximum"));
  }
  if (!limits.multiple_of.empty()) {
    DI_ASSIGN_OR_RETURN(Decimal divisor, limit_of(limits.multiple_of, "multipleOf"));
    if (divisor.is_zero() || divisor.negative) {
      return Error{Code::kInvalidArgument, "multipleOf " + quoted_for_message(limits.multiple_of) + " is not above 0"};
    }
    if (integer) {
      const std::optional<Decimal> whole = least_whole_multiple(divisor);
      if (!whole.has_value())
        return Error{Code::kInvalidArgument, "multipleOf has more digits than an automaton can hold"};
      divisor = *whole;
    }
    integer = integer || divisor.exponent >= 0;
    if (divisor.digits != "1" || divisor.exponent != 0) {
      Result<Lang> found = multiples_of(languages, divisor);
      if (!found.ok()) {
        return Error{Code::kInvalidArgument,
                     "multipleOf " + quoted_for_message(limits.multiple_of) + ": " + found.error().message};
      }
      multiples = *found;
    }
  }
  Lang result = kNothing;
  if (const auto sign = limits_of_sign(low, limits.exclusive_minimum, high, limits.exclusive_maximum)) {
    result = language_of_sign(languages, *sign, integer, multiples);
  }
  if (const auto sign = limits_of_sign(turned(high), limits.exclusive_maximum, turned(low), limits.exclusive_minimum)) {
    const Lang negative = language_of_sign(languages, *sign, integer, multiples);
    result = either(languages, {result, join(languages, {languages.text("-"), negative})});
  }
  return languages.is_empty(result) ? kNothing : result;
}

}  // namespace

Result<Lang> number_language(Languages& languages, const NumberLimits& limits) {
  constexpr size_t kLimitMax = 24;  // characters; longer ones are rare and may have many states
  if (!limits.multiple_of.empty() || limits.minimum.size() > kLimitMax || limits.maximum.size() > kLimitMax)
    return number_expression(languages, limits);
  std::string name = limits.integer ? "integers" : "numbers";
  if (!limits.minimum.empty()) name.append(limits.exclusive_minimum ? " > " : " >= ").append(limits.minimum);
  if (!limits.maximum.empty()) name.append(limits.exclusive_maximum ? " < " : " <= ").append(limits.maximum);
  std::shared_ptr<const Languages::Automaton> automaton = find_number_automaton(name);
  if (automaton == nullptr) {
    Languages own;
    own.set_fuel(languages.fuel());
    DI_ASSIGN_OR_RETURN(const Lang expression, number_expression(own, limits));
    automaton = make_number_automaton(own, expression, name);
    if (automaton == nullptr) return number_expression(languages, limits);
    keep_number_automaton(name, automaton);
  }
  return languages.automaton(std::move(automaton));
}

Result<Lang> number_equal_to(Languages& languages, std::string_view spelling) {
  DI_ASSIGN_OR_RETURN(const Decimal number, limit_of(spelling, "the number"));
  if (number.is_zero()) {
    const Lang fraction = languages.repeat(join(languages, {languages.text("."), zeros(languages, 1)}), 0, 1);
    return join(languages, {languages.repeat(languages.text("-"), 0, 1), languages.text("0"), fraction,
                            exponents(languages, true, true)});
  }
  const Lang sign = languages.text(number.negative ? "-" : "");
  const auto with_zeros = [&languages](std::string_view whole, std::string_view fraction) {
    const Lang more = zeros(languages, fraction.empty() ? 1 : 0);
    const Lang behind = join(languages, {languages.text("."), languages.text(fraction), more});
    return join(languages, {languages.text(whole), fraction.empty() ? languages.repeat(behind, 0, 1) : behind});
  };
  const Lang plain =
      join(languages, {with_zeros(number.whole_part(), number.fraction()), exponents(languages, false, false)});
  const std::string_view all = number.digits;
  const int64_t exponent = number.exponent + static_cast<int64_t>(all.size()) - 1;
  const Lang exponent_sign = exponent < 0 ? languages.text("-") : languages.repeat(languages.text("+"), 0, 1);
  const Lang scientific =
      join(languages,
           {with_zeros(all.substr(0, 1), all.substr(1)), either(languages, {languages.text("e"), languages.text("E")}),
            exponent_sign, zeros(languages, 0), languages.text(std::to_string(exponent < 0 ? -exponent : exponent))});
  return either(languages, {languages.text(spelling), join(languages, {sign, either(languages, {plain, scientific})})});
}

std::string canonical_number(std::string_view spelling) {
  const std::optional<Decimal> number = parse_decimal(spelling);
  if (!number.has_value()) return canonical_of_huge_exponent(spelling);
  if (number->is_zero()) return "0";
  std::string result = number->negative ? "-" : "";
  result += number->digits;
  if (number->exponent != 0) result += "e" + std::to_string(number->exponent);
  return result;
}

}  // namespace deepinfer::grammar
