// The parser of patterns: explicit stacks, so that nesting costs no call depth. What looks around becomes pieces
// (regex_pieces.h), everything else a language at once.
#include "grammar/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "grammar/regex_pieces.h"
#include "grammar/regex_sets.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kBytesMax = size_t{1} << 20;  // of a pattern
constexpr int32_t kPieceDepthMax = 100;        // nesting of pieces that look around
constexpr int64_t kCountMax = 1'000'000'000;  // of a quantifier; more means any number for {..,n} and is refused for {n
constexpr uint32_t kEnd = 0xFFFFFFFF;         // no more characters

bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int hex_value(uint32_t c) {
  if (is_digit(c)) return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  return c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A') + 10 : -1;
}

/// What an escape or a member of a class stands for: one character (surrogates included) or a set.
struct Atom {
  uint32_t c = 0;
  std::optional<CharSet> set = {};
};

class Parser {
 public:
  Parser(Languages& languages, std::string_view pattern) : languages_(languages), text_(pattern) {}

  Status parse();
  Result<Lang> language(Match match);

 private:
  /// A part of a sequence: a literal character until it is needed as more.
  struct Term {
    uint32_t c = kEnd;
    int32_t piece = -1;
    Lang lang = kEmptyText;
    int32_t set = -1;  // one character of sets_[set]
  };
  enum class GroupKind : uint8_t { kPlain, kAhead, kNotAhead, kBehind, kNotBehind };
  struct Group {
    GroupKind kind;
    size_t first_term, first_alternative;
    size_t at;  // of its bracket, characters
  };

  [[nodiscard]] uint32_t look() const { return at_ < text_.size() ? decode_utf8(text_.data() + at_).value : kEnd; }
  [[nodiscard]] bool looks_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  uint32_t take() {
    const CodePoint c = decode_utf8(text_.data() + at_);
    at_ += c.n_bytes;
    return c.value;
  }
  bool take_if(std::string_view what) {
    if (!looks_at(what)) return false;
    at_ += what.size();
    return true;
  }
  Error error(std::string_view what) const { return error_at(what, at_); }
  Error error_at(std::string_view what, size_t at) const;

  Status parse_term();
  Status open_group();
  Status close_group();
  Status close_behind(const Group& group);
  Status parse_quantifier();
  std::optional<std::pair<int64_t, int64_t>> parse_counts();
  Result<Atom> parse_escape(bool in_class);
  Result<Atom> parse_unicode_escape();
  Result<Atom> parse_property(bool negative);
  Result<uint32_t> parse_hex(int n_digits);
  Result<CharSet> parse_class();
  Result<Atom> parse_class_atom();

  void push_set(CharSet set);
  void push_atom(Atom atom);
  void push_piece(Piece piece);
  Status check_depth(int32_t piece) const;
  Lang lang_of(const Term& term);
  int32_t piece_of(const Term& term);
  int32_t add_piece(Piece piece);
  Term reduce_sequence(size_t first_term);
  Term reduce_alternatives(size_t first_alternative);

  Languages& languages_;
  std::string_view text_;
  size_t at_ = 0;
  std::vector<Group> groups_;
  std::vector<Term> terms_;
  std::vector<Term> alternatives_;
  std::vector<CharSet> sets_;
  std::vector<Piece> pieces_;
  bool may_repeat_ = false;  // the last term may get a quantifier
};

