#include "grammar/mask_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "grammar/mask_bits.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kChunkIds = 1024;

}  // namespace

bool Mask::allows(int32_t token) const {
  if (std::binary_search(added.begin(), added.end(), token)) return true;
  return base != nullptr && has_bit({base, static_cast<size_t>(token) / 64 + 1}, token) &&
         !std::binary_search(removed.begin(), removed.end(), token);
}

void Mask::fill(std::span<MaskWord> row) const {
  if (base != nullptr) {
    std::memcpy(row.data(), base, row.size_bytes());
  } else {
    std::memset(row.data(), 0, row.size_bytes());
  }
  for (const int32_t token : removed) clear_bit(row, token);
  for (const int32_t token : added) set_bit(row, token);
}

MaskStore::MaskStore(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

std::span<const int32_t> MaskStore::keep_list(std::span<const int32_t> ids) {
  if (ids.empty()) return {};
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < ids.size()) {
    const size_t first_chunk = chunks_.empty() ? kChunkIds / 4 : kChunkIds;
    chunks_.emplace_back().reserve(std::max(first_chunk, ids.size()));
    n_bytes_ += static_cast<int64_t>(chunks_.back().capacity() * sizeof(int32_t));
  }
  std::vector<int32_t>& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk.insert(chunk.end(), ids.begin(), ids.end());
  return std::span<const int32_t>(chunk).subspan(begin);
}

Mask MaskStore::keep(const MaskWord* base, std::span<const int32_t> added, std::span<const int32_t> removed) {
  return {base, keep_list(added), keep_list(removed)};
}

Mask MaskStore::keep_ids(std::vector<int32_t>& ids) {
  Mask mask;
  if (ids.size() <= kSortMax) {
    std::sort(ids.begin(), ids.end());
    mask.added = keep_list(ids);
  } else if (ids.size() <= kShortMax) {
    mask.added = keep_list(sorted(ids));
  } else {
    const std::span<MaskWord> row = begin_row();
    for (const int32_t id : ids) set_bit(row, id);
    mask = keep_scratch(static_cast<int32_t>(ids.size()));
    std::fill(scratch_.begin(), scratch_.end(), 0);
  }
  ids.clear();
  return mask;
}

/// By way of the row, of which only the words that are met are looked at.
std::span<const int32_t> MaskStore::sorted(std::span<const int32_t> ids) {
  const std::span<MaskWord> row = begin_row();
  met_.assign((row.size() + 63) / 64, 0);
  for (const int32_t id : ids) {
    const auto word = static_cast<size_t>(id) / 64;
    row[word] |= MaskWord{1} << (id % 64);
    met_[word / 64] |= MaskWord{1} << (word % 64);
  }
  added_.clear();
  for (size_t i = 0; i < met_.size(); ++i) {
    for_each_bit(met_[i], i, [&](int32_t at) {
      const auto word = static_cast<size_t>(at);
      for_each_bit(row[word], word, [&](int32_t id) { added_.push_back(id); });
      row[word] = 0;
    });
  }
  return added_;
}

std::span<MaskWord> MaskStore::begin_row() {
  if (scratch_.empty()) {
    scratch_.resize(static_cast<size_t>(vocabulary_.n_words()));
    n_bytes_ += static_cast<int64_t>(scratch_.size() * sizeof(MaskWord));
  }
  return scratch_;
}

Mask MaskStore::keep_row() {
  const Mask mask = keep_scratch(n_ones(scratch_));
  std::fill(scratch_.begin(), scratch_.end(), 0);
  return mask;
}

