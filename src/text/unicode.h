// Character classes of Unicode 16.0 and the fold of the token compression map, from committed tables: results do not
// depend on the machine's C library or locale. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

/// Flags of a code point. The first five are General_Category L, M, N, P, S and exclude each other.
enum CharFlag : uint16_t {
  kCharLetter = 1,
  kCharMark = 2,
  kCharNumber = 4,
  kCharPunctuation = 8,
  kCharSymbol = 16,
  kCharSpace = 32,  // White_Space, 25 code points
};

/// General_Category. Order of CATEGORIES in tools/make_unicode_tables.py.
enum class Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo,
};

/// Precondition of all three: code_point < 0x110000.
Category category(char32_t code_point);

/// CharFlag values joined by `|`.
uint16_t char_flags(char32_t code_point);

/// Appends to `out` (UTF-8) what is left of the code point after compatibility decomposition, removal of combining
/// marks and lower-casing. Source: spec of the Engram token compression map; equals `tokenizers` 0.23.3.
void append_folded(char32_t code_point, std::string& out);

}  // namespace deepinfer
