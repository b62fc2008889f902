// Languages of the JSON spellings of numbers, exact in decimal: no floating point anywhere.
//
// Among spellings without exponent every language here is exact: it has all spellings of its numbers (-0 is 0; any number
// of zeros may follow the fraction) and no others. Of spellings with exponent it has only some, and only right ones. So a
// number is surely none of them only where it is not in numbers_with_exponent() either.
//
// Exponents that stay, for a mantissa within the limits by itself:
//   no limits, or limits that are a matter of sign (minimum 0, exclusiveMinimum 0): any
//   |number| limited from below only, integer, multiple_of:                         positive ones and zero
//   |number| limited from above only:                                               negative ones and zero
//   otherwise:                                                                      zero
#pragma once

#include <string>
#include <string_view>

#include "deepinfer/status.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

/// Limits in JSON spelling ("-1.5", "1e3"); empty: none.
struct NumberLimits {
  std::string_view minimum = {}, maximum = {};
  bool exclusive_minimum = false, exclusive_maximum = false;
  std::string_view multiple_of = {};  // > 0
  bool integer = false;               // 1.0 and 1e2 are integers
};

/// Spellings of the numbers within the limits. Without limits every JSON number; with limits or `integer`, exponents are
/// left out where the text would not show them to be within (docs/GRAMMAR.md says which spellings stay).
/// Errors   kInvalidArgument: a limit that is no number, or a multiple_of of more digits than an automaton can hold
Result<Lang> number_language(Languages& languages, const NumberLimits& limits);

/// Every spelling without exponent.
Lang plain_numbers(Languages& languages);

/// Every spelling with an exponent other than zero: a language here and this together have all spellings of its numbers.
Lang numbers_with_exponent(Languages& languages);

/// number_language() has all spellings of its numbers already.
bool has_every_spelling(const NumberLimits& limits);

/// Spellings of one number: 1, 1.0, 1.00, 1e0, 1.0E+00 ..: without exponent all, with exponent those with one digit in
/// front of the point and those with a zero exponent; and the received one.
/// Errors   kInvalidArgument: no JSON number, or one of more than 2,000 digits when written out
Result<Lang> number_equal_to(Languages& languages, std::string_view spelling);

/// A canonical spelling: equal for equal numbers (1, 1.0, 1e0 -> "1"). Precondition: a JSON number
std::string canonical_number(std::string_view spelling);

}  // namespace deepinfer::grammar
