// What every kind of constraint becomes: a deterministic machine over bytes whose states are found as they are reached.
// The mask engine (mask.h) and the matcher (matcher.h) know nothing else of regexes, schemas and grammars.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/fingerprint.h"
#include "grammar/fuel.h"
#include "grammar/text_visitor.h"

namespace deepinfer::grammar {

/// A state of one machine, by number. Equal numbers have equal futures; different numbers may have, too.
/// The number 2^32 - 1 is never a state.
using State = uint32_t;
inline constexpr State kDead = 0;

/// How far behind a closing quote a state stands for another one.
struct Reach {
  int32_t n_bytes = -1;  // 4 covers `:1,"`; -1: without end
  bool brackets = true;  // false: up to a closing bracket only
  bool values = true;    // false: behind a name, up to the end of the member's value only
};

/// A state inside the characters of a JSON string, after the opening quote and between two characters. Nothing but what
/// RFC 8259 allows may follow, and surrogate escapes in pairs only (after the first half is not between characters); the
/// machine may allow less, such as fewer escapes.
///
/// Characters are counted as they begin: one for a raw character, one for an escape, one for a pair of surrogate escapes.
struct StringBody {
  uint32_t kind;  // equal kinds: the same bytes stay inside the string and the same bytes end it, apart from the limits
  bool any_text;  // every character may follow, whatever came before: only `min_left` and `max_left` limit the string
  int32_t min_left;  // characters (code points) still needed before the closing quote
  int32_t max_left;  // characters still allowed; -1: any number
  State after;       // where the closing quote leads; the same for all bytes of this string
  /// Names of members, and strings that will be compared: `after` stands for the other states that a closing quote leads to
  /// so far.
  Reach reach;
  /// False: the closing quote leads elsewhere, or nowhere, after some characters. `after` is not used; what may follow the
  /// quote is asked byte by byte, which takes long.
  bool same_after = true;
  /// Every raw character stays inside, whatever came before: like any_text, but for what the closing quote asks. False: not
  /// so, or not known.
  bool takes_all = false;
  /// any_text or takes_all: every escape of RFC 8259 is taken for a character. Then no escape is asked for.
  bool every_escape = false;
  /// Where `kind` counts characters: the same string by another kind that does not, and limits. 0: there is none.
  uint32_t counted_kind = 0;
  int32_t counted_min = 0, counted_max = -1;
  /// Texts (characters from here on, unescaped) behind which the closing quote leads elsewhere than `after`, or nowhere:
  /// names that are declared, or that the object already has. Used before the next call to the machine only.
  std::vector<std::string_view> except;
};

/// A state as of StringBody behind which only a list of texts may come: names of members, values of an enumeration.
struct TextList {
  uint32_t kind;             // equal kinds: the same texts; 0: not known
  bool only_needed_escapes;  // characters that could stand for themselves are never escaped
};

/// A state inside a JSON number, or one in which a number may begin.
struct NumberBody {
  uint32_t kind;  // as of kind_step(): what may follow of the number itself
  bool ends;      // the number may end here: then what follows is what may follow `after`
  State after;
};

/// Blanks between JSON tokens: any mix of so many line ends (LF) and so many others (space, tab, CR) may follow here, perhaps
/// none. After them the state is like `clean`, but for how many may still follow.
struct Blanks {
  State clean;
  int32_t n_line_ends, n_others;
};

/// A state in text that may be anything, between two characters: every token of well-formed text may follow (its last
/// character may be cut), but those that Machine::leaves_free_text() tells are a matter of the machine's steps. All of those have
/// one of these bytes.
struct FreeText {
  std::string_view bytes;
};

/// A set of bytes, at most all that may come next.
struct NextBytes {
  std::array<uint64_t, 4> words{};
  constexpr void insert(uint8_t byte) { words[byte >> 6] |= uint64_t{1} << (byte & 63); }
  [[nodiscard]] bool contains(uint8_t byte) const { return (words[byte >> 6] >> (byte & 63) & 1) != 0; }
};

/// Not thread-safe: the owner (CompiledGrammar) serialises calls. Everything is computed on demand and remembered.
class Machine {
 public:
  virtual ~Machine() = default;
  [[nodiscard]] virtual State start() const = 0;
  /// The state after one more byte; kDead exactly when no text of the constraint goes on like that, as far as the
  /// machine can know (a machine that cannot know says so in its own header).
  /// Cost     a hash lookup where the pair was seen before
  virtual State step(State from, uint8_t byte) = 0;
  /// The state after all of the bytes.
  virtual State steps(State from, std::string_view bytes) {
    for (size_t i = 0; i < bytes.size() && from != kDead; ++i) from = step(from, static_cast<uint8_t>(bytes[i]));
    return from;
  }
  /// The text may end here.
  virtual bool complete(State state) = 0;
  /// Bytes of a shortest way to a complete state (an upper bound where it says so); -1: none is known.
  virtual int64_t distance(State state) = 0;
  /// For the bulk of a mask inside JSON strings; nothing elsewhere, and where a string is not any text and has no kind.
  virtual std::optional<StringBody> string_body(State) { return std::nullopt; }
  /// Where there is one, visit_texts() shows the texts, decoded, unless it finds that they are too many (then it says false).
  virtual std::optional<TextList> text_list(State) { return std::nullopt; }
  virtual bool visit_texts(State, TextVisitor&) { return false; }
  /// Inside a number.
  virtual std::optional<NumberBody> number_body(State) { return std::nullopt; }
  /// Where a value begins: the kind of the numbers that may; 0: none may, or it is not known.
  virtual uint32_t number_kind(State) { return 0; }
  /// A state in a JSON string of any text without limits, where every byte that stays inside the string leads back.
  virtual bool in_any_text(State) { return false; }
  /// Behind a text without escapes and the closing quote, from where string_body() is; stands for that state as far as `reach`.
  virtual State after_text(State from, std::string_view text, Reach& reach) {
    reach = {};
    const State inside = steps(from, text);
    return inside == kDead ? kDead : step(inside, '"');
  }
  /// The bytes that step() takes from here (more is allowed), where the machine knows them for less than 256 steps:
  /// only these are tried at the start of a walk.
  virtual std::optional<NextBytes> next_bytes(State) { return std::nullopt; }
  /// Between two tokens: then blanks are counted by the mask engine, which asks nothing but `clean` for other bytes.
  virtual std::optional<Blanks> blanks(State) { return std::nullopt; }