Mask MaskStore::keep_scratch(int32_t n_ids) {
  Mask mask;
  const int32_t n_delta_max = std::min(kDeltaMax, n_ids / 2);
  if (keep_near(vocabulary_.digit_row().data(), n_delta_max, mask)) return mask;
  if (keep_near(vocabulary_.string_mask(vocabulary_.string_chars_max()).data(), n_delta_max, mask)) return mask;
  if (n_ids > kListMax && keep_near(vocabulary_.text_row().data(), n_delta_max, mask)) return mask;
  for (size_t i = rows_.size(), n = 0; i-- > 0 && n < kBasesTried; ++n)
    if (keep_near(rows_[i].get(), n_delta_max, mask)) return mask;
  if (n_ids <= kListMax) {
    added_.clear();
    for_each_bit(scratch_, [&](int32_t id) { added_.push_back(id); });
    mask.added = keep_list(added_);
    return mask;
  }
  rows_.push_back(std::make_unique_for_overwrite<MaskWord[]>(scratch_.size()));
  std::copy(scratch_.begin(), scratch_.end(), rows_.back().get());
  n_bytes_ += static_cast<int64_t>(scratch_.size() * sizeof(MaskWord));
  mask.base = rows_.back().get();
  return mask;
}

/// Whether scratch_ is `base` but for a few ids; then `out` is that mask.
bool MaskStore::keep_near(const MaskWord* base, int32_t n_delta_max, Mask& out) {
  added_.clear();
  removed_.clear();
  for (size_t i = 0; i < scratch_.size(); ++i) {
    const MaskWord differ = scratch_[i] ^ base[i];
    if (differ == 0) continue;
    if (static_cast<int32_t>(added_.size() + removed_.size()) + n_ones(differ) > n_delta_max) return false;
    for_each_bit(differ & scratch_[i], i, [&](int32_t id) { added_.push_back(id); });
    for_each_bit(differ & base[i], i, [&](int32_t id) { removed_.push_back(id); });
  }
  out = keep(base, added_, removed_);
  return true;
}

Mask MaskStore::keep_without(const Mask& mask, std::vector<int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  added_.clear();
  std::set_difference(mask.added.begin(), mask.added.end(), ids.begin(), ids.end(), std::back_inserter(added_));
  removed_.assign(mask.removed.begin(), mask.removed.end());
  for (const int32_t id : ids)
    if (!std::binary_search(mask.added.begin(), mask.added.end(), id)) removed_.push_back(id);
  std::sort(removed_.begin(), removed_.end());
  return keep(mask.base, added_, removed_);
}

Mask MaskStore::keep_with_others(const Mask& mask, std::vector<int32_t>& ids) {
  if (mask.empty()) return keep_ids(ids);
  if (ids.size() <= kSortMax) {
    std::sort(ids.begin(), ids.end());
  } else {
    const std::span<const int32_t> ascending = sorted(ids);
    ids.assign(ascending.begin(), ascending.end());
  }
  const Mask both = merged(mask, ids);
  ids.clear();
  return both;
}

Mask MaskStore::merged(const Mask& mask, std::span<const int32_t> ids) {
  if (ids.empty()) return mask;
  added_.resize(mask.added.size() + ids.size());
  std::merge(mask.added.begin(), mask.added.end(), ids.begin(), ids.end(), added_.begin());
  return {mask.base, keep_list(added_), mask.removed};
}

Mask MaskStore::keep_either(const Mask& a, const Mask& b) {
  if (b.base == nullptr) return merged(a, b.added);
  if (a.base == nullptr) return merged(b, a.added);
  const std::span<MaskWord> row = begin_row();
  std::vector<MaskWord> more(row.size());
  a.fill(row);
  b.fill(more);
  for (size_t i = 0; i < row.size(); ++i) row[i] |= more[i];
  return keep_row();
}

Mask MaskStore::keep_with(const Mask& mask, std::span<const int32_t> extra) {
  if (extra.empty()) return mask;
  added_.assign(mask.added.begin(), mask.added.end());
  removed_.assign(mask.removed.begin(), mask.removed.end());
  const auto n_before = static_cast<ptrdiff_t>(added_.size());
  for (const int32_t id : extra) {
    if (mask.allows(id)) continue;
    const auto at = std::lower_bound(removed_.begin(), removed_.end(), id);
    if (at != removed_.end() && *at == id) {
      removed_.erase(at);
    } else {
      added_.push_back(id);
    }
  }
  std::inplace_merge(added_.begin(), added_.begin() + n_before, added_.end());
  return keep(mask.base, added_, removed_);
}

}  // namespace deepinfer::grammar
