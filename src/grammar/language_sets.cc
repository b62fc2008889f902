// Unions, intersections and "exactly one", and sets of characters.
#include <algorithm>
#include <string>
#include <tuple>

#include "grammar/language_store.h"
#include "text/utf8.h"

namespace deepinfer::grammar {

Lang LanguageStore::unite(std::span<const Lang> parts) {
  const size_t mark = scratch_.size();
  scratch_.insert(scratch_.end(), parts.begin(), parts.end());
  return unite_from(mark);
}

Lang LanguageStore::intersect(std::span<const Lang> parts) {
  const size_t mark = scratch_.size();
  scratch_.insert(scratch_.end(), parts.begin(), parts.end());
  return parts.empty() ? kAnyText : intersect_from(mark);
}

Lang LanguageStore::exactly_one(std::span<const Lang> parts) {
  const size_t mark = scratch_.size();
  scratch_.insert(scratch_.end(), parts.begin(), parts.end());
  return one_from(mark);
}

// -- union

Lang LanguageStore::unite_from(size_t mark, int depth) {
  if (exhausted()) {
    scratch_.resize(mark);
    return kNothing;
  }
  bool has_empty = false;
  if (!flatten_union(mark, has_empty)) {
    scratch_.resize(mark);
    return kEverything;
  }
  if (scratch_.size() > mark + 1) {
    absorb_in_residuals(mark, has_empty);
    merge_bytes(mark);
    merge_chars(mark);
    sort_union(mark);
    absorb_common(mark);
    merge_heads(mark, depth, has_empty);
    factor_texts(mark, depth);
  }
  const Lang all = finish_union(mark);
  if (!has_empty || all == kNothing) return has_empty && !exhausted() ? kEmptyText : all;
  return nullable(all) ? all : repeat(all, 0, 1);
}

/// Parts of unions and of x? become parts; false: a part is everything.
bool LanguageStore::flatten_union(size_t mark, bool& has_empty) {
  for (size_t i = mark; i < scratch_.size();) {
    const Lang part = live(scratch_[i]);
    const ExprNode& node = at(part);
    if (node.kind == Kind::kAllBytes) return false;
    if (node.kind == Kind::kRepeat && node.c == 0 && node.d == 1) {
      has_empty = true;
      scratch_[i] = node.a;
    } else if (node.kind == Kind::kUnion) {
      scratch_[i] = lists_[node.a];
      scratch_.insert(scratch_.end(), lists_.begin() + node.a + 1, lists_.begin() + node.a + node.b);
    } else if (part == kNothing || part == kEmptyText) {
      has_empty = has_empty || part == kEmptyText;
      scratch_[i] = scratch_.back();
      scratch_.pop_back();
    } else {
      ++i;
    }
  }
  return true;
}

/// Where "any text from UTF-8 state s on" is a part, all other texts from s on are in it.
void LanguageStore::absorb_in_residuals(size_t mark, bool& has_empty) {
  uint32_t states = 0;
  for (size_t i = mark; i < scratch_.size(); ++i) {
    if (at(scratch_[i]).residual != kIllFormed) states |= 1U << at(scratch_[i]).residual;
  }
  if (states == 0) return;
  if ((states & 1) != 0) has_empty = false;
  const auto absorbed = [this, states](Lang part) {
    const ExprNode& node = at(part);
    if (node.residual != kIllFormed) return false;
    for (Utf8State s = 0; s < kNumUtf8States; ++s) {
      if ((states >> s & 1) != 0 && leads_to(node.utf8, s) == kBetween) return true;
    }
    return false;
  };
  scratch_.erase(std::remove_if(scratch_.begin() + static_cast<ptrdiff_t>(mark), scratch_.end(), absorbed),
                 scratch_.end());
}

/// All single bytes become one set.
void LanguageStore::merge_bytes(size_t mark) {
  const auto is_byte = [this](Lang part) {
    const ExprNode& node = at(part);
    return node.kind == Kind::kBytes || (node.kind == Kind::kText && node.b == 1);
  };
  const auto begin = scratch_.begin() + static_cast<ptrdiff_t>(mark);
  if (std::count_if(begin, scratch_.end(), is_byte) < 2) return;
  ByteSet set;
  for (auto i = begin; i != scratch_.end(); ++i) {
    const ExprNode& node = at(*i);
    if (!is_byte(*i)) continue;
    if (node.kind == Kind::kBytes) {
      set = set | sets_[node.a];
    } else {
      set.add(static_cast<uint8_t>(text_[node.a]));
    }
  }
  scratch_.erase(std::remove_if(begin, scratch_.end(), is_byte), scratch_.end());
  scratch_.push_back(bytes(set));
}

/// All sets of characters outside ASCII become one.
void LanguageStore::merge_chars(size_t mark) {
  const auto is_chars = [this](Lang part) { return kind(part) == Kind::kChars && at(part).c == 0; };
  const auto begin = scratch_.begin() + static_cast<ptrdiff_t>(mark);
  if (std::count_if(begin, scratch_.end(), is_chars) < 2) return;
  CharSet set;
  for (auto i = begin; i != scratch_.end(); ++i) {
    if (is_chars(*i)) set = set.united(char_sets_[at(*i).a]);
  }
  scratch_.erase(std::remove_if(begin, scratch_.end(), is_chars), scratch_.end());
  ExprNode node;
  node.kind = Kind::kChars;
  node.a = char_set_index(std::move(set));
  scratch_.push_back(intern(node));
}

bool LanguageStore::begins_with_text(Lang lang) const {
  const ExprNode& node = at(lang);
  return node.kind == Kind::kText || (node.kind == Kind::kConcat && kind(node.a) == Kind::kText);
}

std::string_view LanguageStore::leading_text(Lang lang) const {
  const ExprNode& node = at(lang);
  return text_of(node.kind == Kind::kText ? node : at(node.a));
}

/// Order of the parts of a union: texts behind all others, by their bytes.
bool LanguageStore::text_before(Lang x, Lang y) const {
  const bool x_text = begins_with_text(x);
  if (x_text != begins_with_text(y)) return !x_text;
  if (!x_text) return x < y;
  const int order = leading_text(x).compare(leading_text(y));
  return order != 0 ? order < 0 : x < y;
}

void LanguageStore::sort_union(size_t mark) {
  const auto begin = scratch_.begin() + static_cast<ptrdiff_t>(mark);
  const auto before = [this](Lang x, Lang y) { return text_before(x, y); };
  if (!std::is_sorted(begin, scratch_.end(), before)) std::sort(begin, scratch_.end(), before);
  scratch_.erase(std::unique(begin, scratch_.end()), scratch_.end());
}

/// A | (A & B) = A
void LanguageStore::absorb_common(size_t mark) {
  constexpr size_t kMax = 32;  // parts looked at
  if (scratch_.size() - mark > kMax) return;
  const auto begin = scratch_.begin() + static_cast<ptrdiff_t>(mark);
  const auto absorbed = [this, mark](Lang part) {
    if (kind(part) != Kind::kCommon) return false;
    const std::span<const Lang> factors = list_of(at(part));
    return std::any_of(scratch_.begin() + static_cast<ptrdiff_t>(mark), scratch_.end(), [factors, part](Lang other) {
      return other != part && std::ranges::find(factors, other) != factors.end();
    });
  };
  if (std::none_of(begin, scratch_.end(), absorbed)) return;
  std::vector<Lang> kept;
  std::copy_if(begin, scratch_.end(), std::back_inserter(kept), [&](Lang part) { return !absorbed(part); });
  std::copy(kept.begin(), kept.end(), begin);
  scratch_.resize(mark + kept.size());
}

LanguageStore::Headed LanguageStore::split_head(Lang lang) const {
  const ExprNode& node = at(lang);
  const bool has_rest = node.kind == Kind::kConcat;
  const Lang first = has_rest ? node.a : lang;
  const ExprNode& head = at(first);
  const Lang rest = has_rest ? node.b : kEmptyText;
  if (head.kind == Kind::kRepeat) return {head.a, rest, head.c, head.d};
  return {first, rest, 1, 1};
}

/// x{a,b} y | x{c,d} y becomes one range where it has no gap; x y | x z becomes x (y | z).
void LanguageStore::merge_heads(size_t mark, int depth, bool& has_empty) {
  if (scratch_.size() < mark + 2) return;
  std::vector<Headed> parts;
  size_t n_others = 0;  // in front of the texts
  for (size_t i = mark; i < scratch_.size() && !begins_with_text(scratch_[i]); ++i, ++n_others) {
    parts.push_back(split_head(scratch_[i]));
  }
  std::sort(parts.begin(), parts.end(), [](const Headed& x, const Headed& y) {
    return std::tie(x.head, x.rest, x.min, x.max) < std::tie(y.head, y.rest, y.min, y.max);
  });
  bool changed = join_ranges(parts);
  for (size_t i = mark + n_others; i < scratch_.size(); ++i) parts.push_back(split_head(scratch_[i]));
  // Ranges are in order by their rest; equal heads have to stand together.
  std::sort(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(parts.size() - (scratch_.size() - mark - n_others)),
            [](const Headed& x, const Headed& y) {
              return std::tie(x.head, x.min, x.max, x.rest) < std::tie(y.head, y.min, y.max, y.rest);
            });
  const auto same_head = [](const Headed& x, const Headed& y) {
    return x.head == y.head && x.min == y.min && x.max == y.max;
  };
  const bool factor = depth < kFactorDepth && std::adjacent_find(parts.begin(), parts.end(), same_head) != parts.end();
  if (!changed && !factor) return;
  const size_t first_result = scratch_.size();
  for (size_t i = 0; i < parts.size();) {
    size_t end = i + 1;
    while (factor && end < parts.size() && same_head(parts[i], parts[end])) ++end;
    Lang rest = parts[i].rest;
    if (end > i + 1) {
      const size_t inner = scratch_.size();
      for (size_t k = i; k < end; ++k) scratch_.push_back(parts[k].rest);
      rest = unite_from(inner, depth + 1);
    }
    scratch_.push_back(concat(repeat(parts[i].head, parts[i].min, parts[i].max), rest));
    i = end;
  }
  scratch_.erase(scratch_.begin() + static_cast<ptrdiff_t>(mark),
                 scratch_.begin() + static_cast<ptrdiff_t>(first_result));
  flatten_union(mark, has_empty);
  sort_union(mark);
}

/// Parts in order of head, rest and min: those that differ in their range only become one where that has no gap.
bool LanguageStore::join_ranges(std::vector<Headed>& parts) {
  size_t n = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Headed part = parts[i];
    Headed* const last = n == 0 ? nullptr : &parts[n - 1];
    const bool joins = last != nullptr && last->head == part.head && last->rest == part.rest &&
                       (last->max < 0 || part.min <= int64_t{last->max} + 1);
    if (!joins) {
      parts[n++] = part;
    } else if (last->max >= 0) {
      last->max = part.max < 0 ? -1 : std::max(last->max, part.max);
    }
  }
  const bool changed = n < parts.size();
  parts.resize(n);
  return changed;
}

