#include "grammar/schema_values.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "grammar/formats.h"
#include "grammar/numbers.h"
#include "grammar/regex.h"
#include "grammar/schema_uri.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

using json::Kind;
using json::Value;

constexpr int32_t kTrieDepthMax = 64;  // of enums; what shares more prefixes of prefixes is a plain union

struct TypeName {
  std::string_view name;
  uint8_t bits;
};
constexpr TypeName kTypes[] = {
    {"string", kStringBit}, {"object", kObjectBit},   {"integer", kNumberBit}, {"number", kNumberBit},
    {"array", kArrayBit},   {"boolean", kBooleanBit}, {"null", kNullBit},
};

uint8_t type_of(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return kNullBit;
    case Kind::kBool:
      return kBooleanBit;
    case Kind::kNumber:
      return kNumberBit;
    case Kind::kString:
      return kStringBit;
    case Kind::kArray:
      return kArrayBit;
    case Kind::kObject:
      return kObjectBit;
  }
  return 0;
}

enum class CountKind : uint8_t { kCount, kNegative, kFraction, kHuge };

/// A JSON number as a whole number from 0 below 10^18: 2, 2.0 and 20e-1 are 2.
CountKind to_count(std::string_view spelling, int64_t& count) {
  const bool negative = spelling.starts_with('-');
  if (negative) spelling.remove_prefix(1);
  const size_t e = std::min(spelling.find_first_of("eE"), spelling.size());
  int64_t exponent = 0;
  if (e < spelling.size()) {
    std::string_view text = spelling.substr(e + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (error != std::errc()) exponent = text.starts_with('-') ? -1'000'000'000 : 1'000'000'000;
    exponent = std::clamp<int64_t>(exponent, -1'000'000'000, 1'000'000'000);
  }
  std::string digits;
  bool behind_point = false;
  for (const char c : spelling.substr(0, e)) {
    if (c == '.') {
      behind_point = true;
      continue;
    }
    if (behind_point) --exponent;
    if (c != '0' || !digits.empty()) digits += c;
  }
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++exponent;
  }
  count = 0;
  if (digits.empty()) return CountKind::kCount;
  if (negative) return CountKind::kNegative;
  if (exponent < 0) return CountKind::kFraction;
  if (static_cast<int64_t>(digits.size()) + exponent > 18) return CountKind::kHuge;
  digits.append(static_cast<size_t>(exponent), '0');
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return CountKind::kCount;
}

/// The union of literals as a trie over characters, so that a walk looks at each only as long as it fits.
class TextUnion {
 public:
  TextUnion(Languages& languages, Fuel& fuel) : languages_(languages), fuel_(fuel) {}

  /// `texts`: ascending, each once.
  Lang build(std::span<const std::string_view> texts, size_t n_shared = 0, int32_t depth = 0) {
    fuel_.spend(static_cast<int64_t>(texts.size()));
    if (texts.size() == 1) return languages_.text(texts[0].substr(n_shared));
    if (depth == kTrieDepthMax) return plain(texts, n_shared);
    const size_t n_common = common_prefix(texts, n_shared);
    std::vector<Lang> branches;
    size_t first = 0;
    if (texts[0].size() == n_common) {
      branches.push_back(kEmptyText);
      first = 1;
    }
    while (first < texts.size()) {
      const size_t n_bytes = next_utf8(texts[first].substr(n_common)).n_bytes;
      const std::string_view head = texts[first].substr(n_common, n_bytes);
      size_t last = first + 1;
      while (last < texts.size() && texts[last].substr(n_common).starts_with(head)) ++last;
      branches.push_back(build(texts.subspan(first, last - first), n_common, depth + 1));
      first = last;
    }
    const Lang parts[] = {languages_.text(texts[0].substr(n_shared, n_common - n_shared)), languages_.any_of(branches)};
    return languages_.concat(parts);
  }

 private:
  Lang plain(std::span<const std::string_view> texts, size_t n_shared) {
    std::vector<Lang> parts;
    for (const std::string_view text : texts) parts.push_back(languages_.text(text.substr(n_shared)));
    return languages_.any_of(parts);
  }

