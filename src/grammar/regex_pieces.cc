#include "grammar/regex_pieces.h"

#include <algorithm>

#include "base/check.h"
#include "grammar/regex_sets.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kClassesMax = 8;
constexpr int32_t kUnrollMax = 16;    // times that a repeat with look-around in it is written out
constexpr int64_t kStepsMax = 20000;  // pieces evaluated, counting those written out

Error refused(const std::string& what) { return Error{Code::kInvalidArgument, "pattern: " + what}; }

}  // namespace

PieceEvaluator::PieceEvaluator(Languages& languages, const std::vector<Piece>& pieces)
    : languages_(languages), pieces_(pieces) {}

Lang PieceEvaluator::concat(Lang x, Lang y) {
  const Lang parts[] = {x, y};
  return languages_.concat(parts);
}
Lang PieceEvaluator::either(Lang x, Lang y) {
  const Lang parts[] = {x, y};
  return languages_.any_of(parts);
}
Lang PieceEvaluator::both(Lang x, Lang y) {
  const Lang parts[] = {x, y};
  return languages_.all_of(parts);
}
Lang PieceEvaluator::begins_with(const CharSet& set) { return concat(languages_.chars(set), kAnyText); }

Status PieceEvaluator::find_classes() {
  classes_ = {CharSet::all()};
  const auto split_by = [this](const CharSet& set) {
    std::vector<CharSet> finer;
    for (const CharSet& old : classes_) {
      for (CharSet part : {old.common(set), old.common(set.others())}) {
        if (!part.empty()) finer.push_back(std::move(part));
      }
    }
    classes_ = std::move(finer);
  };
  for (const Piece& piece : pieces_) {
    if (piece.kind == PieceKind::kWordEdge) split_by(word_chars());
    if (piece.kind == PieceKind::kBehind) split_by(piece.set);
    if (piece.kind == PieceKind::kWordEdge || piece.negative) only_start_ = false;
    if (classes_.size() > kClassesMax) return refused("look-behinds tell too many sets of characters apart");
  }
  for (const CharSet& set : classes_) is_word_.push_back(!set.common(word_chars()).empty());
  return {};
}

Result<Lang> PieceEvaluator::whole(int32_t piece) {
  DI_RETURN_IF_ERROR(find_classes());
  DI_ASSIGN_OR_RETURN(const ByClass result, evaluate(piece, same(kEmptyText)));
  return result[0];
}

Result<Lang> PieceEvaluator::search(int32_t piece) {
  DI_RETURN_IF_ERROR(find_classes());
  DI_ASSIGN_OR_RETURN(const ByClass result, evaluate(piece, same(kAnyText)));
  const bool alike = std::all_of(result.begin() + 2, result.end(), [&](Lang lang) { return lang == result[1]; });
  if (alike) {
    if (result[1] == result[0] || only_start_) return either(result[0], concat(kAnyText, result[1]));
    const Lang some_text = concat(languages_.chars(CharSet::all()), kAnyText);
    return either(result[0], concat(some_text, result[1]));
  }
  std::vector<Lang> parts = {result[0]};
  for (size_t i = 0; i < classes_.size(); ++i) {
    parts.push_back(concat(concat(kAnyText, languages_.chars(classes_[i])), result[i + 1]));
  }
  return languages_.any_of(parts);
}

Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate(int32_t piece, const ByClass& after) {
  if (++n_steps_ > kStepsMax || languages_.exhausted()) return refused("too large");
  return evaluate_kind(pieces_[static_cast<size_t>(piece)], after);
}

Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate_kind(const Piece& piece, const ByClass& after) {
  ByClass result = after;
  switch (piece.kind) {
    case PieceKind::kLang:
      return evaluate_lang(piece, after);
    case PieceKind::kSequence:
      for (size_t i = piece.parts.size(); i-- > 0;) {
        DI_ASSIGN_OR_RETURN(result, evaluate(piece.parts[i], result));
      }
      return result;
    case PieceKind::kAlternatives:
      result = same(kNothing);
      for (const int32_t part : piece.parts) {
        DI_ASSIGN_OR_RETURN(const ByClass one, evaluate(part, after));
        for (size_t i = 0; i < result.size(); ++i) result[i] = either(result[i], one[i]);
      }
      return result;
    case PieceKind::kRepeat:
      return evaluate_repeat(piece, after);
    case PieceKind::kStart:
      std::fill(result.begin() + 1, result.end(), kNothing);
      return result;
    case PieceKind::kEnd:
      for (Lang& lang : result) lang = languages_.accepts_empty(lang) && !ends_are_dead_ ? kEmptyText : kNothing;
      return result;
    case PieceKind::kWordEdge:
      return evaluate_edge(piece, after);
    case PieceKind::kAhead:
      return evaluate_ahead(piece, after);
    case PieceKind::kBehind:
      if (piece.at_start == piece.negative) result[0] = kNothing;
      for (size_t i = 0; i < classes_.size(); ++i) {
        const bool stands_before = !classes_[i].common(piece.set).empty();
        if (stands_before == piece.negative) result[i + 1] = kNothing;
      }
      return result;
  }
  return result;
}

