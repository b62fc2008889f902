// The tokens that stay inside strings of one kind, as grammars share them. Immutable, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/mask.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// A mask that owns what is not the vocabulary's.
class TokenSet {
 public:
  TokenSet() = default;
  /// Copies the mask, but for a base that is one of the vocabulary's own rows. The vocabulary is borrowed.
  TokenSet(const Vocabulary& vocabulary, const Mask& mask);
  /// The set bits of `row`, in the shortest form. Clears the row.
  static TokenSet of_row(const Vocabulary& vocabulary, std::vector<MaskWord>& row);

  [[nodiscard]] Mask mask() const { return {base_, added_, removed_}; }
  [[nodiscard]] int64_t n_bytes() const;

 private:
  const MaskWord* base_ = nullptr;  // own_ or the vocabulary's
  std::unique_ptr<MaskWord[]> own_;
  int32_t n_own_ = 0;  // words
  std::vector<int32_t> added_, removed_;
};

struct KindTokens {
  struct Row {
    int32_t n_more;  // characters that must still come behind these tokens
    TokenSet tokens;
  };
  struct Counted {
    int32_t n_chars;  // of the token; in `unsure` with as many behind it as are enough, at most
    int32_t token;
    bool operator==(const Counted&) const = default;
  };
  bool was_counted = false, is_counted = false;  // was asked; and every kind said it
  int32_t n_chars_max = 0;                       // of tokens, with those that must still come
  TokenSet all;                                  // where there is no limit
  std::vector<Row> rows;                         // is_counted: `all` but for `unsure`, ascending n_more; else none
  std::vector<Counted> unsure;  // is_counted: those that the machine is asked about where there is a limit

  [[nodiscard]] int64_t n_bytes() const;
};
/// The same tokens, and said in the same way. Cost: a look at the rows
bool equal(const Vocabulary& vocabulary, const KindTokens& a, const KindTokens& b);

}  // namespace deepinfer::grammar
