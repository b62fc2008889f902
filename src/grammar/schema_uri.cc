#include "grammar/schema_uri.h"

#include <algorithm>
#include <array>

namespace deepinfer::grammar {
namespace {

struct Components {
  std::optional<std::string_view> scheme, authority, query;
  std::string_view path;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// RFC 3986, appendix B, for a reference without fragment.
Components split_uri(std::string_view uri) {
  Components parts;
  size_t n_scheme = 0;
  while (n_scheme < uri.size() && (is_letter(uri[n_scheme]) || is_digit(uri[n_scheme]) || uri[n_scheme] == '+' ||
                                   uri[n_scheme] == '-' || uri[n_scheme] == '.')) {
    ++n_scheme;
  }
  if (n_scheme > 0 && is_letter(uri[0]) && n_scheme < uri.size() && uri[n_scheme] == ':') {
    parts.scheme = uri.substr(0, n_scheme);
    uri.remove_prefix(n_scheme + 1);
  }
  if (uri.starts_with("//")) {
    const size_t end = std::min(uri.find_first_of("/?", 2), uri.size());
    parts.authority = uri.substr(2, end - 2);
    uri.remove_prefix(end);
  }
  const size_t question = uri.find('?');
  parts.path = uri.substr(0, question);
  if (question != std::string_view::npos) parts.query = uri.substr(question + 1);
  return parts;
}

/// RFC 3986, 5.2.4, in one pass: `out` never holds a dot segment, and ".." takes off its last segment.
std::string remove_dot_segments(std::string_view path) {
  std::string out;
  while (path.starts_with("../") || path.starts_with("./")) path.remove_prefix(path.find('/') + 1);
  if (path == "." || path == "..") return out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());  // the segment with its leading '/', if it has one
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(end);
    if (segment == "/." || segment == "/..") {
      const size_t slash = out.rfind('/');
      if (segment == "/..") out.resize(slash == std::string::npos ? 0 : slash);
      if (path.empty()) out += '/';
      continue;
    }
    out += segment;
  }
  return out;
}

std::string merged_path(const Components& base, std::string_view path) {
  if (base.authority && base.path.empty()) return "/" + std::string(path);
  const size_t slash = base.path.rfind('/');
  return std::string(base.path.substr(0, slash == std::string_view::npos ? 0 : slash + 1)).append(path);
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::array<bool, 256> kFragmentBytes = [] {
  std::array<bool, 256> table{};
  for (const char c :
       std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@?"))
    table[static_cast<unsigned char>(c)] = true;
  table['~'] = false;  // ~0 in a pointer
  return table;
}();

}  // namespace

UriParts split_fragment(std::string_view reference) {
  const size_t hash = reference.find('#');
  if (hash == std::string_view::npos) return {reference, std::nullopt};
  return {reference.substr(0, hash), reference.substr(hash + 1)};
}

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const Components from = split_uri(base);
  Components to = split_uri(reference);
  std::string path;
  if (to.scheme || to.authority) {
    path = remove_dot_segments(to.path);
  } else if (to.path.empty()) {
    path = from.path;
    if (!to.query) to.query = from.query;
  } else {
    path = remove_dot_segments(to.path.starts_with('/') ? std::string(to.path) : merged_path(from, to.path));
  }
  if (!to.scheme) {
    if (!to.authority) to.authority = from.authority;
    to.scheme = from.scheme;
  }
  std::string out;
  if (to.scheme) out.append(*to.scheme).append(":");
  if (to.authority) out.append("//").append(*to.authority);
  out += path;
  if (to.query) out.append("?").append(*to.query);
  return out;
}

std::optional<std::string> decode_percent(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return out;
}

std::optional<std::vector<std::string>> split_pointer(std::string_view pointer) {
  std::vector<std::string> tokens;
  if (pointer.empty()) return tokens;
  if (pointer.front() != '/') return std::nullopt;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      tokens.emplace_back();
      continue;
    }
    if (pointer[i] != '~') {
      tokens.back() += pointer[i];
      continue;
    }
    ++i;
    if (i == pointer.size() || (pointer[i] != '0' && pointer[i] != '1')) return std::nullopt;
    tokens.back() += pointer[i] == '0' ? '~' : '/';
  }
  return tokens;
}

void append_pointer_token(std::string_view token, std::string& out) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  static constexpr std::string_view kCut = "/...";
  if (out.size() > kPointerBytesMax && out.ends_with(kCut)) return;
  out += '/';
  for (const char c : token) {
    if (out.size() > kPointerBytesMax) {
      out += kCut;
      return;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (kFragmentBytes[byte]) {
      out += c;
    } else if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
}

}  // namespace deepinfer::grammar