PieceEvaluator::ByClass PieceEvaluator::evaluate_lang(const Piece& piece, const ByClass& after) {
  const Lang lang = piece.lang;
  const bool nullable = languages_.accepts_empty(lang);
  const bool alike = std::all_of(after.begin() + 2, after.end(), [&](Lang x) { return x == after[1]; });
  if (alike && (after[0] == after[1] || !nullable)) return same(concat(lang, after[1]));
  Lang behind = kNothing;  // what may follow if the piece takes some text
  if (alike) {
    behind = concat(languages_.except(lang, kEmptyText), after[1]);
  } else {
    std::vector<Lang> parts;
    for (size_t i = 0; i < classes_.size(); ++i) {
      const Lang last = languages_.chars(piece.one_char ? classes_[i].common(piece.set) : classes_[i]);
      const Lang ending = piece.one_char ? last : both(lang, concat(kAnyText, last));
      parts.push_back(concat(ending, after[i + 1]));
    }
    behind = languages_.any_of(parts);
  }
  ByClass result = same(behind);
  for (size_t i = 0; nullable && i < result.size(); ++i) result[i] = either(behind, after[i]);
  return result;
}

PieceEvaluator::ByClass PieceEvaluator::evaluate_edge(const Piece& piece, const ByClass& after) {
  const Lang word = begins_with(word_chars());
  const Lang no_word = either(kEmptyText, begins_with(word_chars().others()));
  ByClass result = after;
  for (size_t i = 0; i < result.size(); ++i) {
    const bool word_before = i > 0 && is_word_[i - 1];
    result[i] = both(after[i], word_before == piece.negative ? word : no_word);
  }
  return result;
}

Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate_ahead(const Piece& piece, const ByClass& after) {
  DI_ASSIGN_OR_RETURN(const ByClass seen, evaluate(piece.parts[0], same(kAnyText)));
  ByClass result = after;
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = piece.negative ? languages_.except(after[i], seen[i]) : both(after[i], seen[i]);
  }
  return result;
}

Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate_repeat(const Piece& piece, const ByClass& after) {
  const Piece& body = pieces_[static_cast<size_t>(piece.parts[0])];
  const bool at_end = std::all_of(after.begin(), after.end(), [](Lang lang) { return lang == kEmptyText; });
  if (at_end && is_checked_char(body)) return evaluate_each_char(piece);
  if (piece.max < 0) {
    if (piece.min > kUnrollMax) return refused("look-around inside a repeat of so many times");
    DI_ASSIGN_OR_RETURN(ByClass result, evaluate_loop(piece, after));
    for (int32_t i = 0; i < piece.min; ++i) {
      DI_ASSIGN_OR_RETURN(result, evaluate(piece.parts[0], result));
    }
    return result;
  }
  if (piece.max > kUnrollMax) return refused("look-around inside a repeat of so many times");
  ByClass result = after;
  for (int32_t i = piece.max; i > 0; --i) {
    DI_ASSIGN_OR_RETURN(result, evaluate(piece.parts[0], result));
    for (size_t k = 0; i > piece.min && k < result.size(); ++k) result[k] = either(result[k], after[k]);
  }
  return result;
}

