// The parser: an explicit stack of open groups, so that nesting costs no call depth.
#include "grammar/ebnf.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "grammar/char_set.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kBytesMax = size_t{1} << 20;  // of a grammar
constexpr int64_t kCountMax = 1'000'000'000;   // of a repeat
constexpr std::string_view kIs = "::=";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class Parser {
 public:
  Parser(Languages& languages, std::string_view text, Fuel& fuel) : languages_(languages), text_(text), fuel_(fuel) {}

  Result<Ebnf> parse();

 private:
  using Kind = EbnfNode::Kind;
  struct Group {
    size_t first_item, first_alternative;
    size_t at;  // of its bracket, bytes
  };
  struct RuleUse {
    size_t used_at, defined_at;  // kNever
  };
  static constexpr size_t kNever = SIZE_MAX;

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char look() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view name_at(size_t at) const {
    size_t end = at;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    return text_.substr(at, end - at);
  }
  [[nodiscard]] size_t blanks_end(size_t at) const;
  /// A name and `::=`.
  [[nodiscard]] bool at_rule() const {
    const std::string_view name = name_at(at_);
    return !name.empty() && text_.substr(blanks_end(at_ + name.size())).starts_with(kIs);
  }
  [[nodiscard]] Error error_at(std::string_view what, size_t at) const;
  [[nodiscard]] Error error(std::string_view what) const { return error_at(what, at_); }

  Status parse_rule();
  Status parse_element();
  Status close_group();
  Status parse_repeat();
  Result<std::pair<int32_t, int32_t>> parse_counts();
  Result<std::optional<int32_t>> parse_count();
  Status parse_literal();
  Status parse_class();
  Result<uint32_t> parse_class_char(size_t open);
  Result<uint32_t> parse_escape();
  Result<uint32_t> parse_hex(size_t n_digits, size_t from);

  uint32_t rule_number(std::string_view name);
  uint32_t add(EbnfNode node);
  uint32_t add_list(Kind kind, std::vector<uint32_t>& stack, size_t first);
  void push_item(EbnfNode node) {
    items_.push_back(add(node));
    may_repeat_ = true;
  }
  void push_texts(Lang lang) { push_item({.kind = Kind::kTexts, .a = lang}); }
  void end_alternative() {
    alternatives_.push_back(add_list(Kind::kSequence, items_, groups_.back().first_item));
    may_repeat_ = false;
  }

  Languages& languages_;
  std::string_view text_;
  Fuel& fuel_;
  size_t at_ = 0;
  Ebnf out_;
  std::vector<RuleUse> uses_;  // by rule
  std::unordered_map<std::string_view, uint32_t> rule_numbers_;
  std::vector<Group> groups_;           // the rule itself is the first
  std::vector<uint32_t> items_;         // of the open sequences, nodes
  std::vector<uint32_t> alternatives_;  // of the open groups, nodes
  bool may_repeat_ = false;             // the last item has no repeat yet
};

size_t Parser::blanks_end(size_t at) const {
  while (at < text_.size()) {
    if (text_[at] == '#') {
      at = std::min(text_.find('\n', at), text_.size());
    } else if (is_blank(text_[at])) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

Error Parser::error_at(std::string_view what, size_t at) const {
  const std::string_view before = text_.substr(0, std::min(at, text_.size()));
  const auto n_line_ends = std::count(before.begin(), before.end(), '\n');
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto n_chars = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return Error{Code::kInvalidArgument, "line " + std::to_string(n_line_ends + 1) + ", column " +
                                           std::to_string(n_chars + 1) + ": " + std::string(what)};
}

uint32_t Parser::rule_number(std::string_view name) {
  const auto [at, is_new] = rule_numbers_.try_emplace(name, static_cast<uint32_t>(out_.rules.size()));
  if (is_new) {
    out_.rules.push_back({.name = std::string(name)});
    uses_.push_back({kNever, kNever});
  }
  return at->second;
}

uint32_t Parser::add(EbnfNode node) {
  out_.nodes.push_back(node);
  return static_cast<uint32_t>(out_.nodes.size() - 1);
}

/// One node of the stack's end from `first`, which is taken away.
uint32_t Parser::add_list(Kind kind, std::vector<uint32_t>& stack, size_t first) {
  const size_t n = stack.size() - first;
  uint32_t node = 0;
  if (n == 1) {
    node = stack.back();
  } else if (n == 0) {
    node = add({.kind = Kind::kTexts, .a = kEmptyText});
  } else {
    node = add({.kind = kind, .a = static_cast<uint32_t>(out_.parts.size()), .n_parts = static_cast<uint32_t>(n)});
    out_.parts.insert(out_.parts.end(), stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
  }
  stack.resize(first);
  return node;
}

Result<Ebnf> Parser::parse() {
  if (text_.size() > kBytesMax)
    return Error{Code::kInvalidArgument, "the grammar has " + std::to_string(text_.size()) + " bytes; the limit is " +
                                             std::to_string(kBytesMax)};
  if (const auto at = find_ill_formed(text_)) return error_at("not UTF-8", *at);
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  at_ = blanks_end(at_);
  if (at_end()) return error("there is no rule");
  std::optional<uint32_t> first_rule;
  while (!at_end() && !fuel_.empty()) {
    if (!at_rule()) return error("a rule has to begin with its name and ::=");
    if (!first_rule) first_rule = rule_number(name_at(at_));
    DI_RETURN_IF_ERROR(parse_rule());
  }
  if (fuel_.empty()) return std::move(out_);
  size_t first_missing = kNever;
  std::string_view missing;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].defined_at != kNever || uses_[i].used_at >= first_missing) continue;
    first_missing = uses_[i].used_at;
    missing = out_.rules[i].name;
  }
  if (first_missing != kNever) return error_at("there is no rule " + quoted_for_message(missing), first_missing);
  const auto root = rule_numbers_.find("root");
  out_.start = root != rule_numbers_.end() ? root->second : *first_rule;
  return std::move(out_);
}

