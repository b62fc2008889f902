// Masks between two tokens of JSON: a walk of the few tokens that can stand there.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/json_tokens.h"
#include "grammar/machine.h"
#include "grammar/trie_walk.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe.
class StructureMasks {
 public:
  /// All borrowed.
  StructureMasks(const Vocabulary& vocabulary, TrieWalk& walk)
      : vocabulary_(vocabulary), json_(vocabulary.json_tokens()), walk_(walk) {}

  /// Appends the tokens that may come, without those that begin with a number at once. Precondition: the machine is_json();
  /// `blanks` is what it says of the state.
  void append(const Blanks& blanks, std::vector<int32_t>& ids);
  [[nodiscard]] int64_t n_bytes() const { return static_cast<int64_t>(allowed_.capacity()); }

 private:
  void walk(uint32_t first, uint32_t end, State from);
  void find_strings(State inside);

  const Vocabulary& vocabulary_;
  const JsonTokens& json_;
  TrieWalk& walk_;
  std::vector<uint8_t> allowed_;  // of JsonTokens::texts
};

}  // namespace deepinfer::grammar
