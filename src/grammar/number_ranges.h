// Languages of numbers without sign and exponent, between two limits or divisible. Private to number*.cc.
#pragma once

#include <optional>
#include <string>

#include "deepinfer/status.h"
#include "grammar/decimal.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

/// A limit of a number without sign.
struct MagnitudeLimit {
  std::string whole = "0", fraction;
  bool exclusive = false;
};

/// Numbers from `low` to `high` (nothing: no limit) as digits without sign and exponent. `integer`: only zeros may stand
/// behind the point.
Lang magnitudes_between(Languages& languages, MagnitudeLimit low, std::optional<MagnitudeLimit> high, bool integer);

/// Multiples of `divisor` (> 0) as digits without sign and exponent.
/// Errors   kInvalidArgument: more remainders than an automaton can hold
Result<Lang> multiples_of(Languages& languages, const Decimal& divisor);

/// The least whole number that is a multiple of `divisor`; nothing if it has more than 18 digits.
std::optional<Decimal> least_whole_multiple(const Decimal& divisor);

}  // namespace deepinfer::grammar
