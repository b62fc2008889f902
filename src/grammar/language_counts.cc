// How many characters the texts of a language have, and languages that differ only in how many repeats are left.
#include <algorithm>
#include <bit>

#include "grammar/language_store.h"

namespace deepinfer::grammar {
namespace {

constexpr int kTop = 63;  // bit of CharCounts::lengths that stands for all lengths from there on
constexpr uint64_t kTopBit = uint64_t{1} << kTop;
constexpr int32_t kCharsMax = 1 << 20;
constexpr int32_t kNotKnown = -1;
constexpr uint32_t kPartsMax = 256;  // of a union that is rounded

/// All lengths from here on; kTop + 1: not so from anywhere.
int all_from(uint64_t lengths) { return kTop + 1 - std::countl_one(lengths); }
uint64_t from_on(int length) { return ~uint64_t{0} << length; }

/// Of one text behind another.
CharCounts sum(const CharCounts& a, const CharCounts& b) {
  if (a.min < 0 || b.min < 0) return {0, kNotKnown};
  CharCounts both{0, std::min(a.min + b.min, kCharsMax)};
  for (uint64_t left = a.lengths & ~kTopBit; left != 0; left &= left - 1)
    both.lengths |= (b.lengths & ~kTopBit) << std::countr_zero(left) & ~kTopBit;
  for (const int from : {all_from(a.lengths) + b.min, all_from(b.lengths) + a.min})
    if (from <= kTop) both.lengths |= from_on(from);
  return both;
}

CharCounts repeated(const CharCounts& one, int32_t min, int32_t max) {
  if (one.min < 0) return {0, kNotKnown};
  CharCounts all{0, static_cast<int32_t>(std::min<int64_t>(int64_t{one.min} * min, kCharsMax))};
  if (min > kTop) return all;
  CharCounts now{1, 0};  // of n repeats
  for (int32_t n = 0; n <= min + kTop; ++n) {
    if (n >= min) all.lengths |= now.lengths;
    if (n == max) return all;
    now = sum(now, one);
  }
  // So many lengths in a row, and one more repeat of that length: all longer ones, too.
  const uint64_t more = one.lengths & ~kTopBit & ~uint64_t{1};
  if (max >= 0 || more == 0) return all;
  const int step = std::countr_zero(more);
  for (int from = 0; from + step <= kTop; ++from) {
    const uint64_t row = ((uint64_t{1} << step) - 1) << from;
    if ((all.lengths & row) != row) continue;
    all.lengths |= from_on(from);
    break;
  }
  return all;
}

}  // namespace

CharCounts LanguageStore::char_counts(Lang lang) {
  const auto known = counts_.find(lang);
  if (known != counts_.end()) return known->second;
  const ExprNode node = at(lang);
  CharCounts result{0, kNotKnown};
  const auto exactly = [](int32_t n) { return CharCounts{n < kTop ? uint64_t{1} << n : 0, n}; };
  switch (node.kind) {
    case Kind::kEmptyText:
      result = exactly(0);
      break;
    case Kind::kAnyText:
      result = {~uint64_t{0}, 0};
      break;
    case Kind::kBytes: {
      const ByteSet& set = sets_[node.a];
      const ByteSet inside = ByteSet::range(0x80, 0xBF);  // of characters
      if ((set & inside) == set) result = exactly(0);
      if ((set & inside).empty()) result = exactly(1);
      break;
    }
    case Kind::kText:
      result = exactly(static_cast<int32_t>(
          std::ranges::count_if(text_of(node), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; })));
      break;
    case Kind::kChars:
      result = exactly(node.c == 0 ? 1 : 0);
      break;
    case Kind::kConcat: {
      std::vector<Lang> heads;
      Lang tail = lang;
      for (; kind(tail) == Kind::kConcat && !counts_.contains(tail); tail = at(tail).b) heads.push_back(tail);
      result = char_counts(tail);
      for (size_t i = heads.size(); i-- > 0;) {
        result = sum(char_counts(at(heads[i]).a), result);
        if (i > 0) keep_counts(heads[i], result);
      }
      break;
    }
    case Kind::kUnion:
      result = char_counts(lists_[node.a]);
      for (uint32_t i = 1; i < node.b && result.min >= 0; ++i) {
        const CharCounts part = char_counts(lists_[node.a + i]);
        result = part.min < 0 ? part : CharCounts{result.lengths | part.lengths, std::min(result.min, part.min)};
      }
      break;
    case Kind::kRepeat:
      result = repeated(char_counts(node.a), node.c, node.d);
      break;
    default:
      break;
  }
  keep_counts(lang, result);
  return result;
}

void LanguageStore::keep_counts(Lang lang, const CharCounts& counts) {
  counts_.emplace(lang, counts);
  count_bytes(kMapEntry + sizeof(CharCounts));
}

int32_t LanguageStore::chars_at_least(Lang lang) {
  const CharCounts counts = char_counts(lang);
  return counts.min >= 0 && all_from(counts.lengths) <= counts.min ? counts.min : -1;
}

bool LanguageStore::is_one_char(Lang lang) {
  const CharCounts counts = char_counts(lang);
  return counts.min == 1 && counts.lengths == 2 && leads_to(at(lang).utf8, kBetween) == kBetween;
}

