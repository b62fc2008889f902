// Parts of a pattern that look around: what is not a plain language by itself, because it depends on the text before or
// behind it. Private to regex*.cc.
#pragma once

#include <string>
#include <vector>

#include "deepinfer/status.h"
#include "grammar/char_set.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

enum class PieceKind : uint8_t {
  kLang,          // no look-around in it
  kSequence,      // parts
  kAlternatives,  // parts
  kRepeat,        // parts[0], min to max times
  kStart,         // ^
  kEnd,           // $
  kWordEdge,      // \b, or \B if negative
  kAhead,         // (?=parts[0]) or (?!parts[0])
  kBehind,        // one character of `set` stands before, or (at_start) nothing does; negative: neither
};

struct Piece {
  PieceKind kind = PieceKind::kLang;
  bool negative = false;
  bool at_start = false;
  Lang lang = kNothing;
  int32_t min = 1, max = 1;
  int32_t depth = 0;
  CharSet set = {};       // kBehind; of kLang where `one_char`
  bool one_char = false;  // kLang: one character of `set`
  std::vector<int32_t> parts = {};
};

/// Turns pieces into the language of the whole text.
///
/// What may follow a position depends on what stood before it only by its class: nothing, or a character of one of the
/// sets that the look-behinds and \b of the pattern tell apart. So each piece maps "what may follow behind it, by class"
/// to "what may follow in front of it, by class", from the right to the left.
class PieceEvaluator {
 public:
  PieceEvaluator(Languages& languages, const std::vector<Piece>& pieces);

  /// Errors   kInvalidArgument: a construct that is not made into an automaton, named
  Result<Lang> whole(int32_t piece);   // the pattern is the whole text
  Result<Lang> search(int32_t piece);  // the pattern is somewhere in it

 private:
  using ByClass = std::vector<Lang>;  // [0]: at the start of the text

  Status find_classes();
  Result<ByClass> evaluate(int32_t piece, const ByClass& after);
  Result<ByClass> evaluate_kind(const Piece& piece, const ByClass& after);
  ByClass evaluate_lang(const Piece& piece, const ByClass& after);
  ByClass evaluate_edge(const Piece& piece, const ByClass& after);
  Result<ByClass> evaluate_ahead(const Piece& piece, const ByClass& after);
  Result<ByClass> evaluate_repeat(const Piece& piece, const ByClass& after);
  Result<ByClass> evaluate_each_char(const Piece& piece);
  Result<ByClass> evaluate_loop(const Piece& piece, const ByClass& after);
  ByClass solve(std::vector<ByClass> body, ByClass constants);
  [[nodiscard]] bool is_checked_char(const Piece& body) const;
  [[nodiscard]] bool looks_ahead(int32_t piece) const;

  Lang concat(Lang x, Lang y);
  Lang either(Lang x, Lang y);
  Lang both(Lang x, Lang y);
  Lang begins_with(const CharSet& set);  // a character of the set, then anything
  [[nodiscard]] ByClass same(Lang lang) const { return ByClass(classes_.size() + 1, lang); }

  Languages& languages_;
  const std::vector<Piece>& pieces_;
  std::vector<CharSet> classes_;  // of characters that are told apart; together: all
  std::vector<bool> is_word_;     // by class
  bool only_start_ = true;        // no negative construct: what may follow at the start may follow nowhere less
  bool ends_are_dead_ = false;    // $ fails
  int64_t n_steps_ = 0;
};

}  // namespace deepinfer::grammar
