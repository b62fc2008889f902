// Bits of rows and sets of mask words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

inline bool has_bit(std::span<const MaskWord> row, int32_t bit) {
  return (row[static_cast<size_t>(bit) / 64] >> (bit % 64) & 1) != 0;
}
inline void set_bit(std::span<MaskWord> row, int32_t bit) {
  row[static_cast<size_t>(bit) / 64] |= MaskWord{1} << (bit % 64);
}
inline void clear_bit(std::span<MaskWord> row, int32_t bit) {
  row[static_cast<size_t>(bit) / 64] &= ~(MaskWord{1} << (bit % 64));
}

/// Ones of a word. Plain code: std::popcount is a call to a table where no instruction may be used.
inline int32_t n_ones(MaskWord word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  return static_cast<int32_t>((((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101) >> 56);
}
inline int32_t n_ones(std::span<const MaskWord> row) {
  int32_t n = 0;
  for (const MaskWord word : row) n += n_ones(word);
  return n;
}

/// take(bit) for the ones of word number `word_index` of a row, or of all words.
template <class Take>
void for_each_bit(MaskWord word, size_t word_index, Take take) {
  for (; word != 0; word &= word - 1) take(static_cast<int32_t>(word_index * 64) + std::countr_zero(word));
}
template <class Take>
void for_each_bit(std::span<const MaskWord> row, Take take) {
  for (size_t i = 0; i < row.size(); ++i) for_each_bit(row[i], i, take);
}

}  // namespace deepinfer::grammar
