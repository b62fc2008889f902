// What may stand for an image in a request: an address to fetch, or the bytes themselves in a data: URL. Only the form is
// checked; nothing is fetched, decoded or copied. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deepinfer::protocol {

/// What is wrong with an image URL, or nothing: http://, https:// (8192 bytes at most), or data: with the media type of
/// a PNG, JPEG, GIF or WebP image and a base64 body. That body is read as browsers do: blanks are skipped, padding may be
/// missing, characters may be percent-encoded, and a fragment ends it.
/// Cost     linear
std::optional<std::string> find_image_url_problem(std::string_view url);

/// The same for an address alone.
std::optional<std::string> find_web_url_problem(std::string_view url);

/// Base64 with padding (RFC 4648, section 4), as base64_decode() accepts it.
bool is_base64(std::string_view text);

}  // namespace deepinfer::protocol
