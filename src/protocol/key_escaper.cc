#include "protocol/key_escaper.h"

#include "text/json.h"

namespace deepinfer::protocol {
namespace {

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

constexpr size_t kUnicodeEscapeBytes = 6;  // \u20AC

}  // namespace

void KeyEscaper::append(std::string_view text, std::string& out) {
  for (const char c : text) append(c, out);
}

void KeyEscaper::append(char c, std::string& out) {
  const bool is_unicode = escape_.size() >= 2;  // \u and digits
  if (is_unicode ? is_hex_digit(c)
                 : escape_.size() == 1 && std::string_view("\\/bfnrtu").find(c) != std::string_view::npos) {
    escape_ += c;
    if (escape_.size() == kUnicodeEscapeBytes || (escape_.size() == 2 && c != 'u')) abandon(out);
    return;
  }
  close(out);
  if (c == '\\') {
    escape_ = c;
  } else {
    json::append_escaped(std::string_view(&c, 1), out);  // only control characters change
  }
}

void KeyEscaper::close(std::string& out) {
  if (!escape_.empty()) out += '\\';
  abandon(out);
}

void KeyEscaper::abandon(std::string& out) {
  out += escape_;
  escape_.clear();
}

}  // namespace deepinfer::protocol
