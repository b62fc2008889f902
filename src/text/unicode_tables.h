// The arrays of the generated unicode_tables.cc (tools/make_unicode_tables.py). Read through unicode.h only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepinfer::unicode_tables {

/// Block of each run of 256 code points, and the categories of the blocks as characters from '^' (enum Category).
inline constexpr int kCategoryBlockShift = 8;
inline constexpr char kCategoryFirstLetter = '^';
inline constexpr uint32_t kNumCategoryBlocks = 0x110000 >> kCategoryBlockShift;
extern const uint16_t kCategoryBlockOf[kNumCategoryBlocks];
extern const char kCategoryBlocks[];

/// Code points first, first + step, ... below first + span. n_to == 1: they become to, to + step, ...;
/// n_to == 0: they vanish; more: span is 1 and the result is kFoldPool[to, to + n_to).
struct FoldRange {
  uint32_t first;
  uint32_t to;
  uint16_t span;
  uint8_t step;
  uint8_t n_to;
};

/// Sorted by first, not overlapping. Code points outside are their own fold, but for Hangul syllables.
inline constexpr size_t kNumFoldRanges = 4623;
extern const FoldRange kFoldRanges[kNumFoldRanges];
inline constexpr size_t kFoldPoolSize = 2814;
extern const uint32_t kFoldPool[kFoldPoolSize];

}  // namespace deepinfer::unicode_tables
