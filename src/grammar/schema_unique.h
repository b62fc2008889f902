// Values as they are compared by uniqueItems: equal values get equal texts, whatever their spelling and order of members.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deepinfer::grammar {

/// The canonical text of the JSON value that `json` spells: "s" and the characters of a string, "n" and the canonical
/// spelling of a number, "t", "f" and "z" for true, false and null; arrays and objects begin with "[" and "{".
/// Nothing: too deeply nested to be compared.
std::optional<std::string> canonical_value(std::string_view json);

}  // namespace deepinfer::grammar
