// Texts of options to values, strictly: the whole text must be the value. Errors are kInvalidArgument and say the rule
// alone ("must be a number between 0 and 1"); who calls knows the option and the value. Pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer::cli {

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);

/// All of uint64_t.
Result<uint64_t> parse_seed(std::string_view text);

/// Decimal, fixed or with an exponent. No NaN, no infinity, nothing that a float cannot hold.
Result<float> parse_float(std::string_view text, float min, float max = std::numeric_limits<float>::max());

/// Bytes: a whole number, at least 1, with an optional K, M, G or T (powers of 1024).
Result<int64_t> parse_size(std::string_view text);

/// Whole numbers from 0 on, `separator` between them; blanks around each are fine. At least one.
Result<std::vector<int32_t>> parse_ids(std::string_view text, char separator);

/// Byte offset of the first ill-formed UTF-8 sequence; nothing when there is none.
std::optional<size_t> ill_formed_offset(std::string_view text);

/// `text` for a one-line message: control characters and ill-formed bytes replaced, cut when long.
std::string shown(std::string_view text);

}  // namespace deepinfer::cli
