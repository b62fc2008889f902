// Reader and writer. The reader is our own because the two libraries at hand lose what this layer must keep: nlohmann-json
// 3.11 the sign of -0, simdjson 3.0 lone surrogates (they become ill-formed bytes) and the place of an error.
#include "text/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <utility>

#include "text/utf8.h"

namespace deepinfer::json {
namespace {

Error refuse(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

constexpr std::array<bool, 256> kNeedsEscape = [] {
  std::array<bool, 256> table{};
  for (size_t byte = 0; byte < 0x20; ++byte) table[byte] = true;
  table['"'] = true;
  table['\\'] = true;
  return table;
}();

/// A value below double's smallest reads as 0, as everywhere; one beyond its largest is infinite.
double to_double(std::string_view number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc::result_out_of_range) return value;
  // from_chars leaves `value` alone in both cases; strtod tells them apart.
  return std::strtod(std::string(number).c_str(), nullptr);
}

/// One pass over a text whose UTF-8 is known to be well-formed. The first error is kept and unwinds the rest.
class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}

  Result<Value> read() {
    Value root;
    skip_blanks();
    if (read_value(0, root)) {
      skip_blanks();
      if (at_ < text_.size()) unexpected("the end");
    }
    if (failure_) return *std::move(failure_);
    return root;
  }

 private:
  bool read_value(int32_t depth, Value& out) {
    if (++n_values_ > limits_.n_values_max)
      return fail("more than " + std::to_string(limits_.n_values_max) + " JSON values");
    switch (peek()) {
      case '{':
        return read_object(depth + 1, out);
      case '[':
        return read_array(depth + 1, out);
      case '"':
        out.kind = Kind::kString;
        return read_string(out.text);
      case 't':
        out = Value::of(true);
        return read_word("true");
      case 'f':
        out = Value::of(false);
        return read_word("false");
      case 'n':
        return read_word("null");
      default:
        return read_number(out);
    }
  }

  bool read_array(int32_t depth, Value& out) {
    if (depth > limits_.depth_max) return too_deep();
    out.kind = Kind::kArray;
    ++at_;
    skip_blanks();
    if (take(']')) return true;
    do {
      skip_blanks();
      if (!read_value(depth, out.items.emplace_back())) return false;
      skip_blanks();
    } while (take(','));
    return take(']') || unexpected("',' or ']'");
  }

  bool read_object(int32_t depth, Value& out) {
    if (depth > limits_.depth_max) return too_deep();
    out.kind = Kind::kObject;
    ++at_;
    skip_blanks();
    if (take('}')) return true;
    do {
      skip_blanks();
      if (peek() != '"') return unexpected("a key in quotes");
      Member& member = out.members.emplace_back();
      if (!read_string(member.key)) return false;
      skip_blanks();
      if (!take(':')) return unexpected("':'");
      skip_blanks();
      if (!read_value(depth, member.value)) return false;
      skip_blanks();
    } while (take(','));
    return take('}') || unexpected("',' or '}'");
  }

  /// Precondition: a quote stands here.
  bool read_string(std::string& out) {
    ++at_;
    while (true) {
      const size_t first = at_;
      while (at_ < text_.size() && !kNeedsEscape[static_cast<unsigned char>(text_[at_])]) ++at_;
      out.append(text_, first, at_ - first);
      if (take('"')) return true;
      if (peek() != '\\') return unexpected("the end of a string (control characters must be escaped)");
      if (!read_escape(out)) return false;
    }
  }