  /// Bytes that all share, to the end of a character. The first and the last of a sorted range differ soonest.
  static size_t common_prefix(std::span<const std::string_view> texts, size_t from) {
    const std::string_view a = texts.front(), b = texts.back();
    size_t n = from;
    while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
    while (n > from && n < b.size() && (static_cast<unsigned char>(b[n]) & 0xC0) == 0x80) --n;
    return n;
  }

  Languages& languages_;
  Fuel& fuel_;
};

}  // namespace

bool ReadContext::refuse(std::string pointer, std::string_view keyword, std::string reason) {
  if (!refusal) refusal = Refusal{std::move(pointer), std::string(keyword), std::move(reason)};
  return false;
}

std::string keyword_pointer(const std::string& pointer, Keyword keyword) {
  std::string out = pointer;
  append_pointer_token(keyword_name(keyword), out);
  return out;
}

bool ValueReader::read(const KeywordValues& keywords, const DialectRules& rules, Node& node, ConstantNodes& constants) {
  NumberSyntax syntax = NumberSyntax::kAny;
  if (!read_types(keywords[Keyword::kType], rules, node, syntax)) return false;
  Parts texts;
  if (const Value* format = keywords[Keyword::kFormat]) {
    if (!read_format(*format, rules, node, texts)) return false;
  }
  if ((node.types & kStringBit) != 0 && !read_strings(keywords, node, texts)) return false;
  if ((node.types & kNumberBit) != 0 && !read_numbers(keywords, rules, syntax, node)) return false;
  if (const Value* value = keywords[Keyword::kEnum]) {
    if (!value->is(Kind::kArray))
      return context_.refuse(keyword_pointer(node.pointer, Keyword::kEnum), "enum", "enum is not an array");
    std::vector<const Value*> values;
    values.reserve(value->items.size());
    for (const Value& item : value->items) values.push_back(&item);
    if (!restrict_to(values, Keyword::kEnum, node, constants)) return false;
  }
  if (const Value* value = keywords[Keyword::kConst]) return restrict_to({value}, Keyword::kConst, node, constants);
  return true;
}

void ValueReader::Parts::add(Lang lang, std::optional<Lang> at_most) {
  surely.push_back(lang);
  maybe.push_back(at_most.value_or(lang));
  is_exact = is_exact && !at_most;
}

Lang ValueReader::Parts::all_surely(Languages& languages) const {
  return surely.size() == 1 ? surely[0] : languages.all_of(surely);
}

std::optional<Lang> ValueReader::Parts::all_at_most(Languages& languages) const {
  if (is_exact) return std::nullopt;
  return maybe.size() == 1 ? maybe[0] : languages.all_of(maybe);
}

bool ValueReader::read_types(const Value* type, const DialectRules& rules, Node& node, NumberSyntax& syntax) {
  if (type == nullptr) return true;
  const auto refuse = [&](std::string why) {
    return context_.refuse(keyword_pointer(node.pointer, Keyword::kType), "type", std::move(why));
  };
  uint8_t bits = 0;
  bool integer = false, number = false;
  const auto add = [&](const Value& name) {
    const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const TypeName& known) { return known.name == name.text; });
    if (!name.is(Kind::kString) || found == std::end(kTypes)) return false;
    integer |= found->name == "integer";
    number |= found->name == "number";
    bits |= found->bits;
    return true;
  };
  if (type->is(Kind::kString)) {
    if (!add(*type)) return refuse(quoted_for_message(type->text) + " is no type");
  } else {
    if (!type->is(Kind::kArray)) return refuse("type is neither a name nor an array of names");
    for (const Value& name : type->items) {
      if (!add(name)) return refuse(quoted_for_message(json::to_string(name, json::Style::kCompact)) + " is no type");
    }
  }
  if (integer && !number)
    syntax = rules.dialect == Dialect::kDraft4 ? NumberSyntax::kIntegerDigits : NumberSyntax::kInteger;
  node.types &= bits;
  return true;
}

// -- strings