Error Parser::error_at(std::string_view what, size_t at) const {
  const auto in_front = text_.substr(0, std::min(at, text_.size()));
  const auto n = std::count_if(in_front.begin(), in_front.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return Error{Code::kInvalidArgument, "pattern " + quoted_for_message(text_) + ", character " + std::to_string(n + 1) +
                                           ": " + std::string(what)};
}

// -- terms

int32_t Parser::add_piece(Piece piece) {
  for (const int32_t part : piece.parts) {
    piece.depth = std::max(piece.depth, pieces_[static_cast<size_t>(part)].depth + 1);
  }
  pieces_.push_back(std::move(piece));
  return static_cast<int32_t>(pieces_.size() - 1);
}

void Parser::push_piece(Piece piece) {
  terms_.push_back({.piece = add_piece(std::move(piece))});
  may_repeat_ = false;
}

void Parser::push_set(CharSet set) {
  const Lang lang = languages_.chars(set);
  terms_.push_back({.lang = lang, .set = static_cast<int32_t>(sets_.size())});
  sets_.push_back(std::move(set));
  may_repeat_ = true;
}

void Parser::push_atom(Atom atom) {
  if (!atom.set.has_value() && (atom.c < 0xD800 || atom.c > 0xDFFF)) {
    terms_.push_back({.c = atom.c});
    may_repeat_ = true;
    return;
  }
  push_set(atom.set.has_value() ? std::move(*atom.set) : CharSet());  // half a surrogate pair is in no text
}

Lang Parser::lang_of(const Term& term) {
  if (term.c == kEnd) return term.lang;
  std::string one;
  append_utf8(term.c, one);
  return languages_.text(one);
}

int32_t Parser::piece_of(const Term& term) {
  if (term.piece >= 0) return term.piece;
  Piece piece;
  piece.lang = lang_of(term);
  piece.one_char = term.c != kEnd || term.set >= 0;
  if (term.c != kEnd) piece.set = CharSet::one(term.c);
  if (term.set >= 0) piece.set = sets_[static_cast<size_t>(term.set)];
  return add_piece(std::move(piece));
}

Parser::Term Parser::reduce_sequence(size_t first_term) {
  const size_t n_terms = terms_.size() - first_term;
  if (n_terms == 1) {
    const Term only = terms_.back();
    terms_.pop_back();
    return only;
  }
  std::vector<Lang> run;  // languages that stand together
  std::string letters;
  Piece sequence;
  sequence.kind = PieceKind::kSequence;
  const auto end_letters = [&] {
    if (!letters.empty()) run.push_back(languages_.text(letters));
    letters.clear();
  };
  const auto end_run = [&] {
    end_letters();
    if (!run.empty()) sequence.parts.push_back(piece_of({.lang = languages_.concat(run)}));
    run.clear();
  };
  for (size_t i = first_term; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    const bool alone =
        (i == first_term || terms_[i - 1].piece >= 0) && (i + 1 == terms_.size() || terms_[i + 1].piece >= 0);
    if (term.piece >= 0 || (alone && (term.c != kEnd || term.set >= 0))) {
      end_run();
      sequence.parts.push_back(piece_of(term));
    } else if (term.c != kEnd) {
      append_utf8(term.c, letters);
    } else {
      end_letters();
      run.push_back(term.lang);
    }
  }
  Term result;
  if (sequence.parts.empty()) {
    end_letters();
    result.lang = languages_.concat(run);
  } else {
    end_run();
    result.piece = add_piece(std::move(sequence));
  }
  terms_.resize(first_term);
  return result;
}

Parser::Term Parser::reduce_alternatives(size_t first_alternative) {
  Term result;
  if (alternatives_.size() == first_alternative + 1) {
    result = alternatives_.back();
  } else {
    std::vector<Lang> plain;
    Piece both;
    both.kind = PieceKind::kAlternatives;
    for (size_t i = first_alternative; i < alternatives_.size(); ++i) {
      if (alternatives_[i].piece < 0) {
        plain.push_back(lang_of(alternatives_[i]));
      } else {
        both.parts.push_back(alternatives_[i].piece);
      }
    }
    result.lang = languages_.any_of(plain);
    if (!both.parts.empty()) {
      if (!plain.empty()) both.parts.push_back(piece_of({.lang = result.lang}));
      result = {.piece = add_piece(std::move(both))};
    }
  }
  alternatives_.resize(first_alternative);
  return result;
}

// -- the pattern

Status Parser::parse() {
  if (text_.size() > kBytesMax) return error_at("longer than " + std::to_string(kBytesMax) + " bytes", 0);
  if (find_ill_formed(text_).has_value()) {
    return Error{Code::kInvalidArgument, "pattern " + quoted_for_message(text_) + " is not well-formed UTF-8"};
  }
  groups_.push_back({GroupKind::kPlain, 0, 0, 0});
  while (at_ < text_.size()) {
    DI_RETURN_IF_ERROR(parse_term());
    if (languages_.exhausted()) return error("too large for the limits of compilation");
  }
  if (groups_.size() > 1) return error_at("this group is not closed", groups_.back().at);
  alternatives_.push_back(reduce_sequence(0));
  terms_.push_back(reduce_alternatives(0));
  return {};
}

Result<Lang> Parser::language(Match match) {
  const Term& all = terms_.back();
  Lang result = kNothing;
  if (all.piece < 0) {
    const Lang lang = lang_of(all);
    const Lang anywhere[] = {kAnyText, lang, kAnyText};
    result = match == Match::kWhole ? lang : languages_.concat(anywhere);
  } else {
    DI_RETURN_IF_ERROR(check_depth(all.piece));
    PieceEvaluator evaluator(languages_, pieces_);
    Result<Lang> found = match == Match::kWhole ? evaluator.whole(all.piece) : evaluator.search(all.piece);
    if (!found.ok()) {
      return Error{Code::kInvalidArgument, "pattern " + quoted_for_message(text_) + ": " +
                                               found.error().message.substr(std::string_view("pattern: ").size())};
    }
    result = *found;
  }
  if (languages_.exhausted()) return error_at("too large for the limits of compilation", 0);
  return result;
}

Status Parser::check_depth(int32_t piece) const {
  if (pieces_[static_cast<size_t>(piece)].depth <= kPieceDepthMax) return {};
  return error("look-around nested deeper than " + std::to_string(kPieceDepthMax));
}

Status Parser::parse_term() {
  switch (look()) {
    case '(':
      return open_group();
    case ')':
      return close_group();
    case '|':
      take();
      alternatives_.push_back(reduce_sequence(groups_.back().first_term));
      may_repeat_ = false;
      return {};
    case '^':
      take();
      push_piece({.kind = PieceKind::kStart});
      return {};
    case '$':
      take();
      push_piece({.kind = PieceKind::kEnd});
      return {};
    case '*':
    case '+':
    case '?':
    case '{':
      return parse_quantifier();
    case '.':
      take();
      push_set(no_line_ends());
      return {};
    case '[': {
      DI_ASSIGN_OR_RETURN(CharSet set, parse_class());
      push_set(std::move(set));
      return {};
    }
    case '\\': {
      if (looks_at("\\b") || looks_at("\\B")) {
        push_piece({.kind = PieceKind::kWordEdge, .negative = text_[at_ + 1] == 'B'});
        at_ += 2;
        return {};
      }
      DI_ASSIGN_OR_RETURN(Atom atom, parse_escape(false));
      push_atom(std::move(atom));
      return {};
    }
    default:
      push_atom({.c = take()});
      return {};
  }
}

Status Parser::open_group() {
  Group group = {GroupKind::kPlain, 0, alternatives_.size(), at_};
  take();
  if (take_if("?")) {
    if (take_if("=")) {
      group.kind = GroupKind::kAhead;
    } else if (take_if("!")) {
      group.kind = GroupKind::kNotAhead;
    } else if (take_if("<=")) {
      group.kind = GroupKind::kBehind;
    } else if (take_if("<!")) {
      group.kind = GroupKind::kNotBehind;
    } else if (take_if("<")) {
      const size_t end = text_.find('>', at_);
      const std::string_view name = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
      const auto fits = [](char c) {
        const auto u = static_cast<uint8_t>(c);
        return is_letter(u) || is_digit(u) || u == '_' || u == '$' || u >= 0x80;
      };
      if (end == std::string_view::npos || name.empty() || is_digit(static_cast<uint8_t>(name[0])) ||
          !std::ranges::all_of(name, fits)) {
        return error("this is no name of a group");
      }
      at_ = end + 1;
    } else if (!take_if(":")) {
      if (looks_at("P<") || looks_at("P=") || looks_at("P>")) {
        return error_at("(?P is of another dialect than ECMA-262", group.at);
      }
      if (looks_at(">")) return error_at("atomic groups are of another dialect than ECMA-262", group.at);
      if (looks_at("#")) return error_at("comments are of another dialect than ECMA-262", group.at);
      return error_at("flags inside the pattern are not supported", group.at);
    }
  }
  group.first_term = terms_.size();
  groups_.push_back(group);
  may_repeat_ = false;
  return {};
}

Status Parser::close_group() {
  if (groups_.size() == 1) return error("this bracket closes no group");
  take();
  const Group group = groups_.back();
  groups_.pop_back();
  alternatives_.push_back(reduce_sequence(group.first_term));
  if (group.kind == GroupKind::kBehind || group.kind == GroupKind::kNotBehind) return close_behind(group);
  const Term inside = reduce_alternatives(group.first_alternative);
  if (group.kind == GroupKind::kPlain) {
    terms_.push_back(inside);
    if (inside.piece >= 0) DI_RETURN_IF_ERROR(check_depth(inside.piece));
    may_repeat_ = true;
    return {};
  }
  Piece ahead;
  ahead.kind = PieceKind::kAhead;
  ahead.negative = group.kind == GroupKind::kNotAhead;
  ahead.parts = {piece_of(inside)};
  push_piece(std::move(ahead));
  return check_depth(terms_.back().piece);
}

Status Parser::close_behind(const Group& group) {
  Piece behind;
  behind.kind = PieceKind::kBehind;
  behind.negative = group.kind == GroupKind::kNotBehind;
  for (size_t i = group.first_alternative; i < alternatives_.size(); ++i) {
    const Term& term = alternatives_[i];
    if (term.c != kEnd) {
      behind.set = behind.set.united(CharSet::one(term.c));
    } else if (term.set >= 0) {
      behind.set = behind.set.united(sets_[static_cast<size_t>(term.set)]);
    } else if (term.piece >= 0 && pieces_[static_cast<size_t>(term.piece)].kind == PieceKind::kStart) {
      behind.at_start = true;
    } else {
      return error_at("look-behind at something else than one character is not supported", group.at);
    }
  }
  alternatives_.resize(group.first_alternative);
  push_piece(std::move(behind));
  return {};
}

// -- quantifiers

/// Counts in braces; nothing if this is none. Saturates above kCountMax. (-1: any number)
std::optional<std::pair<int64_t, int64_t>> Parser::parse_counts() {
  size_t i = at_ + 1;
  const auto number = [this, &i]() -> std::optional<int64_t> {
    if (i >= text_.size() || !is_digit(static_cast<uint8_t>(text_[i]))) return std::nullopt;
    int64_t value = 0;
    for (; i < text_.size() && is_digit(static_cast<uint8_t>(text_[i])); ++i) {
      value = std::min(value * 10 + (text_[i] - '0'), kCountMax + 1);
    }
    return value;
  };
  const std::optional<int64_t> min = number();
  std::optional<int64_t> max = min;
  if (!min.has_value() || i >= text_.size()) return std::nullopt;
  if (text_[i] == ',') {
    ++i;
    max = number().value_or(-1);
  }
  if (i >= text_.size() || text_[i] != '}') return std::nullopt;
  at_ = i + 1;
  return std::pair{*min, *max};
}

Status Parser::parse_quantifier() {
  const size_t start = at_;
  int64_t min = 0;
  int64_t max = -1;
  if (look() == '{') {
    const auto counts = parse_counts();
    if (!counts.has_value()) {
      const size_t digits_end = text_.find_first_not_of("0123456789", at_ + 2);
      if (looks_at("{,") && digits_end != std::string_view::npos && text_[digits_end] == '}') {
        return error("{,n} is no quantifier of ECMA-262; write {0,n}");
      }
      push_atom({.c = take()});  // a lone brace
      return {};
    }
    std::tie(min, max) = *counts;
    if (max >= 0 && min > max) return error_at("the counts are in the wrong order", start);
    if (min > kCountMax) return error_at("the count is above 1000000000", start);
    if (max > kCountMax) max = -1;
  } else {
    const uint32_t c = take();
    if (c == '+') min = 1;
    if (c == '?') max = 1;
  }
  if (!may_repeat_) return error_at("nothing stands here that could be repeated", start);
  take_if("?");
  if (look() == '+') return error("possessive quantifiers are of another dialect than ECMA-262");
  const Term body = terms_.back();
  terms_.pop_back();
  may_repeat_ = false;
  if (body.piece < 0) {
    const Lang lang = lang_of(body);
    terms_.push_back({.lang = languages_.repeat(lang, static_cast<int32_t>(min), static_cast<int32_t>(max))});
    return {};
  }
  Piece repeat;
  repeat.kind = PieceKind::kRepeat;
  repeat.min = static_cast<int32_t>(min);
  repeat.max = static_cast<int32_t>(max);
  repeat.parts = {body.piece};
  terms_.push_back({.piece = add_piece(std::move(repeat))});
  return check_depth(terms_.back().piece);
}

// -- escapes and classes

Result<uint32_t> Parser::parse_hex(int n_digits) {
  uint32_t value = 0;
  for (int i = 0; i < n_digits; ++i) {
    const int digit = hex_value(look());
    if (digit < 0) return error("a hexadecimal digit is missing");
    value = value << 4 | static_cast<uint32_t>(digit);
    take();
  }
  return value;
}

Result<Atom> Parser::parse_unicode_escape() {
  if (take_if("{")) {
    uint32_t value = 0;
    if (look() == '}') return error("a hexadecimal digit is missing");
    while (!take_if("}")) {
      DI_ASSIGN_OR_RETURN(const uint32_t digit, parse_hex(1));
      value = value << 4 | digit;
      if (value > 0x10FFFF) return error("no such character");
    }
    return Atom{.c = value, .set = {}};
  }
  DI_ASSIGN_OR_RETURN(uint32_t value, parse_hex(4));
  if (value >= 0xD800 && value < 0xDC00 && looks_at("\\u") && !looks_at("\\u{")) {
    const size_t before = at_;
    at_ += 2;
    DI_ASSIGN_OR_RETURN(const uint32_t low, parse_hex(4));
    if (low >= 0xDC00 && low < 0xE000) {
      value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at_ = before;
    }
  }
  return Atom{.c = value, .set = {}};
}

Result<Atom> Parser::parse_property(bool negative) {
  const size_t start = at_ - 2;
  const size_t end = text_.find('}', at_);
  if (!take_if("{") || end == std::string_view::npos) return error_at("\\p needs a property in braces", start);
  const std::string_view name = text_.substr(at_, end - at_);
  const CharSet* const set = unicode_property(name);
  if (set == nullptr) return error_at("the Unicode property " + quoted_for_message(name) + " is not supported", start);
  at_ = end + 1;
  return Atom{.c = 0, .set = negative ? set->others() : *set};
}

Result<Atom> Parser::parse_escape(bool in_class) {
  const size_t start = at_;
  take();
  if (at_ >= text_.size()) return error_at("a backslash at the end", start);
  const uint32_t c = take();
  const auto of_set = [](CharSet set) { return Atom{.c = 0, .set = std::move(set)}; };
  const auto one = [](uint32_t value) { return Atom{.c = value, .set = {}}; };
  switch (c) {
    case 'd':
      return of_set(digit_chars());
    case 'D':
      return of_set(digit_chars().others());
    case 'w':
      return of_set(word_chars());
    case 'W':
      return of_set(word_chars().others());
    case 's':
      return of_set(space_chars());
    case 'S':
      return of_set(space_chars().others());
    case 'f':
      return one('\f');
    case 'n':
      return one('\n');
    case 'r':
      return one('\r');
    case 't':
      return one('\t');
    case 'v':
      return one('\v');
    case 'p':
    case 'P':
      return parse_property(c == 'P');
    case 'c': {
      if (!is_letter(look())) return error_at("\\c needs a letter", start);
      return one(take() & 31);
    }
    case 'x': {
      DI_ASSIGN_OR_RETURN(const uint32_t value, parse_hex(2));
      return one(value);
    }
    case 'u':
      return parse_unicode_escape();
    case 'k':
      return error_at("back-references are not regular", start);
    case '0':
      if (is_digit(look())) return error_at("octal escapes are of another dialect than ECMA-262 with u", start);
      return one(0);
    case 'b':
      if (in_class) return one('\b');
      break;
    default:
      break;
  }
  if (is_digit(c)) return error_at("back-references are not regular", start);
  if (is_letter(c) || c >= 0x80 || c < 0x20) return error_at("no such escape in ECMA-262", start);
  return one(c);
}

Result<Atom> Parser::parse_class_atom() {
  if (look() == '\\') return parse_escape(true);
  return Atom{.c = take(), .set = {}};
}

Result<CharSet> Parser::parse_class() {
  const size_t start = at_;
  take();
  const bool negative = take_if("^");
  std::vector<CharRange> ranges;
  const auto add = [&ranges](const Atom& atom) {
    if (!atom.set.has_value()) {
      ranges.push_back({atom.c, atom.c});
    } else {
      ranges.insert(ranges.end(), atom.set->ranges().begin(), atom.set->ranges().end());
    }
  };
  while (!take_if("]")) {
    if (at_ >= text_.size()) return error_at("this class is not closed", start);
    const size_t first_at = at_;
    DI_ASSIGN_OR_RETURN(const Atom first, parse_class_atom());
    if (!looks_at("-") || looks_at("-]") || at_ + 1 >= text_.size()) {
      add(first);
      continue;
    }
    take();
    DI_ASSIGN_OR_RETURN(const Atom last, parse_class_atom());
    if (first.set.has_value() || last.set.has_value()) {  // [\w-.]: the dash is itself
      add(first);
      add(last);
      ranges.push_back({'-', '-'});
      continue;
    }
    if (first.c > last.c) return error_at("this range is in the wrong order", first_at);
    ranges.push_back({first.c, last.c});
  }
  const CharSet set = CharSet::of(std::move(ranges));
  return negative ? set.others() : set;
}

}  // namespace

Result<Lang> parse_regex(Languages& languages, std::string_view pattern, Match match) {
  Parser parser(languages, pattern);
  DI_RETURN_IF_ERROR(parser.parse());
  return parser.language(match);
}

}  // namespace deepinfer::grammar