  bool read_escape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (peek() == 'u') return read_code_point(out);
    const size_t letter = kLetters.find(peek());
    if (peek() == '\0' || letter == std::string_view::npos) return unexpected("an escape");
    out += kMeanings[letter];
    ++at_;
    return true;
  }

  /// \uXXXX, two of them for a character beyond U+FFFF.
  bool read_code_point(std::string& out) {
    const size_t escape = at_ - 1;
    uint32_t code = 0;
    if (!read_hex(code)) return false;
    if (code >= 0xD800 && code < 0xE000) {
      uint32_t low = 0;
      const bool is_pair =
          code < 0xDC00 && text_.substr(at_, 2) == "\\u" && ++at_ && read_hex(low) && low >= 0xDC00 && low < 0xE000;
      if (failure_) return false;
      if (!is_pair) {
        at_ = escape;
        return fail("lone surrogate " + std::string(text_.substr(escape, 6)) + " at " + place());
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(static_cast<char32_t>(code), out);
    return true;
  }

  /// Precondition: a u stands here.
  bool read_hex(uint32_t& code) {
    ++at_;
    const char* first = text_.data() + at_;
    const char* last = text_.data() + std::min(at_ + 4, text_.size());
    if (last - first != 4 || std::from_chars(first, last, code, 16).ptr != last) return unexpected("four hex digits");
    at_ += 4;
    return true;
  }

  bool read_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return unexpected("a value");
    at_ += word.size();
    return true;
  }

  /// RFC 8259: an optional minus, digits without a leading zero, then perhaps a fraction and an exponent.
  bool read_number(Value& out) {
    const size_t first = at_;
    take('-');
    const bool zero = peek() == '0';
    const size_t n_integer = skip_digits();
    if (n_integer == 0) return unexpected("a value");
    if (zero && n_integer > 1) {
      at_ = first;
      return fail("number with a leading zero at " + place());
    }
    if (take('.') && skip_digits() == 0) return unexpected("a digit");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (skip_digits() == 0) return unexpected("a digit");
    }
    out.kind = Kind::kNumber;
    out.text = text_.substr(first, at_ - first);
    const bool may_overflow = out.text.size() > 300 || out.text.find_first_of("eE") != std::string::npos;
    if (may_overflow && std::isinf(to_double(out.text)))
      return fail("number " + quoted_for_message(out.text) + " is beyond the range of a 64-bit float");
    return true;
  }

  size_t skip_digits() {
    const size_t first = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - first;
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  /// The byte here; 0 at the end.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char wanted) {
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool unexpected(std::string_view wanted) {
    std::string found = "the text ends";
    if (at_ < text_.size()) found = quoted_for_message(text_.substr(at_, next_utf8(text_.substr(at_)).n_bytes));
    return fail("not valid JSON: " + found + " at " + place() + " where " + std::string(wanted) + " was expected");
  }

  bool too_deep() {
    return fail("JSON nested deeper than " + std::to_string(limits_.depth_max) + " levels at " + place());
  }

  /// Lines and columns count from 1, columns in bytes.
  [[nodiscard]] std::string place() const {
    const std::string_view before = text_.substr(0, at_);
    const size_t line_end = before.rfind('\n');
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    return "line " + std::to_string(line) + " column " +
           std::to_string(line_end == std::string_view::npos ? at_ + 1 : at_ - line_end);
  }

  bool fail(std::string why) {
    if (!failure_) failure_ = refuse(std::move(why));
    return false;
  }

  std::string_view text_;
  const Limits& limits_;
  size_t at_ = 0;
  int64_t n_values_ = 0;
  std::optional<Error> failure_;
};

/// Writes the last value of each key at the place of its first; objects without repetitions (nearly all) as they are.
void append_object(const std::vector<Member>& members, Style style, std::string& out) {
  const std::string_view comma = style == Style::kPython ? ", " : ",";
  const std::string_view colon = style == Style::kPython ? ": " : ":";
  std::unordered_map<std::string_view, const Value*> last;
  last.reserve(members.size());
  for (const Member& member : members) last[member.key] = &member.value;
  const bool repeats = last.size() != members.size();
  out += '{';
  bool first = true;
  for (const Member& member : members) {
    const Value* value = &member.value;
    if (repeats) {
      const auto found = last.find(member.key);
      if (found->second == nullptr) continue;  // written already
      value = std::exchange(found->second, nullptr);
    }
    if (!first) out += comma;
    first = false;
    append_quoted(member.key, out);
    out += colon;
    append(*value, style, out);
  }
  out += '}';
}

