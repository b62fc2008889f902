// Sets of Unicode code points as sorted ranges.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace deepinfer::grammar {

struct CharRange {
  uint32_t first, last;  // both included
  bool operator==(const CharRange&) const = default;
};

/// Ranges ascend, do not touch and hold no surrogates (U+D800..U+DFFF), which no UTF-8 text has.
class CharSet {
 public:
  CharSet() = default;
  static CharSet all();
  static CharSet of(std::vector<CharRange> ranges);  // any order, may overlap
  static CharSet one(uint32_t c) { return of({{c, c}}); }

  [[nodiscard]] const std::vector<CharRange>& ranges() const { return ranges_; }
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] bool contains(uint32_t c) const;
  [[nodiscard]] CharSet united(const CharSet& other) const;
  [[nodiscard]] CharSet common(const CharSet& other) const;
  [[nodiscard]] CharSet others() const;  // complement
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<CharRange> ranges_;
};

/// Unicode property of \p{name} or \p{name=value} in Unicode 16.0, by the names of ECMA-262: General_Category (gc) and
/// Script (sc), Any, ASCII, Assigned, White_Space, ASCII_Hex_Digit, Hex_Digit, Regional_Indicator; nullptr for all others.
/// Cost     a few milliseconds at the first call in a process, then a look-up. Any thread
const CharSet* unicode_property(std::string_view name);

}  // namespace deepinfer::grammar
