// The kinds of one machine in the cache that all grammars of a vocabulary share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "grammar/kind_cache.h"
#include "grammar/machine.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe; the cache behind it is.
class KindFacts {
 public:
  /// Each has a type of its own: KindTokens (both), StringClosings::Set, bool, what StringMasks knows of any text, TokenSet.
  enum class Question : uint32_t {
    kTokens,
    kCountedTokens,
    kPlainClosings,
    kTakesEveryCharacter,
    kAnyText,
    kNumberTokens
  };

  /// Both are borrowed.
  KindFacts(const Vocabulary& vocabulary, Machine& machine) : vocabulary_(vocabulary), machine_(machine) {}

  /// What is known of the kind; nullptr: nothing, or it has no name that other grammars know.
  template <class Fact>
  std::shared_ptr<const Fact> find(uint32_t kind, Question question, int32_t n_chars = 0) {
    const std::optional<KindKey> key = key_of(kind, question, n_chars);
    return key ? vocabulary_.kinds().find<Fact>(*key) : nullptr;
  }
  /// `fact`, found just now, or what somebody else found meanwhile.
  template <class Fact>
  std::shared_ptr<const Fact> keep(uint32_t kind, Question question, std::shared_ptr<const Fact> fact,
                                   int32_t n_chars = 0) {
    if (!machine_.failure().empty()) return fact;  // what was found without fuel is not so
    const std::optional<KindKey> key = key_of(kind, question, n_chars);
    if (!key) return fact;
    const int64_t n_bytes = bytes_of(*fact);
    return vocabulary_.kinds().keep(*key, std::move(fact), n_bytes);
  }
  /// Known, or what `find_fact()` finds.
  template <class Fact, class FindFact>
  std::shared_ptr<const Fact> get(uint32_t kind, Question question, FindFact find_fact, int32_t n_chars = 0) {
    if (auto known = find<Fact>(kind, question, n_chars)) return known;
    return keep<Fact>(kind, question, std::make_shared<const Fact>(find_fact()), n_chars);
  }

 private:
  [[nodiscard]] std::optional<KindKey> key_of(uint32_t kind, Question question, int32_t n_chars) const {
    const auto name = machine_.kind_name(kind);
    if (!name) return std::nullopt;
    return KindKey{name->print, name->machine, static_cast<uint32_t>(question), n_chars};
  }
  static int64_t bytes_of(const bool&) { return sizeof(bool); }
  static int64_t bytes_of(const std::vector<MaskWord>& set) {
    return static_cast<int64_t>(sizeof(set) + set.size() * sizeof(MaskWord));
  }
  template <class Fact>
  static int64_t bytes_of(const Fact& fact) {
    return fact.n_bytes();
  }

  const Vocabulary& vocabulary_;
  Machine& machine_;
};

}  // namespace deepinfer::grammar