// -- limits apart

std::optional<Languages::Counted> LanguageStore::counted(Lang lang) {
  const ExprNode node = at(lang);
  if (node.kind == Kind::kRepeat && (node.c > 0 || node.d >= 0) && is_one_char(node.a)) {
    return Languages::Counted{repeat(node.a, 0, -1), node.c, node.d};
  }
  if (node.kind != Kind::kCommon) return std::nullopt;
  const size_t mark = scratch_.size();
  std::optional<Languages::Counted> found;
  for (uint32_t i = 0; i < node.b; ++i) {
    const Lang part = lists_[node.a + i];
    const ExprNode& x = at(part);
    if (!found && x.kind == Kind::kRepeat && x.a == any_char_) {
      found = Languages::Counted{kNothing, x.c, x.d};
    } else {
      scratch_.push_back(part);
    }
  }
  if (!found) {
    scratch_.resize(mark);
    return std::nullopt;
  }
  found->body = intersect_from(mark);
  if (const auto inner = counted(found->body)) {
    found->body = inner->body;
    found->min = std::max(found->min, inner->min);
    if (found->max < 0 || (inner->max >= 0 && inner->max < found->max)) found->max = inner->max;
  }
  return found;
}

// -- rounded counts

/// A language with all texts of `lang` (up) or with none but those, for which counts from `n` on are the same.
Lang LanguageStore::rounded(Lang lang, int32_t n, bool up) {
  const ExprNode node = at(lang);
  const bool has_parts = node.kind == Kind::kConcat || node.kind == Kind::kUnion || node.kind == Kind::kCommon;
  if (!has_parts && node.kind != Kind::kRepeat) return lang;
  if (node.kind != Kind::kConcat && has_parts && node.b > kPartsMax) return lang;
  const uint64_t key = (uint64_t{lang} << 1 | (up ? 1 : 0)) << 16 | static_cast<uint32_t>(n);
  if (const auto known = rounded_.find(key); known != rounded_.end()) return known->second;
  Lang result = kNothing;
  if (node.kind == Kind::kRepeat) {
    const Lang body = rounded(node.a, n, up);
    const int32_t limit = is_one_char(node.a) ? kCharsOfToken : n;
    int32_t min = node.c, max = node.d;
    if (up) {
      min = std::min(min, limit);
      if (max >= limit) max = -1;
    } else if (min > limit) {
      const auto more = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::min(min, kCharsMax))));
      if (more >= min && (max < 0 || max >= more)) {
        min = more;
        if (max >= 0) max = more;
      }
    } else if (max > limit) {
      max = limit;
    }
    result = repeat(body, min, max);
  } else {
    std::vector<Lang> parts;
    if (node.kind == Kind::kConcat) {
      for (Lang rest = lang;; rest = at(rest).b) {
        parts.push_back(kind(rest) == Kind::kConcat ? at(rest).a : rest);
        if (kind(rest) != Kind::kConcat) break;
      }
    } else {
      const std::span<const Lang> list = list_of(node);
      parts.assign(list.begin(), list.end());
    }
    for (Lang& part : parts) part = rounded(part, n, up);
    result = node.kind == Kind::kConcat ? concat(parts) : node.kind == Kind::kUnion ? unite(parts) : intersect(parts);
  }
  rounded_.emplace(key, result);
  count_bytes(kMapEntry);
  return result;
}

Languages::Bounds LanguageStore::bounds(Lang lang, int32_t n) {
  if (n_bytes_ > n_bytes_max_ / 2) return {lang, lang};  // what is left is for what must be known
  const Languages::Bounds bounds{rounded(lang, n, false), rounded(lang, n, true)};
  return is_empty(bounds.low) ? Languages::Bounds{lang, lang} : bounds;
}

// -- searches for a pattern

bool LanguageStore::is_open(Lang lang) const {
  const ExprNode& node = at(lang);
  if (node.kind == Kind::kUnion || node.kind == Kind::kCommon)
    return std::ranges::all_of(list_of(node), [this](Lang part) { return is_open(part); });
  if (node.kind == Kind::kRepeat) return node.a == any_char_ && node.d < 0;
  while (kind(lang) == Kind::kConcat) lang = at(lang).b;
  return lang == kAnyText;
}

bool LanguageStore::takes_every_text(Lang lang) const {
  const ExprNode& node = at(lang);
  const auto takes = [this](Lang part) { return takes_every_text(part); };
  switch (node.kind) {
    case Kind::kAnyText:
      return true;
    case Kind::kConcat:
      return node.a == kAnyText && has(lang, kNonEmpty);
    case Kind::kRepeat:
      return (node.a == any_char_ && node.d < 0) || takes(node.a);
    case Kind::kUnion:
      return std::ranges::any_of(list_of(node), takes);
    case Kind::kCommon:  // what the open ones want is written first, and stays
      return std::ranges::all_of(list_of(node), takes) &&
             std::ranges::count_if(list_of(node), [this](Lang part) { return !is_open(part); }) <= 1;
    default:
      return false;
  }
}

}  // namespace deepinfer::grammar
