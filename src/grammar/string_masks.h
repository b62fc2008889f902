// Masks inside JSON strings. What stays inside depends on the kind of string, what closes it on where the quote leads; both
// are found once and put together per state.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "grammar/mask_store.h"
#include "grammar/trie_walk.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe.
class StringMasks {
 public:
  /// All borrowed.
  StringMasks(const Vocabulary& vocabulary, TrieWalk& walk, MaskStore& store)
      : vocabulary_(vocabulary), strings_(vocabulary.strings()), walk_(walk), kinds_(walk.machine()), store_(store) {}

  /// The mask of `state`, whose string_body() is `body`. Without end-of-text ids.
  Mask mask(State state, const StringBody& body);
  [[nodiscard]] int64_t n_bytes() const;

 private:
  using Closings = std::vector<MaskWord>;  // a set of strings_.closings
  /// The kinds of a machine as a machine.
  struct Kinds : Machine {
    explicit Kinds(Machine& whole) : machine(whole) {}
    [[nodiscard]] State start() const override { return kDead; }
    State step(State from, uint8_t byte) override { return machine.kind_step(from, byte); }
    bool complete(State state) override { return machine.kind_ends(state); }
    int64_t distance(State) override { return -1; }
    [[nodiscard]] int64_t n_bytes() const override { return 0; }
    Machine& machine;
  };
  struct Counted {
    int32_t n_chars;
    int32_t token;
  };
  /// Strings of any text, and of kinds that take every character: how the machine differs from Vocabulary::string_mask, in tokens of up to n_chars_known
  /// characters.
  struct AnyText {
    int32_t n_chars_known = -1;
    std::vector<Counted> added, removed;
    Closings escaped;  // the machine accepts the escapes before the quote
  };
  /// Other strings: all tokens that stay inside; those with escapes as far as they have up to n_chars_known characters.
  struct Other {
    int32_t n_chars_known = -1;
    int32_t n_chars_max = 0;      // of tokens
    bool is_counted = false;      // `tokens` is there: some string of the kind has a limit
    std::vector<Counted> tokens;  // ascending n_chars
    std::map<int32_t, Mask> up_to;
  };
  struct Key {
    uint32_t kind;
    int32_t n_chars;  // still allowed, saturated
    uint32_t closings;
    auto operator<=>(const Key&) const = default;
  };
  struct OtherClosings {
    uint32_t kind;
    int32_t min, max;
    auto operator<=>(const OtherClosings&) const = default;
  };

  AnyText& any_text(State state, const StringBody& body, int32_t n_chars);
  void find_any_text(State state, AnyText& out);
  Mask any_text_inside(const AnyText& kind, int32_t n_chars);
  Other& other(State state, const StringBody& body, int32_t n_chars);
  void find_other(State state, uint32_t kind, Other& out);
  const Closings& plain_closings(uint32_t kind);
  bool takes_every_character(uint32_t kind);
  void find_closings(State state, const StringBody& body, int32_t n_chars, const AnyText* any_kind, Closings& out);
  template <class Found>
  void walk_raw(uint32_t kind, Found found);
  void count_other(Other& kind);
  Mask other_inside(Other& kind, int32_t n_chars);

  void keep_within(int32_t min, int32_t max, Closings& closings) const;
  const Closings& closings_asked(State state, const StringBody& body, int32_t max, const std::vector<TrieNode>& trie);
  void keep_allowed(State state, const StringBody& body, Closings& closings);
  void make_exceptions(State state, const StringBody& body, Closings& closings);
  State step(State state, std::string_view bytes);
  void ask(State state, int32_t closing, Closings& closings);
  void closings_by_bytes(State state, Closings& out);
  const Closings& allowed_after(State after);
  uint32_t number_of(const Closings& closings);

  const Vocabulary& vocabulary_;
  const StringTokens& strings_;
  TrieWalk& walk_;
  Kinds kinds_;
  MaskStore& store_;
  std::map<uint32_t, AnyText> any_text_;  // by kind
  std::map<uint32_t, Other> other_;
  std::map<OtherClosings, Closings> other_closings_;
  std::unordered_map<uint32_t, Closings> plain_closings_;  // by kind
  std::unordered_map<uint32_t, bool> takes_every_;         // by kind
  std::map<State, Closings> after_;
  std::map<Closings, uint32_t> numbers_;
  std::map<Key, Mask> masks_;
  std::vector<uint8_t> marks_;
  std::vector<int32_t> ids_;
  int64_t n_list_bytes_ = 0;
};

}  // namespace deepinfer::grammar