  virtual std::optional<FreeText> free_text(State) { return std::nullopt; }
  virtual bool leaves_free_text(State, std::string_view) { return true; }

  /// The kinds of string_body() as a machine of their own, for strings that are not any text: the raw bytes that stay
  /// inside, whatever the limits, escapes and place of the string. Kinds are numbered inside characters, too; 0: dead.
  virtual uint32_t kind_step(uint32_t kind, uint8_t) { return kind; }
  /// The closing quote may follow, if the limits allow it.
  virtual bool kind_ends(uint32_t) { return false; }
  /// As next_bytes().
  virtual std::optional<NextBytes> kind_next_bytes(uint32_t) { return std::nullopt; }
  /// No less bytes may come before the closing quote.
  virtual int64_t kind_bytes(uint32_t) { return 0; }
  /// Characters that must still come before the closing quote, where any larger number will do, too; -1: not so, or not known.
  /// The rest of a character that has begun does not count.
  virtual int32_t kind_chars(uint32_t) { return -1; }
  /// Two kinds: all that stays inside (ends) for `low` does so for the kind, and what does so for the kind does for `high`. Equal for many kinds
  /// that count alike, if `n` or more are still to come of what they count.
  struct KindBounds {
    uint32_t low, high;
  };
  virtual KindBounds kind_bounds(uint32_t kind, int32_t) { return {kind, kind}; }
  /// A state in some string of this kind that has no other limits, for the escapes that it takes.
  virtual State kind_state(uint32_t) { return kDead; }
  /// Characters that must still come before the closing quote, as kind_chars(), of a state of some string; in an escape, too.
  virtual int32_t chars_left(State) { return -1; }

  /// What tells a kind from those of all machines: of equal names all of the above is equal, and the same escapes may follow
  /// kind_state(), which is not kDead. Nothing: not to be told.
  struct KindName {
    Fingerprint print;
    uint32_t machine = 0;
  };
  virtual std::optional<KindName> kind_name(uint32_t) { return std::nullopt; }

  /// Shows states that are worth a look ahead, nearest to the start first, until `visit` says false: ones whose masks need what
  /// many others need, and (behind_quote) ones that after_text() and StringBody::after tell of.
  using VisitAhead = std::function<bool(State state, bool behind_quote)>;
  virtual void visit_ahead(const VisitAhead&) {}
  /// All texts are JSON: nothing follows a string, and nothing comes where there are blanks(), that could not in some JSON text.
  [[nodiscard]] virtual bool is_json() const { return false; }
  /// False: some of what is valid may have been left out, so that "nothing" may not be all.
  [[nodiscard]] virtual bool knows_all() const { return true; }
  /// Memory of all states, bytes.
  [[nodiscard]] virtual int64_t n_bytes() const = 0;

  /// Limits the work of the following calls; null: no limit. A machine that ran out says so in failure().
  virtual void set_fuel(Fuel*) {}
  /// Why states can no longer be trusted (out of memory or fuel); empty while all is well. Then it stays.
  [[nodiscard]] virtual std::string_view failure() const { return {}; }
};

}  // namespace deepinfer::grammar