/// Many texts that share their first letters become those letters and what follows, so that a walk over the letters does
/// not touch every text at every step.
void LanguageStore::factor_texts(size_t mark, int depth) {
  constexpr size_t kMany = 16;  // texts
  constexpr size_t kLong = 2;   // letters
  if (scratch_.size() - mark < kMany || depth >= kFactorDepth) return;
  size_t i = mark;
  while (i < scratch_.size() && !begins_with_text(scratch_[i])) ++i;
  bool changed = false;
  size_t n_kept = i;
  while (i < scratch_.size()) {
    const std::string_view first = leading_text(scratch_[i]);
    size_t end = i + 1;
    while (end < scratch_.size() && leading_text(scratch_[end])[0] == first[0]) ++end;
    const std::string_view last = leading_text(scratch_[end - 1]);
    const auto differ = std::mismatch(first.begin(), first.end(), last.begin(), last.end());
    const auto n_shared = static_cast<size_t>(differ.first - first.begin());
    if (end - i < kMany || n_shared < kLong) {
      while (i < end) scratch_[n_kept++] = scratch_[i++];
      continue;
    }
    const std::string shared(first.substr(0, n_shared));
    const size_t inner = scratch_.size();
    for (; i < end; ++i) {
      const Lang rest = without_prefix(scratch_[i], static_cast<uint32_t>(n_shared));
      scratch_.push_back(rest);
    }
    const Lang rest = unite_from(inner, depth + 1);
    const Lang parts[] = {text(shared), rest};
    scratch_[n_kept++] = concat(parts);
    changed = true;
  }
  if (!changed) return;
  scratch_.resize(n_kept);
  scratch_.erase(std::remove(scratch_.begin() + static_cast<ptrdiff_t>(mark), scratch_.end(), kNothing),
                 scratch_.end());
  sort_union(mark);
}

