// The sets of characters that escapes of patterns stand for.
#pragma once

#include "grammar/char_set.h"

namespace deepinfer::grammar {

inline const CharSet& digit_chars() {
  static const CharSet kSet = CharSet::of({{'0', '9'}});
  return kSet;
}
inline const CharSet& word_chars() {
  static const CharSet kSet = CharSet::of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return kSet;
}
inline const CharSet& space_chars() {  // WhiteSpace and LineTerminator of ECMA-262
  static const CharSet kSet = CharSet::of({{9, 13},
                                           {' ', ' '},
                                           {0xA0, 0xA0},
                                           {0x1680, 0x1680},
                                           {0x2000, 0x200A},
                                           {0x2028, 0x2029},
                                           {0x202F, 0x202F},
                                           {0x205F, 0x205F},
                                           {0x3000, 0x3000},
                                           {0xFEFF, 0xFEFF}});
  return kSet;
}
inline const CharSet& no_line_ends() {
  static const CharSet kSet = CharSet::of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).others();
  return kSet;
}

}  // namespace deepinfer::grammar
