// Masks inside JSON strings. What stays inside depends on the kind of string, what closes it on where the quote leads; both
// are found once and put together per state.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/kind_facts.h"
#include "grammar/kind_tokens.h"
#include "grammar/kind_walk.h"
#include "grammar/machine.h"
#include "grammar/mask_store.h"
#include "grammar/string_closings.h"
#include "grammar/text_tokens.h"
#include "grammar/trie_walk.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe.
class StringMasks {
 public:
  /// All borrowed.
  StringMasks(const Vocabulary& vocabulary, TrieWalk& walk, MaskStore& store)
      : vocabulary_(vocabulary),
        strings_(vocabulary.strings()),
        walk_(walk),
        kinds_(walk.machine()),
        kind_walk_(vocabulary, kinds_),
        store_(store),
        text_tokens_(vocabulary),
        facts_(vocabulary, walk.machine()),
        closings_(vocabulary, walk, facts_) {}

  /// The mask of `state`, whose string_body() is `body`. Without end-of-text ids.
  Mask mask(State state, const StringBody& body);
  /// The same where the machine has a text list; nothing: it is too long.
  /// Cost     10 to 20 ns per byte of the texts that some token has; kept per kind
  std::optional<Mask> texts_mask(State state, const TextList& list);
  /// The tokens of nothing but bytes that kind_step() takes, one after the other. Valid as long as this object.
  /// Cost     a look-up where some grammar asked for such numbers before; else a walk of the digits
  Mask number_tokens(uint32_t kind);
  /// Finds out ahead what may follow a closing quote behind which the state is.
  void prepare(State behind_quote) { closings_.prepare(behind_quote); }
  [[nodiscard]] int64_t n_bytes() const;

 private:
  using Question = KindFacts::Question;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int32_t kAnyNumber = std::numeric_limits<int32_t>::max();
  /// The kinds of a machine as a machine.
  struct Kinds : Machine {
    explicit Kinds(Machine& whole) : machine(whole) {}
    [[nodiscard]] State start() const override { return kDead; }
    State step(State from, uint8_t byte) override { return machine.kind_step(from, byte); }
    std::optional<NextBytes> next_bytes(State state) override { return machine.kind_next_bytes(state); }
    bool complete(State state) override { return machine.kind_ends(state); }
    int64_t distance(State) override { return -1; }
    [[nodiscard]] int64_t n_bytes() const override { return 0; }
    Machine& machine;
  };
  using Counted = KindTokens::Counted;
  /// Strings of any text, and of kinds that take every character: how the machine differs from Vocabulary::string_mask, in tokens of up to n_chars_known
  /// characters.
  struct AnyText {
    int32_t n_chars_known = -1;
    std::vector<Counted> added, removed;
    StringClosings::Set escaped;  // the machine accepts the escapes before the quote
    [[nodiscard]] int64_t n_bytes() const {
      return static_cast<int64_t>(sizeof(*this) + (added.capacity() + removed.capacity()) * sizeof(Counted) +
                                  escaped.capacity() * sizeof(MaskWord));
    }
  };
  /// Other strings.
  struct Other {
    std::shared_ptr<const KindTokens> tokens;
    std::map<int32_t, Mask> up_to;  // of up to so many characters, with those that must still come
  };
  /// Kinds between two that are the same but for the counts that are left.
  struct Family {
    int32_t n_asked = 0;
    bool is_known = false;
    uint32_t other = kNone;  // of all of them; kNone: they differ
  };
  /// What text_tokens.h finds.
  struct Texts {
    bool is_list = true;
    std::vector<int32_t> tokens, tokens_to_ask, closings_to_ask;
    std::vector<std::string_view> ended;
  };
  /// How a body is seen: one of two, and the limits that hold for it.
  struct Inside {
    const AnyText* any = nullptr;
    uint32_t other = kNone;
    uint32_t kind = 0;
    int32_t min = 0, max = kAnyNumber;
  };
  struct Key {
    uint32_t any, other;  // kind of any text, place in others_
    int32_t min;          // still needed, where that matters
    int32_t n_chars;      // still allowed, saturated
    uint32_t closings;
    auto operator<=>(const Key&) const = default;
  };
  Mask find_mask(State state, const StringBody& body);
  [[nodiscard]] bool has_room(const StringBody& body) const;
  Mask with_late_escapes(State state, Mask mask);
  void find_texts(State state, const TextList& list, Texts& out);
  Inside inside_of(State state, const StringBody& body);
  const AnyText& any_text(State state, const StringBody& body, int32_t n_chars);
  AnyText find_any_text(State state, int32_t n_chars);
  Mask any_text_inside(const AnyText& kind, int32_t n_chars);
  uint32_t other(uint32_t kind, bool count);
  uint32_t family_other(uint32_t kind, bool count);
  [[nodiscard]] uint32_t known_other(uint32_t kind, bool count) const;
  uint32_t own_other(uint32_t kind, bool count);
  uint32_t add_other(uint32_t kind, std::shared_ptr<const KindTokens> tokens);
  void find_other(uint32_t kind, bool count, KindTokens& out);
  bool find_few(uint32_t kind, KindTokens& out);
  Mask other_inside(State state, Other& kind, int32_t min, int32_t n_chars);
  TokenSet find_number_tokens(uint32_t kind);
  bool takes_every_character(uint32_t kind);
  bool find_takes_every_character(uint32_t kind);
  State step(State state, std::string_view bytes) { return walk_.machine().steps(state, bytes); }

  const Vocabulary& vocabulary_;
  const StringTokens& strings_;
  TrieWalk& walk_;
  Kinds kinds_;
  TrieWalk kind_walk_;
  MaskStore& store_;
  TextTokens text_tokens_;
  KindFacts facts_;
  StringClosings closings_;
  std::unordered_map<uint32_t, std::shared_ptr<const TokenSet>> number_tokens_;  // by kind
  std::unordered_map<uint32_t, Texts> texts_;                                    // by kind
  std::map<uint32_t, std::shared_ptr<const AnyText>> any_text_;  // by kind; 0: all those with every escape
  std::deque<Other> others_;
  std::unordered_map<uint32_t, uint32_t> other_of_;  // kind -> others_
  std::map<std::pair<uint32_t, uint32_t>, Family> families_;
  std::unordered_map<uint32_t, bool> takes_every_;  // by kind
  std::map<Key, Mask> masks_;
  std::unordered_map<uint64_t, Mask> roomy_;  // has_room(): by (after, min_left)
  std::vector<uint8_t> marks_;
  std::vector<int32_t> ids_;
  std::vector<MaskWord> more_;
};

}  // namespace deepinfer::grammar