/// What follows the first `n` bytes of the text that `lang` begins with.
Lang LanguageStore::without_prefix(Lang lang, uint32_t n) {
  const ExprNode node = at(lang);
  const bool has_rest = node.kind == Kind::kConcat;
  const ExprNode head = has_rest ? at(node.a) : node;
  const Lang rest = has_rest ? node.b : kEmptyText;
  if (head.b == n) return rest;
  ExprNode letters;
  letters.kind = Kind::kText;
  letters.a = head.a + n;
  letters.b = head.b - n;
  return concat(intern(letters), rest);
}

Lang LanguageStore::finish_union(size_t mark) {
  const std::span<const Lang> parts(scratch_.begin() + static_cast<ptrdiff_t>(mark), scratch_.end());
  Lang result = kNothing;
  if (parts.size() == 1) result = parts[0];
  if (parts.size() > 1) {
    ExprNode node;
    node.kind = Kind::kUnion;
    const auto first_text = std::ranges::find_if(parts, [this](Lang part) { return begins_with_text(part); });
    node.c = static_cast<int32_t>(first_text - parts.begin());
    result = intern(node, parts);
  }
  scratch_.resize(mark);
  return result;
}

// -- intersection

Lang LanguageStore::intersect_from(size_t mark) {
  const auto give_up = [this, mark](Lang result) {
    scratch_.resize(mark);
    return result;
  };
  if (exhausted()) return give_up(kNothing);
  uint32_t maps_of_states = 0;  // UTF-8 states from which a part that is no residual holds texts only
  uint32_t residuals = 0;
  for (size_t i = mark; i < scratch_.size();) {
    const Lang part = live(scratch_[i]);
    const ExprNode& node = at(part);
    if (part == kNothing) return give_up(kNothing);
    if (node.kind == Kind::kCommon) {
      scratch_[i] = lists_[node.a];
      scratch_.insert(scratch_.end(), lists_.begin() + node.a + 1, lists_.begin() + node.a + node.b);
      continue;
    }
    if (node.kind == Kind::kAllBytes) {
      scratch_[i] = scratch_.back();
      scratch_.pop_back();
      continue;
    }
    if (node.residual != kIllFormed) {
      residuals |= 1U << node.residual;
    } else {
      for (Utf8State s = 0; s < kNumUtf8States; ++s) {
        if (leads_to(node.utf8, s) == kBetween) maps_of_states |= 1U << s;
      }
    }
    ++i;
  }
  const auto begin = scratch_.begin() + static_cast<ptrdiff_t>(mark);
  const auto needless = [this, maps_of_states](Lang part) {
    const uint8_t state = at(part).residual;
    return state != kIllFormed && (maps_of_states >> state & 1) != 0;
  };
  if ((residuals & maps_of_states) != 0)
    scratch_.erase(std::remove_if(begin, scratch_.end(), needless), scratch_.end());
  std::sort(begin, scratch_.end());
  scratch_.erase(std::unique(begin, scratch_.end()), scratch_.end());
  if (scratch_.size() == mark) return kEverything;
  if (scratch_.size() == mark + 1) return give_up(scratch_[mark]);

  const std::span<const Lang> parts(begin, scratch_.end());
  bool all_nullable = true;
  bool has_empty = false;
  Lang a_text = kNothing;
  for (const Lang part : parts) {
    const ExprNode& node = at(part);
    all_nullable = all_nullable && nullable(part);
    has_empty = has_empty || part == kEmptyText;
    if (node.kind == Kind::kNot) {
      if (std::binary_search(parts.begin(), parts.end(), node.a)) return give_up(kNothing);
      // Nothing is left of texts from state s on without all of them.
      const uint8_t state = at(node.a).residual;
      if (state != kIllFormed && (maps_of_states >> state & 1) != 0) return give_up(kNothing);
    }
    if (node.kind == Kind::kText) {
      if (a_text != kNothing) return give_up(kNothing);  // two texts that differ
      a_text = part;
    }
  }
  if (has_empty) return give_up(all_nullable ? kEmptyText : kNothing);
  ExprNode node;
  node.kind = Kind::kCommon;
  const std::vector<Lang> list(parts.begin(), parts.end());
  scratch_.resize(mark);
  return clash(list) ? kNothing : intern(node, list);
}