Status Parser::parse_rule() {
  const size_t defined_at = at_;
  const uint32_t rule = rule_number(name_at(at_));
  if (uses_[rule].defined_at != kNever)
    return error("the rule " + quoted_for_message(out_.rules[rule].name) + " is defined twice");
  uses_[rule].defined_at = defined_at;
  out_.rules[rule].first_node = static_cast<uint32_t>(out_.nodes.size());
  at_ = blanks_end(at_ + out_.rules[rule].name.size()) + kIs.size();
  groups_.assign(1, {0, 0, defined_at});
  items_.clear();
  alternatives_.clear();
  may_repeat_ = false;
  while (fuel_.spend()) {
    at_ = blanks_end(at_);
    if (at_end() || at_rule()) break;
    DI_RETURN_IF_ERROR(parse_element());
  }
  if (fuel_.empty()) return {};
  if (groups_.size() > 1) return error_at("the group is not closed", groups_.back().at);
  end_alternative();
  const uint32_t body = add_list(Kind::kAlternatives, alternatives_, 0);
  out_.rules[rule].body = body;
  return {};
}

Status Parser::parse_element() {
  switch (look()) {
    case '|':
      end_alternative();
      ++at_;
      return {};
    case '(':
      groups_.push_back({items_.size(), alternatives_.size(), at_});
      may_repeat_ = false;
      ++at_;
      return {};
    case ')':
      return close_group();
    case '"':
    case '\'':
      return parse_literal();
    case '[':
      return parse_class();
    case '.':
      push_texts(languages_.chars(CharSet::all()));
      ++at_;
      return {};
    case '*':
    case '+':
    case '?':
    case '{':
      return parse_repeat();
    case '<':
      return error("tokens of the model in < > are not supported");
    default:
      break;
  }
  const std::string_view name = name_at(at_);
  if (name.empty()) {
    const CodePoint c = decode_utf8(text_.data() + at_);
    return error("unexpected " + quoted_for_message(text_.substr(at_, c.n_bytes)));
  }
  const uint32_t rule = rule_number(name);
  if (uses_[rule].used_at == kNever) uses_[rule].used_at = at_;
  push_item({.kind = Kind::kCall, .a = rule});
  at_ += name.size();
  return {};
}

Status Parser::close_group() {
  if (groups_.size() == 1) return error("no group is open here");
  end_alternative();
  const uint32_t node = add_list(Kind::kAlternatives, alternatives_, groups_.back().first_alternative);
  groups_.pop_back();
  items_.push_back(node);
  may_repeat_ = true;
  ++at_;
  return {};
}

Status Parser::parse_repeat() {
  const size_t from = at_;
  if (!may_repeat_) {
    const bool twice = items_.size() > groups_.back().first_item;
    return error(twice ? "two repeats in a row; a group says what is meant" : "nothing stands before the repeat");
  }
  std::pair<int32_t, int32_t> counts = {0, -1};
  switch (text_[at_++]) {
    case '+':
      counts.first = 1;
      break;
    case '?':
      counts.second = 1;
      break;
    case '{': {
      DI_ASSIGN_OR_RETURN(counts, parse_counts());
      break;
    }
    default:
      break;
  }
  if (counts.second >= 0 && counts.first > counts.second) return error_at("the repeat's limits are out of order", from);
  const uint32_t body = items_.back();
  items_.back() = add({.kind = Kind::kRepeat,
                       .a = static_cast<uint32_t>(out_.parts.size()),
                       .n_parts = 1,
                       .min = counts.first,
                       .max = counts.second});
  out_.parts.push_back(body);
  may_repeat_ = false;
  return {};
}

