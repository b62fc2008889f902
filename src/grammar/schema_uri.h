// URI references as JSON Schema uses them (RFC 3986) and JSON pointers (RFC 6901). Pure functions, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::grammar {

struct UriParts {
  std::string_view before;                   // what stands before the first '#'
  std::optional<std::string_view> fragment;  // what stands behind it; nothing: there is no '#'
};
UriParts split_fragment(std::string_view reference);

/// The target URI of `reference` against `base`, both without fragments (RFC 3986, 5.2). An empty base leaves the
/// reference as it is, but for dot segments.
std::string resolve_uri(std::string_view base, std::string_view reference);

/// %XX decoded; nothing: a '%' without two hex digits.
std::optional<std::string> decode_percent(std::string_view text);

/// The tokens of a JSON pointer ("" or "/..."); nothing: it does not begin with '/', or a '~' without 0 or 1.
std::optional<std::vector<std::string>> split_pointer(std::string_view pointer);

/// From this length on a pointer is cut and ends in "/...", so that long names cannot multiply.
inline constexpr size_t kPointerBytesMax = 1000;

/// Appends '/' and `token`, escaped as a step of a JSON pointer in a URI fragment.
void append_pointer_token(std::string_view token, std::string& out);

}  // namespace deepinfer::grammar
