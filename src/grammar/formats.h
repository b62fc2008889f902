// The formats of JSON Schema that are asserted, as languages of the decoded string.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/language.h"

namespace deepinfer::grammar {

/// Texts of the format: date-time, date, time, duration, email, hostname, ipv4, ipv6, uri, uri-reference, iri, uuid,
/// json-pointer, regex, uri-template. Calendar dates are exact (2022-02-31 is none, leap years count; no year 0000,
/// which RFC 3339 has and most validators refuse), and so are leap seconds (only where it is 23:59:60 in UTC).
/// Nothing for any other name: then it is an annotation.
///
/// Never a text that the format does not have. Texts that are left out:
///   hostname       names with a label that begins with xn-- (whether it stands for Unicode letters would need Punycode)
///   email          none of the grammar of RFC 5321, but for labels of more than 63 characters
///   uri-template   the operators = , ! @ | that RFC 6570 only reserves
///   regex          patterns of ECMA-262 with: named groups, back-references, \0, \u{..} and \p; groups nested deeper than 12;
///                  class ranges other than between two printable ASCII characters, or from \x00 or \u0000;
///                  a - that is itself inside a class other than at its ends; counts above 9999, and {n,m} with n above 99
std::optional<Lang> format_language(Languages& languages, std::string_view name);

/// Where format_language() leaves texts out: a language that has them, too, so that no other text has the format.
/// Nothing: format_language() has all.
std::optional<Lang> format_at_most(Languages& languages, std::string_view name);

}  // namespace deepinfer::grammar
