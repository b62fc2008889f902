// Regular expressions as clients write them: ECMA-262 with the `u` flag, as far as it is regular.
#pragma once

#include <string_view>

#include "deepinfer/status.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

enum class Match : uint8_t {
  kWhole,   // the pattern describes the whole text: the `regex` option
  kSearch,  // some part of the text matches: `pattern` of JSON Schema
};

/// The texts that `pattern` matches. Syntax: alternatives, groups (named, non-capturing), classes, escapes (\d \D \w \W
/// \s \S as ECMA-262 defines them; \p{..}, \P{..}; \xHH, \uHHHH, \u{..}, surrogate pairs, \cX, \0), ., ^, $, \b, \B,
/// quantifiers greedy or lazy (laziness does not change which texts match), look-ahead and look-behind where it can be
/// an intersection. An identity escape of a punctuation character is read as that character.
/// Errors   kInvalidArgument: not a pattern (what and at which character), or a construct that no automaton can do
///          (back-references, look-around inside a repeat ..), named
Result<Lang> parse_regex(Languages& languages, std::string_view pattern, Match match);

}  // namespace deepinfer::grammar