bool ValueReader::read_strings(const KeywordValues& keywords, Node& node, Parts& parts) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  int64_t min_length = 0, max_length = -1;
  if (!read_count(keywords, Keyword::kMinLength, node, kLimit, min_length) ||
      !read_count(keywords, Keyword::kMaxLength, node, kLimit, max_length))
    return false;
  node.min_length = static_cast<int32_t>(min_length);
  node.max_length = static_cast<int32_t>(max_length);

  if (const Value* value = keywords[Keyword::kPattern]) {
    std::string pointer = keyword_pointer(node.pointer, Keyword::kPattern);
    if (!value->is(Kind::kString)) return context_.refuse(std::move(pointer), "pattern", "pattern is not a string");
    const auto lang = pattern(value->text, pointer, Keyword::kPattern);
    if (!lang) return false;
    parts.add(*lang);
  }
  if (!parts.surely.empty()) node.text = parts.all_surely(context_.languages);
  node.text_at_most = parts.all_at_most(context_.languages);
  return true;
}

/// Appends the language of an asserted format; notes one that is none, whatever types are allowed.
bool ValueReader::read_format(const Value& format, const DialectRules& rules, const Node& node, Parts& parts) {
  std::string pointer = keyword_pointer(node.pointer, Keyword::kFormat);
  if (!format.is(Kind::kString)) return context_.refuse(std::move(pointer), "format", "format is not a string");
  auto found = formats_.find(format.text);
  if (found == formats_.end())
    found = formats_
                .emplace(format.text, Format{format_language(context_.languages, format.text),
                                             format_at_most(context_.languages, format.text)})
                .first;
  if (!found->second.surely) {
    context_.ignored.push_back({std::move(pointer), "format"});
  } else if (context_.options.formats == FormatPolicy::kAssert || rules.asserts_format) {
    parts.add(*found->second.surely, found->second.at_most);
  }
  return true;
}

std::optional<Lang> ValueReader::pattern(const std::string& text, const std::string& pointer, Keyword keyword) {
  if (const auto found = patterns_.find(text); found != patterns_.end()) return found->second;
  context_.fuel.spend(static_cast<int64_t>(text.size()));
  const auto parsed = parse_regex(context_.languages, text, Match::kSearch);
  if (!parsed) {
    context_.refuse(pointer, keyword_name(keyword), parsed.error().message);
    return std::nullopt;
  }
  patterns_.emplace(text, *parsed);
  return *parsed;
}

// -- numbers

bool ValueReader::read_count(const KeywordValues& keywords, Keyword keyword, const Node& node, int64_t limit,
                             int64_t& count) {
  const Value* value = keywords[keyword];
  if (value == nullptr) return true;
  const std::string name(keyword_name(keyword));
  const auto refuse = [&](std::string_view why) {
    return context_.refuse(keyword_pointer(node.pointer, keyword), name, name + std::string(why));
  };
  if (!value->is(Kind::kNumber)) return refuse(" is not a number");
  const CountKind kind = to_count(value->text, count);
  if (kind == CountKind::kNegative) return refuse(" is negative");
  if (kind == CountKind::kFraction) return refuse(" is not a whole number");
  if (kind == CountKind::kHuge || count > limit) {
    if (name.starts_with("min")) return refuse(" is above " + std::to_string(limit));
    count = limit;
  }
  return true;
}

bool ValueReader::read_limit(const KeywordValues& keywords, Keyword keyword, const Node& node,
                             std::string_view& limit) {
  const Value* value = keywords[keyword];
  if (value == nullptr) return true;
  const std::string name(keyword_name(keyword));
  if (!value->is(Kind::kNumber))
    return context_.refuse(keyword_pointer(node.pointer, keyword), name, name + " is not a number");
  limit = value->text;
  return true;
}