void append_escape(unsigned char byte, std::string& out) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

/// Python's repr of a finite float: shortest digits, exponent form below 1e-4 and from 1e16 on, ".0" on whole numbers.
void append_python_float(double value, std::string& out) {
  char buffer[40];
  const auto scientific = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(scientific.ptr - buffer));
  const size_t e = shortest.rfind('e');
  int exponent = 0;
  const size_t first_digit = e + 1 + (shortest[e + 1] == '+' ? 1 : 0);  // from_chars takes no plus
  std::from_chars(shortest.data() + first_digit, shortest.data() + shortest.size(), exponent);
  if (value == 0 || (exponent >= -4 && exponent < 16)) {
    char fixed[40];
    const auto end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed);
    const std::string_view digits(fixed, static_cast<size_t>(end.ptr - fixed));
    out += digits;
    if (digits.find('.') == std::string_view::npos) out += ".0";
    return;
  }
  out += shortest;  // to_chars writes at least two exponent digits, as Python does
}

}  // namespace

Value Value::of(std::string_view text) {
  Value value;
  value.kind = Kind::kString;
  value.text = text;
  return value;
}

Value Value::of(int64_t number) {
  Value value;
  value.kind = Kind::kNumber;
  value.text = std::to_string(number);
  return value;
}

Value Value::of(bool boolean) {
  Value value;
  value.kind = Kind::kBool;
  value.boolean = boolean;
  return value;
}

const Value* Value::find(std::string_view key) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    if (member->key == key) return &member->value;
  }
  return nullptr;
}

Result<Value> parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.n_bytes_max)
    return refuse("JSON of " + std::to_string(text.size()) + " bytes, at most " + std::to_string(limits.n_bytes_max));
  if (const auto offset = find_ill_formed(text))
    return refuse("not valid JSON: ill-formed UTF-8 at byte " + std::to_string(*offset));
  return Reader(text, limits).read();
}

void append(const Value& value, Style style, std::string& out) {
  switch (value.kind) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kBool:
      out += value.boolean ? "true" : "false";
      return;
    case Kind::kNumber:
      if (style == Style::kPython) {
        append_python_number(value.text, out);
      } else {
        out += value.text;
      }
      return;
    case Kind::kString:
      append_quoted(value.text, out);
      return;
    case Kind::kArray: {
      out += '[';
      for (const Value& item : value.items) {
        if (&item != value.items.data()) out += style == Style::kPython ? ", " : ",";
        append(item, style, out);
      }
      out += ']';
      return;
    }
    case Kind::kObject:
      append_object(value.members, style, out);
      return;
  }
}

std::string to_string(const Value& value, Style style) {
  std::string out;
  append(value, style, out);
  return out;
}

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  append_escaped(text, out);
  out += '"';
}

void append_escaped(std::string_view text, std::string& out) {
  size_t done = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (!kNeedsEscape[byte]) continue;
    out.append(text, done, at - done);
    append_escape(byte, out);
    done = at + 1;
  }
  out.append(text, done, text.size() - done);
}

void append_python_number(std::string_view spelling, std::string& out) {
  const bool is_integer = spelling.find_first_of(".eE") == std::string_view::npos;
  if (is_integer && spelling != "-0") {
    const char* end = spelling.data() + spelling.size();
    int64_t as_signed = 0;
    uint64_t as_unsigned = 0;
    if (std::from_chars(spelling.data(), end, as_signed).ec == std::errc() ||
        std::from_chars(spelling.data(), end, as_unsigned).ec == std::errc()) {
      out += spelling;
      return;
    }
  }
  append_python_float(to_double(spelling), out);
}

}  // namespace deepinfer::json