/// (?!x)(?=y).: look-aheads, then one character.
bool PieceEvaluator::is_checked_char(const Piece& body) const {
  if (body.kind != PieceKind::kSequence) return false;
  for (size_t i = 0; i < body.parts.size(); ++i) {
    const Piece& part = pieces_[static_cast<size_t>(body.parts[i])];
    if (i + 1 == body.parts.size() ? !part.one_char : part.kind != PieceKind::kAhead) return false;
  }
  return true;
}

/// Repeats of checked characters up to the end of the text: those characters, and from none of them on the rest of the
/// text fails a check.
Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate_each_char(const Piece& piece) {
  const Piece& body = pieces_[static_cast<size_t>(piece.parts[0])];
  const Lang chars = languages_.repeat(pieces_[static_cast<size_t>(body.parts.back())].lang, piece.min, piece.max);
  const Lang some_text = begins_with(CharSet::all());
  ByClass good = same(some_text);
  for (size_t i = 0; i + 1 < body.parts.size(); ++i) {
    DI_ASSIGN_OR_RETURN(good, evaluate(body.parts[i], good));
  }
  for (const Lang lang : good) {
    if (lang != good[0]) return refused("look-behind inside a look-ahead inside a repeat");
  }
  const Lang bad = languages_.except(some_text, good[0]);
  return same(languages_.except(chars, concat(kAnyText, bad)));
}

bool PieceEvaluator::looks_ahead(int32_t index) const {
  const Piece& piece = pieces_[static_cast<size_t>(index)];
  if (piece.kind == PieceKind::kAhead || piece.kind == PieceKind::kWordEdge) return true;
  return std::any_of(piece.parts.begin(), piece.parts.end(), [this](int32_t part) { return looks_ahead(part); });
}

/// Any number of times, where the body looks behind or at the end only:
///   L[i] = after[i] | M[i][0] L[0] | M[i][1] L[1] .. | E[i]
/// with M the body where it does not pass a $, and E what ends at one: that needs only to be known of L whether it has
/// the empty text (`empties`), which is found by starting from "no".
Result<PieceEvaluator::ByClass> PieceEvaluator::evaluate_loop(const Piece& piece, const ByClass& after) {
  if (looks_ahead(piece.parts[0])) return refused("look-ahead or \\b inside an unlimited repeat");
  const size_t n = after.size();
  std::vector<ByClass> body(n, same(kNothing));  // [i][j]: from class i to class j
  const bool ends_were_dead = ends_are_dead_;
  ends_are_dead_ = true;
  for (size_t j = 0; j < n; ++j) {
    ByClass to = same(kNothing);
    to[j] = kEmptyText;
    DI_ASSIGN_OR_RETURN(const ByClass from, evaluate(piece.parts[0], to));
    for (size_t i = 0; i < n; ++i) body[i][j] = from[i];
  }
  ends_are_dead_ = ends_were_dead;
  ByClass empties = same(kNothing);
  while (true) {
    DI_ASSIGN_OR_RETURN(ByClass constants, evaluate(piece.parts[0], empties));
    for (size_t i = 0; i < n; ++i) constants[i] = either(constants[i], after[i]);
    ByClass result = solve(body, std::move(constants));
    ByClass now = same(kNothing);
    for (size_t i = 0; i < n; ++i) now[i] = languages_.accepts_empty(result[i]) ? kEmptyText : kNothing;
    if (now == empties) return result;
    empties = now;
  }
}

/// L[i] = constants[i] | body[i][0] L[0] | ..: one unknown after the other is put in.
PieceEvaluator::ByClass PieceEvaluator::solve(std::vector<ByClass> body, ByClass constants) {
  const size_t n = constants.size();
  for (size_t k = 0; k < n; ++k) {
    const Lang around = languages_.repeat(body[k][k], 0, -1);
    for (size_t j = 0; j < n; ++j) body[k][j] = j == k ? kNothing : concat(around, body[k][j]);
    constants[k] = concat(around, constants[k]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      constants[i] = either(constants[i], concat(body[i][k], constants[k]));
      for (size_t j = 0; j < n; ++j) {
        if (j != k) body[i][j] = either(body[i][j], concat(body[i][k], body[k][j]));
      }
      body[i][k] = kNothing;
    }
  }
  return constants;
}

}  // namespace deepinfer::grammar
