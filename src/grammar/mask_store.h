// Where masks live: lists of ids and rows that stay at their place, in the shortest of three forms.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "grammar/mask.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe. Masks are valid as long as the store.
class MaskStore {
 public:
  explicit MaskStore(const Vocabulary& vocabulary);

  /// The mask of these ids (any order, each once). Clears `ids`.
  Mask keep_ids(std::vector<int32_t>& ids);
  /// Ids one by one, for many: begin, then set bits of the row, then keep.
  std::span<MaskWord> begin_row();
  Mask keep_row();
  /// The mask that allows `extra` (ascending), too.
  Mask keep_with(const Mask& mask, std::span<const int32_t> extra);
  /// The mask without these, which it allows (any order).
  Mask keep_without(const Mask& mask, std::vector<int32_t>& ids);
  /// As keep_with(); precondition: ids that the mask has no opinion of (neither in base nor listed). Sorts and clears `ids`.
  Mask keep_with_others(const Mask& mask, std::vector<int32_t>& ids);
  /// What one of them allows. Precondition: none of the tokens is allowed by both.
  Mask keep_either(const Mask& a, const Mask& b);
  /// Precondition: both ascend; added is not in base, removed is.
  Mask keep(const MaskWord* base, std::span<const int32_t> added, std::span<const int32_t> removed);

  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }

 private:
  static constexpr size_t kSortMax = 24;     // so many ids are sorted, more go through a row
  static constexpr size_t kShortMax = 256;   // so many ids become a list without a look at the bases
  static constexpr int32_t kListMax = 1024;  // ids of a mask without base
  static constexpr int32_t kDeltaMax = 256;  // ids on top of a base
  static constexpr size_t kBasesTried = 4;   // own rows, the latest

  std::span<const int32_t> keep_list(std::span<const int32_t> ids);
  std::span<const int32_t> sorted(std::span<const int32_t> ids);
  Mask merged(const Mask& mask, std::span<const int32_t> ids);
  bool keep_near(const MaskWord* base, int32_t n_delta_max, Mask& out);
  Mask keep_scratch(int32_t n_ids);

  const Vocabulary& vocabulary_;
  std::deque<std::vector<int32_t>> chunks_;
  std::vector<std::unique_ptr<MaskWord[]>> rows_;
  std::vector<MaskWord> scratch_;  // all zero between calls
  std::vector<MaskWord> met_;      // words of scratch_ that are not zero
  std::vector<int32_t> added_, removed_;
  int64_t n_bytes_ = 0;
};

}  // namespace deepinfer::grammar
