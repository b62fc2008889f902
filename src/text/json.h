// JSON as clients send it and as the model must see it: order of members, repeated keys and the spelling of numbers are
// kept; what is no JSON text (RFC 8259), no UTF-8, a lone surrogate or beyond the limits is refused. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer::json {

enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

struct Member;

/// One JSON value. A number is its spelling; nothing is rounded before somebody asks for a machine type.
struct Value {
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;             // kString: the characters, UTF-8 · kNumber: as spelt in the source
  std::vector<Value> items;     // kArray
  std::vector<Member> members;  // kObject, in order, repeated keys included

  static Value of(std::string_view text);
  static Value of(int64_t number);
  static Value of(bool boolean);

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  /// kObject: the last member called `key` (the one that counts where keys repeat), or nothing.
  [[nodiscard]] const Value* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Value value;
};

struct Limits {
  size_t n_bytes_max = size_t{64} << 20;
  int32_t depth_max = 127;           // arrays and objects open at once
  int64_t n_values_max = 4'000'000;  // 100 bytes of memory each
};

/// The one value that `text` spells.
/// Errors   kInvalidArgument, in one line: not JSON (line, column and what stood there), ill-formed UTF-8, a lone
///          surrogate escape, a number beyond double's range (1e400), or a limit with its value
/// Cost     linear; about 1 ns a byte and one allocation a container
Result<Value> parse(std::string_view text, const Limits& limits = {});

enum class Style : uint8_t {
  kCompact,  // no blanks, numbers as spelt: what goes over the wire
  kPython,   // json.dumps(..., ensure_ascii=False): ", " and ": ", numbers as Python prints them: what prompts hold
};

/// Appends `value`. A repeated key is written once, at its first place with its last value.
void append(const Value& value, Style style, std::string& out);
[[nodiscard]] std::string to_string(const Value& value, Style style);

/// `text`, which is UTF-8, in quotes: `"`, `\` and characters below U+0020 escaped, the rest as it is.
void append_quoted(std::string_view text, std::string& out);
/// Same without the quotes, for text that arrives in pieces. Pieces may be cut anywhere.
void append_escaped(std::string_view text, std::string& out);

/// How Python prints the JSON number `spelling`: integers of 64 bits as they are, larger ones and fractions as the
/// shortest float that reads back equal (1E2 → 100.0, 0.00001 → 1e-05), and -0 → -0.0.
/// Precondition: a JSON number within double's range
void append_python_number(std::string_view spelling, std::string& out);

}  // namespace deepinfer::json