bool ValueReader::read_numbers(const KeywordValues& keywords, const DialectRules& rules, NumberSyntax syntax,
                               Node& node) {
  NumberLimits limits;
  NumberLimits exclusive;  // of those dialects where both kinds may stand side by side
  if (!read_limit(keywords, Keyword::kMinimum, node, limits.minimum) ||
      !read_limit(keywords, Keyword::kMaximum, node, limits.maximum) ||
      !read_limit(keywords, Keyword::kMultipleOf, node, limits.multiple_of))
    return false;
  if (!limits.multiple_of.empty()) {
    const std::string_view mantissa = limits.multiple_of.substr(0, limits.multiple_of.find_first_of("eE"));
    if (mantissa.starts_with('-') || mantissa.find_first_of("123456789") == std::string_view::npos)
      return context_.refuse(keyword_pointer(node.pointer, Keyword::kMultipleOf), "multipleOf",
                             "multipleOf is not above 0");
  }
  if (rules.dialect == Dialect::kDraft4) {
    for (const Keyword keyword : {Keyword::kExclusiveMinimum, Keyword::kExclusiveMaximum}) {
      const Value* value = keywords[keyword];
      if (value == nullptr) continue;
      if (!value->is(Kind::kBool))
        return context_.refuse(keyword_pointer(node.pointer, keyword), keyword_name(keyword),
                               std::string(keyword_name(keyword)) + " is not a boolean, as draft-04 wants");
      (keyword == Keyword::kExclusiveMinimum ? limits.exclusive_minimum : limits.exclusive_maximum) = value->boolean;
    }
  } else if (!read_limit(keywords, Keyword::kExclusiveMinimum, node, exclusive.minimum) ||
             !read_limit(keywords, Keyword::kExclusiveMaximum, node, exclusive.maximum)) {
    return false;
  }
  const auto move_over = [](std::string_view& from, std::string_view& to, bool& to_exclusive) {
    if (from.empty() || !to.empty()) return;
    to = std::exchange(from, {});
    to_exclusive = true;
  };
  move_over(exclusive.minimum, limits.minimum, limits.exclusive_minimum);
  move_over(exclusive.maximum, limits.maximum, limits.exclusive_maximum);
  exclusive.exclusive_minimum = exclusive.exclusive_maximum = true;
  limits.integer = syntax != NumberSyntax::kAny;

  Parts parts;
  if (!add_limits(limits, node, parts) || !add_limits(exclusive, node, parts)) return false;
  if (syntax == NumberSyntax::kIntegerDigits) parts.add(integer_digits());
  if (!parts.surely.empty()) node.number = parts.all_surely(context_.languages);
  node.number_at_most = parts.all_at_most(context_.languages);
  return true;
}

/// Appends the language of `limits` if they limit anything.
bool ValueReader::add_limits(const NumberLimits& limits, const Node& node, Parts& parts) {
  if (has_every_spelling(limits)) return true;
  std::string key;
  for (const std::string_view text : {limits.minimum, limits.maximum, limits.multiple_of}) key.append(text).append(" ");
  for (const bool flag : {limits.exclusive_minimum, limits.exclusive_maximum, limits.integer}) key += flag ? '1' : '0';
  if (const auto found = limits_.find(key); found != limits_.end()) {
    parts.add(found->second, with_exponents(found->second));
    return true;
  }
  const auto lang = number_language(context_.languages, limits);
  if (lang) {
    limits_.emplace(std::move(key), *lang);
    parts.add(*lang, with_exponents(*lang));
    return true;
  }
  // All are well-formed, so what is too much for an automaton is multipleOf, if there is one.
  Keyword blamed = Keyword::kType;
  if (!limits.maximum.empty()) blamed = limits.exclusive_maximum ? Keyword::kExclusiveMaximum : Keyword::kMaximum;
  if (!limits.minimum.empty()) blamed = limits.exclusive_minimum ? Keyword::kExclusiveMinimum : Keyword::kMinimum;
  if (!limits.multiple_of.empty()) blamed = Keyword::kMultipleOf;
  return context_.refuse(keyword_pointer(node.pointer, blamed), keyword_name(blamed), lang.error().message);
}

/// All spellings of the numbers of `some`, and of others.
Lang ValueReader::with_exponents(Lang some) {
  if (!exponents_) exponents_ = numbers_with_exponent(context_.languages);
  const Lang both[] = {some, *exponents_};
  return context_.languages.any_of(both);
}

