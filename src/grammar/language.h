// Regular languages over bytes with union, intersection, complement and counted repeats: hash-consed expressions whose
// derivatives by a byte are the states of a DFA built on demand.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "grammar/byte_set.h"
#include "grammar/char_set.h"
#include "grammar/fingerprint.h"
#include "grammar/fuel.h"
#include "grammar/text_visitor.h"

namespace deepinfer::grammar {

/// A language (which is also a DFA state: the set of texts that may still follow), by number within its Languages.
using Lang = uint32_t;
inline constexpr Lang kNothing = 0;    // no text at all
inline constexpr Lang kEmptyText = 1;  // only ""
inline constexpr Lang kAnyText = 2;    // every well-formed UTF-8 text

/// Owner of the expressions of one grammar. Not thread-safe. All texts are well-formed UTF-8 unless made of bytes().
///
/// Equal expressions get equal numbers, and so do many that are equal after simplification (associativity, order,
/// absorption, ∅ and Σ* rules), which keeps derivatives finite. Counted repeats are symbolic: {0,100000} costs nothing
/// until it is walked.
class Languages {
 public:
  /// Memory is refused beyond `n_bytes_max`; then exhausted() is true and every result is kNothing.
  explicit Languages(int64_t n_bytes_max = int64_t{16} << 20);
  ~Languages();
  Languages(const Languages&) = delete;
  Languages& operator=(const Languages&) = delete;

  // -- building
  Lang chars(const CharSet& set);           // one character of the set
  Lang text(std::string_view literal);      // exactly this
  Lang bytes(uint8_t first, uint8_t last);  // one byte
  Lang concat(std::span<const Lang> parts);
  Lang any_of(std::span<const Lang> parts);          // union; none: kNothing
  Lang all_of(std::span<const Lang> parts);          // intersection; none: kAnyText
  Lang except(Lang from, Lang without);              // texts of `from` that are not in `without`
  Lang exactly_one(std::span<const Lang> parts);     // texts in exactly one of the parts
  Lang repeat(Lang part, int32_t min, int32_t max);  // max -1: any number

  /// An explicit DFA as a language, e.g. remainders of a division: state 0 starts; next(state, byte) < 0 is dead.
  struct Automaton {
    virtual ~Automaton() = default;
    [[nodiscard]] virtual int32_t next(int32_t state, uint8_t byte) const = 0;
    [[nodiscard]] virtual bool accepts(int32_t state) const = 0;
    /// Bytes of a shortest text from here, at least; -1: there is none; kUnknown: a search has to tell.
    static constexpr int64_t kUnknown = -2;
    [[nodiscard]] virtual int64_t shortest(int32_t) const { return kUnknown; }
    /// Bytes that matter, each for itself; all others are dead in every state. Empty: all matter. The call must always
    /// return the same bytes.
    [[nodiscard]] virtual std::string_view alphabet() const { return {}; }
    /// Automata of equal names are equal in every state. Empty: not to be told from others.
    [[nodiscard]] virtual std::string_view name() const { return {}; }
  };
  Lang automaton(std::shared_ptr<const Automaton> automaton);

  // -- walking
  /// What may follow `byte`: kNothing if and only if no text of the language goes on like that. Remembered.
  /// Cost     a table look-up where seen before; otherwise the size of the expression, and where intersections or
  ///          complements are in it, a search for a text of the result
  Lang next(Lang from, uint8_t byte);
  /// The same for all of the bytes, one after the other.
  Lang next(Lang from, std::string_view bytes);
  [[nodiscard]] bool accepts_empty(Lang lang) const;
  [[nodiscard]] bool accepts(Lang lang, std::string_view text);
  /// No text is in it. Exact.
  bool is_empty(Lang lang);
  /// Bytes of a shortest text; -1 for kNothing.
  int64_t shortest(Lang lang);
  /// All bytes that next() takes.
  ByteSet next_bytes(Lang from);
  /// A byte class partition of `from`: bytes with equal results of next() have equal numbers here (finer is allowed).
  std::span<const uint8_t, 256> byte_classes(Lang from);

  // -- counting
  /// The texts of `body` that have min to max characters (max -1: any number).
  struct Counted {
    Lang body;
    int32_t min, max;
  };
  /// The language said like that; nothing where it has another form.
  std::optional<Counted> counted(Lang lang);
  /// Characters of the shortest text, if there are texts of every length from there on; -1: not so, or not known. The rest of
  /// a character that has begun does not count.
  int32_t chars_at_least(Lang lang);
  /// Two languages between which `lang` lies: all of `low` is in it, and it is in `high`. Equal for many languages that differ
  /// only in how many repeats are left, if those are n or more (of characters: as many as a token may have).
  struct Bounds {
    Lang low, high;
  };
  Bounds bounds(Lang lang, int32_t n);
  /// Every text is the start of one of the language. False: not so, or not known.
  [[nodiscard]] bool takes_every_text(Lang lang) const;
  /// Shows all texts of a language that is a list of texts, such as an enumeration; some may come twice. False: it is none, or
  /// too long; then only a part was shown.
  /// Cost     a call of the visitor per byte that it enters; nothing is derived
  [[nodiscard]] bool may_be_list(Lang lang) const;  // false: visit_texts() will not show all
  [[nodiscard]] bool visit_texts(Lang lang, TextVisitor& visitor) const;
  /// At least so many bytes have the texts of a language.
  [[nodiscard]] int64_t bytes_at_least(Lang lang) const;

  /// Of the expression, the same in every store whatever else that holds: equal ones mean equal languages. Equal languages
  /// that are said otherwise may differ. Nothing where an automaton without name is in it, or when exhausted(). Remembered.
  /// Cost     50 ns for each part that was not asked before
  std::optional<Fingerprint> fingerprint(Lang lang);

  /// Spent by next(), is_empty(), shortest() and fingerprint(); may be null. When it runs out exhausted() becomes true.
  void set_fuel(Fuel* fuel);
  [[nodiscard]] Fuel* fuel() const;
  [[nodiscard]] bool exhausted() const;
  [[nodiscard]] int64_t n_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer::grammar
