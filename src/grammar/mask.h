// Which tokens may come next, per state of a machine: found once, remembered, handed out as a short description.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "grammar/machine.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// The allowed tokens: every bit of `base` (nullptr: none) but those listed in `removed`, and those listed in `added`.
/// Valid as long as what it came from (matcher.h says how long). End-of-text ids are among `added` where the text may
/// end.
struct Mask {
  const MaskWord* base = nullptr;    // n_words() words
  std::span<const int32_t> added;    // ascending, not in base
  std::span<const int32_t> removed;  // ascending, in base; never all of it

  [[nodiscard]] bool empty() const { return base == nullptr && added.empty(); }
  /// Precondition: 0 <= token < n_head
  [[nodiscard]] bool allows(int32_t token) const;
  /// Writes the whole row. Precondition: row holds n_words() words
  /// Cost     a copy of the row and a write per id: 0.3 to 1 us for 129,280 tokens
  void fill(std::span<MaskWord> row) const;
};

/// Masks of one machine over one vocabulary. Not thread-safe.
class MaskCache {
 public:
  /// Both are borrowed.
  MaskCache(const Vocabulary& vocabulary, Machine& machine);
  ~MaskCache();

  /// Cost     a look-up where the state was seen before. First visits: between tokens of JSON a walk of the few tokens that
  ///          can stand there; other sparse states a walk of the live part of the trie; inside strings of any text a walk of what may follow the quote, once per `after`; inside other strings
  ///          a walk of the trie, once per `kind`, or for all kinds that differ only in high counts; in free text a look at
  ///          the tokens with the last byte of some begin string.
  Mask mask(State state);
  /// The mask, if it was asked before: then it is there; else nothing is done.
  [[nodiscard]] const Mask* find(State state) const;
  /// Does work ahead for the masks of strings behind whose quote the state is.
  void prepare_behind_quote(State state);
  /// The state after all bytes of the token; kDead if it is not allowed (always for special tokens).
  State advance(State state, int32_t token);
  [[nodiscard]] int64_t n_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer::grammar