// -- exactly one

Lang LanguageStore::one_from(size_t mark) {
  std::vector<Lang> parts;
  for (size_t i = mark; i < scratch_.size(); ++i) {
    if (live(scratch_[i]) != kNothing) parts.push_back(scratch_[i]);
  }
  scratch_.resize(mark);
  if (exhausted() || parts.empty()) return kNothing;
  std::sort(parts.begin(), parts.end());
  size_t n = 0;
  for (size_t i = 0; i < parts.size(); ++i) {  // of equal ones two say as much as many
    if (n >= 2 && parts[n - 2] == parts[i]) continue;
    parts[n++] = parts[i];
  }
  parts.resize(n);
  if (n == 1) return parts[0];
  // With any text among them it is any text without the others, if they are text.
  for (size_t i = 0; i < n; ++i) {
    const uint8_t state = at(parts[i]).residual;
    if (state == kIllFormed) continue;
    std::vector<Lang> others = parts;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    const auto within = [this, state](Lang part) { return leads_to(at(part).utf8, state) == kBetween; };
    if (!std::ranges::all_of(others, within)) continue;
    const Lang without = negate(unite(others));
    const Lang both[] = {parts[i], without};
    return intersect(both);
  }
  ExprNode node;
  node.kind = Kind::kOne;
  return intern(node, parts);
}

