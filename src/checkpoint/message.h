// Text of this layer: names out of foreign files made safe to print, problem lists on one line, JSON strings.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "deepinfer/status.h"

namespace deepinfer {

/// `text` with control characters as \xNN and, beyond `length_max` bytes, an ellipsis: fit for a one-line message. Cuts
/// between UTF-8 sequences.
std::string printable(std::string_view text, size_t length_max = 160);

/// "a; b; c and 4 more": at most `n_max` are spelled out.
std::string join_capped(std::span<const std::string> items, std::string_view separator, size_t n_max);

bool is_valid_utf8(std::string_view text);

/// `text`, which is valid UTF-8, as a JSON string with its quotes.
std::string json_quoted(std::string_view text);

/// "title: a; b; c and 4 more" as kBadModelFile, at most 20 spelled out; success when there is no problem.
Status problems_status(std::string_view title, std::span<const std::string> problems);

}  // namespace deepinfer
