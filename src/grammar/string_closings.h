// The tokens that close a JSON string: what stands before their quote must be a text of the string, and what stands behind it
// must follow.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/kind_facts.h"
#include "grammar/machine.h"
#include "grammar/trie_walk.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe.
class StringClosings {
 public:
  /// A set of StringTokens::closings.
  using Set = std::vector<MaskWord>;
  /// What is known of the text before the quote.
  struct Text {
    uint32_t kind = 0;
    int32_t min = 0, max = 0;      // characters
    const Set* escaped = nullptr;  // of any text: those with an escape that the machine accepts
  };

  /// All borrowed.
  StringClosings(const Vocabulary& vocabulary, TrieWalk& walk, KindFacts& facts)
      : vocabulary_(vocabulary),
        strings_(vocabulary.strings()),
        tables_(walk.machine().is_json() ? strings_.json_closings : strings_.all_closings),
        walk_(walk),
        facts_(facts) {}

  [[nodiscard]] Set none() const { return Set(static_cast<size_t>(strings_.n_closing_words)); }
  /// Those that may come in `state`, whose string_body() is `body`.
  Set allowed(State state, const StringBody& body, const Text& text);
  /// Adds those with this text, a key of ClosingTables::of_text, before the quote that may come.
  void add_text(State state, std::string_view text, Set& out);
  /// Sets or clears one by walking its token.
  void ask(State state, int32_t closing, Set& out);
  /// Appends the tokens of the set.
  void append_tokens(const Set& set, std::vector<int32_t>& tokens) const;
  void prepare(State behind_quote) { allowed_after(behind_quote); }
  /// Equal sets have equal numbers.
  uint32_t number_of(const Set& set);
  [[nodiscard]] int64_t n_bytes() const;

 private:
  struct EscapedKey {
    uint32_t kind;
    int32_t min, max;
    auto operator<=>(const EscapedKey&) const = default;
  };

  Set before_quote(State state, const StringBody& body, const Text& text);
  Set by_text(State state, const StringBody& body, const Text& text);
  const Set& plain(uint32_t kind);
  Set find_plain(uint32_t kind);
  const Set& escaped(State state, const StringBody& body);
  void keep_within(int32_t min, int32_t max, Set& set) const;
  void keep_allowed(State state, const StringBody& body, Set& set);
  void make_exceptions(State state, const StringBody& body, Set& set);
  const Set& allowed_after(State after);
  [[nodiscard]] bool is_bounded(const Reach& reach) const;
  [[nodiscard]] bool is_beyond(int32_t closing, const Reach& reach) const;
  [[nodiscard]] bool has_escaped() const { return strings_.escaped_trie.size() > 1; }
  State step(State state, std::string_view bytes) { return walk_.machine().steps(state, bytes); }

  const Vocabulary& vocabulary_;
  const StringTokens& strings_;
  const ClosingTables& tables_;
  TrieWalk& walk_;
  KindFacts& facts_;
  std::unordered_map<uint32_t, std::shared_ptr<const Set>> plain_;  // by kind
  std::map<EscapedKey, Set> escaped_;
  std::map<State, Set> after_;
  std::map<Set, uint32_t> numbers_;
};

}  // namespace deepinfer::grammar
