#include "grammar/kind_tokens.h"

#include <algorithm>

#include "grammar/mask_store.h"

namespace deepinfer::grammar {
namespace {

bool equal(const Vocabulary& vocabulary, const TokenSet& a, const TokenSet& b) {
  const Mask x = a.mask(), y = b.mask();
  if (x.base == y.base) return std::ranges::equal(x.added, y.added) && std::ranges::equal(x.removed, y.removed);
  std::vector<MaskWord> x_row(static_cast<size_t>(vocabulary.n_words())), y_row(x_row.size());
  x.fill(x_row);
  y.fill(y_row);
  return x_row == y_row;
}

}  // namespace

TokenSet::TokenSet(const Vocabulary& vocabulary, const Mask& mask)
    : base_(mask.base),
      added_(mask.added.begin(), mask.added.end()),
      removed_(mask.removed.begin(), mask.removed.end()) {
  if (base_ == nullptr || base_ == vocabulary.digit_row().data() || base_ == vocabulary.text_row().data() ||
      base_ == vocabulary.string_mask(vocabulary.string_chars_max()).data())
    return;
  n_own_ = vocabulary.n_words();
  own_ = std::make_unique_for_overwrite<MaskWord[]>(static_cast<size_t>(n_own_));
  std::copy_n(base_, n_own_, own_.get());
  base_ = own_.get();
}

TokenSet TokenSet::of_row(const Vocabulary& vocabulary, std::vector<MaskWord>& row) {
  MaskStore store(vocabulary);
  std::ranges::copy(row, store.begin_row().begin());
  std::ranges::fill(row, 0);
  return {vocabulary, store.keep_row()};
}

int64_t TokenSet::n_bytes() const {
  return static_cast<int64_t>(static_cast<size_t>(n_own_) * sizeof(MaskWord) +
                              (added_.capacity() + removed_.capacity()) * sizeof(int32_t));
}

int64_t KindTokens::n_bytes() const {
  int64_t n_bytes =
      static_cast<int64_t>(sizeof(*this) + rows.capacity() * sizeof(Row) + unsure.capacity() * sizeof(Counted)) +
      all.n_bytes();
  for (const Row& row : rows) n_bytes += row.tokens.n_bytes();
  return n_bytes;
}

bool equal(const Vocabulary& vocabulary, const KindTokens& a, const KindTokens& b) {
  const auto equal_rows = [&vocabulary](const KindTokens::Row& x, const KindTokens::Row& y) {
    return x.n_more == y.n_more && equal(vocabulary, x.tokens, y.tokens);
  };
  return a.was_counted == b.was_counted && a.is_counted == b.is_counted && a.n_chars_max == b.n_chars_max &&
         a.unsure == b.unsure && equal(vocabulary, a.all, b.all) && std::ranges::equal(a.rows, b.rows, equal_rows);
}

}  // namespace deepinfer::grammar