// -- characters

uint32_t LanguageStore::char_set_index(CharSet set) {
  const auto found = std::ranges::find(char_sets_, set);
  if (found != char_sets_.end()) return static_cast<uint32_t>(found - char_sets_.begin());
  count_bytes(static_cast<int64_t>(set.ranges().size() * sizeof(CharRange) + sizeof(CharSet)));
  char_sets_.push_back(std::move(set));
  return static_cast<uint32_t>(char_sets_.size() - 1);
}

Lang LanguageStore::chars(const CharSet& set) {
  ByteSet ascii;
  std::vector<CharRange> beyond;
  for (const CharRange range : set.ranges()) {
    for (uint32_t c = range.first; c <= range.last && c < 0x80; ++c) ascii.add(static_cast<uint8_t>(c));
    if (range.last >= 0x80) beyond.push_back({std::max<uint32_t>(range.first, 0x80), range.last});
  }
  const Lang of_ascii = bytes(ascii);
  if (beyond.empty()) return of_ascii;
  Lang others = kNothing;
  if (beyond.size() == 1 && beyond[0].first == beyond[0].last) {
    std::string one;
    append_utf8(beyond[0].first, one);
    others = text(one);
  } else {
    ExprNode node;
    node.kind = Kind::kChars;
    node.a = char_set_index(CharSet::of(std::move(beyond)));
    others = intern(node);
  }
  const Lang both[] = {of_ascii, others};
  return unite(both);
}

/// The rest of a character of the set, `n_left` bytes, of which the leading bits are read.
Lang LanguageStore::chars_window(uint32_t set, uint32_t bits, int n_left, Utf8State state) {
  uint32_t first = bits << (6 * n_left);
  uint32_t last = first | ((1U << (6 * n_left)) - 1);
  if (state == kAfterE0) first = std::max<uint32_t>(first, 0x800);
  if (state == kAfterF0) first = std::max<uint32_t>(first, 0x10000);
  if (state == kAfterED) last = std::min<uint32_t>(last, 0xD7FF);
  if (state == kAfterF4) last = std::min<uint32_t>(last, 0x10FFFF);
  const std::vector<CharRange>& ranges = char_sets_[set].ranges();
  auto range = std::partition_point(ranges.begin(), ranges.end(), [first](CharRange r) { return r.last < first; });
  if (range == ranges.end() || range->first > last) return kNothing;
  if (range->first <= first && range->last >= last) return rest_of_char_[state];
  if (n_left == 1) {
    ByteSet continuations;
    for (; range != ranges.end() && range->first <= last; ++range) {
      const uint32_t end = std::min(last, range->last);
      for (uint32_t c = std::max(first, range->first); c <= end; ++c) {
        continuations.add(static_cast<uint8_t>(0x80 | (c & 0x3F)));
      }
    }
    return bytes(continuations);
  }
  ExprNode node;
  node.kind = Kind::kChars;
  node.a = set;
  node.b = bits;
  node.c = n_left;
  node.d = state;
  return intern(node);
}

Lang LanguageStore::chars_after(const ExprNode& node, uint8_t byte) {
  const Utf8State state = next_utf8_state(static_cast<Utf8State>(node.d), byte);
  if (node.d != kBetween) {
    return state == kIllFormed ? kNothing : chars_window(node.a, node.b << 6 | (byte & 0x3F), node.c - 1, state);
  }
  if (byte < 0x80 || state == kIllFormed) return kNothing;
  if (byte < 0xE0) return chars_window(node.a, byte & 0x1F, 1, state);
  return byte < 0xF0 ? chars_window(node.a, byte & 0x0F, 2, state) : chars_window(node.a, byte & 0x07, 3, state);
}

}  // namespace deepinfer::grammar