/// Integers as draft-04 has them: 1.0 and 1e0 are none.
Lang ValueReader::integer_digits() {
  if (integer_digits_) return *integer_digits_;
  Languages& languages = context_.languages;
  const Lang minus = languages.repeat(languages.text("-"), 0, 1);
  const Lang more[] = {languages.bytes('1', '9'), languages.repeat(languages.bytes('0', '9'), 0, -1)};
  const Lang whole[] = {languages.text("0"), languages.concat(more)};
  const Lang parts[] = {minus, languages.any_of(whole)};
  integer_digits_ = languages.concat(parts);
  return *integer_digits_;
}

// -- enum and const

struct ValueReader::Scalars {
  uint8_t types = 0;
  bool has_true = false, has_false = false;
  std::vector<std::string_view> texts, numbers;

  void add(const Value& value) {
    types |= type_of(value);
    if (value.is(Kind::kBool)) (value.boolean ? has_true : has_false) = true;
    if (value.is(Kind::kString)) texts.push_back(value.text);
    if (value.is(Kind::kNumber)) numbers.push_back(value.text);
  }
};

bool ValueReader::restrict_to_scalar(const Value& value, Node& node) {
  Scalars scalars;
  scalars.add(value);
  return apply_scalars(scalars, node);
}

bool ValueReader::restrict_to(const std::vector<const Value*>& values, Keyword keyword, Node& node,
                              ConstantNodes& constants) {
  Scalars scalars;
  std::vector<NodeId> group;
  uint8_t types = 0;
  const std::string pointer = keyword_pointer(node.pointer, keyword);
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = *values[i];
    if ((type_of(value) & node.types) == 0) continue;
    types |= type_of(value);
    if (!value.is(Kind::kArray) && !value.is(Kind::kObject)) {
      scalars.add(value);
      continue;
    }
    std::string place = pointer;
    if (keyword == Keyword::kEnum) append_pointer_token(std::to_string(i), place);
    group.push_back(constants.add_constant(value, std::move(place)));
  }
  context_.fuel.spend(static_cast<int64_t>(values.size()));
  if (group.empty()) return apply_scalars(scalars, node);
  node.types &= types;
  if (scalars.types != 0) {
    Node alone;
    alone.pointer = pointer;
    if (!apply_scalars(scalars, alone)) return false;
    group.push_back(constants.add_node(std::move(alone)));
  }
  node.any_of.push_back(std::move(group));
  return true;
}

bool ValueReader::apply_scalars(Scalars& scalars, Node& node) {
  Languages& languages = context_.languages;
  node.types &= scalars.types;
  node.may_be_true &= scalars.has_true;
  node.may_be_false &= scalars.has_false;
  if ((node.types & kStringBit) != 0) {
    const Lang texts = union_of_texts(std::move(scalars.texts));
    const Lang both[] = {node.text, texts};
    node.text = node.text == kAnyText ? texts : languages.all_of(both);
    if (node.text_at_most) {
      const Lang at_most[] = {*node.text_at_most, texts};
      node.text_at_most = languages.all_of(at_most);
    }
  }
  if ((node.types & kNumberBit) == 0) return true;
  std::vector<Lang> parts;
  for (const std::string_view spelling : scalars.numbers) {
    auto found = equal_numbers_.find(spelling);
    if (found == equal_numbers_.end()) {
      const auto lang = number_equal_to(languages, spelling);
      if (!lang) return context_.refuse(node.pointer, "enum", lang.error().message);
      found = equal_numbers_.emplace(spelling, *lang).first;
    }
    parts.push_back(found->second);
  }
  const Lang numbers = parts.size() == 1 ? parts[0] : languages.any_of(parts);
  const Lang more = with_exponents(numbers);
  const Lang at_most[] = {node.number_at_most.value_or(more), more};
  node.number_at_most = parts.empty() ? std::nullopt : std::optional(languages.all_of(at_most));
  const Lang both[] = {node.number.value_or(numbers), numbers};
  node.number = node.number ? languages.all_of(both) : numbers;
  return true;
}

Lang ValueReader::union_of_texts(std::vector<std::string_view> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return TextUnion(context_.languages, context_.fuel).build(texts);
}

}  // namespace deepinfer::grammar