/// `m}`, `m,}`, `,n}` or `m,n}`, blanks anywhere.
Result<std::pair<int32_t, int32_t>> Parser::parse_counts() {
  const size_t open = at_ - 1;
  DI_ASSIGN_OR_RETURN(const std::optional<int32_t> min, parse_count());
  std::optional<int32_t> max = min;
  const bool has_comma = look() == ',';
  if (has_comma) {
    ++at_;
    DI_ASSIGN_OR_RETURN(max, parse_count());
  }
  if (look() != '}' || (!min && !max)) return error_at("a repeat is {m}, {m,}, {,n} or {m,n}", open);
  ++at_;
  return std::pair(min.value_or(0), max.value_or(-1));
}

Result<std::optional<int32_t>> Parser::parse_count() {
  at_ = blanks_end(at_);
  const size_t from = at_;
  int64_t count = 0;
  for (; is_digit(look()); ++at_) {
    count = count * 10 + (look() - '0');
    if (count > kCountMax) return error_at("the count is above " + std::to_string(kCountMax), from);
  }
  const bool is_there = at_ > from;
  at_ = blanks_end(at_);
  if (!is_there) return std::optional<int32_t>();
  return std::optional<int32_t>(static_cast<int32_t>(count));
}

Status Parser::parse_literal() {
  const size_t open = at_;
  const char quote = text_[at_++];
  std::string literal;
  while (look() != quote) {
    if (!fuel_.spend()) return {};
    if (at_end() || look() == '\n') return error_at("the literal is not closed on its line", open);
    if (look() == '\\') {
      DI_ASSIGN_OR_RETURN(const uint32_t c, parse_escape());
      append_utf8(c, literal);
    } else {
      literal += text_[at_++];
    }
  }
  ++at_;
  push_texts(languages_.text(literal));
  return {};
}

Status Parser::parse_class() {
  const size_t open = at_++;
  const bool others = look() == '^';
  if (others) ++at_;
  std::vector<CharRange> ranges;
  while (look() != ']') {
    if (!fuel_.spend()) return {};
    const size_t from = at_;
    DI_ASSIGN_OR_RETURN(const uint32_t first, parse_class_char(open));
    uint32_t last = first;
    if (look() == '-' && !text_.substr(at_ + 1).starts_with("]")) {
      ++at_;
      DI_ASSIGN_OR_RETURN(last, parse_class_char(open));
      if (last < first) return error_at("the range is out of order", from);
    }
    ranges.push_back({first, last});
  }
  ++at_;
  if (ranges.empty() && !others) return error_at("the class is empty", open);
  const CharSet set = CharSet::of(std::move(ranges));
  push_texts(languages_.chars(others ? set.others() : set));
  return {};
}

Result<uint32_t> Parser::parse_class_char(size_t open) {
  if (at_end() || look() == '\n') return error_at("the class is not closed on its line", open);
  if (look() == '\\') return parse_escape();
  const CodePoint c = decode_utf8(text_.data() + at_);
  at_ += c.n_bytes;
  return static_cast<uint32_t>(c.value);
}

Result<uint32_t> Parser::parse_hex(size_t n_digits, size_t from) {
  uint32_t value = 0;
  for (size_t i = 0; i < n_digits; ++i, ++at_) {
    const int digit = hex_value(look());
    if (digit < 0) return error_at("the escape takes " + std::to_string(n_digits) + " hexadecimal digits", from);
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

Result<uint32_t> Parser::parse_escape() {
  const size_t from = at_++;
  if (at_end()) return error_at("the text ends in an escape", from);
  const char kind = text_[at_++];
  constexpr std::string_view kNames = "nrtbfva0";
  constexpr std::string_view kValues("\n\r\t\b\f\v\a\0", 8);
  if (const size_t i = kNames.find(kind); i != std::string_view::npos) {
    if (kind == '0' && is_digit(look())) return error_at("octal escapes are not supported", from);
    return static_cast<uint32_t>(kValues[i]);
  }
  if (is_ascii_punctuation(kind)) return static_cast<uint32_t>(kind);
  if (kind != 'x' && kind != 'u' && kind != 'U') {
    const CodePoint c = decode_utf8(text_.data() + from + 1);
    return error_at("unknown escape " + quoted_for_message(text_.substr(from, 1 + c.n_bytes)), from);
  }
  DI_ASSIGN_OR_RETURN(uint32_t value, parse_hex(kind == 'x' ? 2 : kind == 'u' ? 4 : 8, from));
  if (value >= 0xD800 && value < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
    at_ += 2;
    DI_ASSIGN_OR_RETURN(const uint32_t low, parse_hex(4, from));
    if (low < 0xDC00 || low > 0xDFFF) return error_at("half a pair of surrogates is no character", from);
    return 0x10000 + ((value - 0xD800) << 10 | (low - 0xDC00));
  }
  if (value >= 0xD800 && value <= 0xDFFF) return error_at("half a pair of surrogates is no character", from);
  if (value > 0x10FFFF) return error_at("no character is above U+10FFFF", from);
  return value;
}

}  // namespace

Result<Ebnf> parse_ebnf(Languages& languages, std::string_view text, Fuel& fuel) {
  return Parser(languages, text, fuel).parse();
}

}  // namespace deepinfer::grammar
