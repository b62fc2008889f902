// Derivatives: the language that is left after one byte, and the rows of a DFA that remember them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "grammar/language_store.h"

namespace deepinfer::grammar {
namespace {

/// The bytes that lead from between characters to each UTF-8 state.
constexpr std::array<ByteSet, kNumUtf8States> kLeads = [] {
  std::array<ByteSet, kNumUtf8States> leads;
  for (int b = 0; b < 256; ++b) {
    const Utf8State state = next_utf8_state(kBetween, static_cast<uint8_t>(b));
    if (state != kIllFormed) leads[state].add(static_cast<uint8_t>(b));
  }
  return leads;
}();

}  // namespace

Lang LanguageStore::derive(Lang lang, uint8_t byte) {
  const ExprNode node = at(lang);
  if (node.walk >= 0) {
    const Walk walk = walks_[static_cast<size_t>(node.walk)];
    const Lang known = rows_[walk.row + partitions_[walk.partition].class_of[byte]];
    if (known != kUnknown) return known & ~kUnverified;
  }
  if (!spend()) return kNothing;
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEmptyText:
      return kNothing;
    case Kind::kAnyText: {
      const Utf8State state = next_utf8_state(kBetween, byte);
      return state == kIllFormed ? kNothing : rest_of_text_[state];
    }
    case Kind::kAllBytes:
      return lang;
    case Kind::kBytes:
      return sets_[node.a].contains(byte) ? kEmptyText : kNothing;
    case Kind::kText: {
      if (static_cast<uint8_t>(text_[node.a]) != byte) return kNothing;
      if (node.b == 1) return kEmptyText;
      ExprNode rest;
      rest.kind = Kind::kText;
      rest.a = node.a + 1;
      rest.b = node.b - 1;
      return intern(rest);
    }
    case Kind::kChars:
      return chars_after(node, byte);
    case Kind::kConcat:
      return derive_concat(lang, byte);
    case Kind::kUnion:
      return derive_union(lang, byte);
    case Kind::kCommon:
    case Kind::kOne: {
      const size_t mark = scratch_.size();
      for (uint32_t i = 0; i < node.b; ++i) {
        const Lang part = derive(lists_[node.a + i], byte);
        if (part == kNothing && node.kind == Kind::kCommon) {
          scratch_.resize(mark);
          return kNothing;
        }
        scratch_.push_back(part);
      }
      return node.kind == Kind::kCommon ? intersect_from(mark) : one_from(mark);
    }
    case Kind::kNot:
      return negate(derive(node.a, byte));
    case Kind::kRepeat: {
      const Lang once = derive(node.a, byte);
      if (once == kNothing) return kNothing;
      return concat(once, repeat(node.a, std::max(node.c - 1, 0), node.d < 0 ? -1 : node.d - 1));
    }
    case Kind::kAutomaton: {
      const int32_t state = automata_[node.a]->next(node.c, byte);
      if (state < 0 || automata_[node.a]->shortest(state) == -1) return kNothing;
      ExprNode after = {};
      after.kind = Kind::kAutomaton;
      after.a = node.a;
      after.c = state;
      return intern(after);
    }
  }
  return kNothing;
}

Lang LanguageStore::derive_concat(Lang lang, uint8_t byte) {
  const size_t mark = scratch_.size();
  while (true) {
    const ExprNode node = at(lang);
    if (node.kind != Kind::kConcat) {
      scratch_.push_back(derive(lang, byte));
      break;
    }
    const Lang head = derive(node.a, byte);
    if (head != kNothing) scratch_.push_back(concat(head, node.b));
    if (!nullable(node.a)) break;
    lang = node.b;
  }
  if (scratch_.size() == mark) return kNothing;
  if (scratch_.size() > mark + 1) return unite_from(mark);
  const Lang only = scratch_.back();
  scratch_.resize(mark);
  return only;
}

Lang LanguageStore::derive_union(Lang lang, uint8_t byte) {
  const ExprNode node = at(lang);
  const size_t mark = scratch_.size();
  const uint32_t first_text = node.a + static_cast<uint32_t>(node.c);
  const uint32_t end = node.a + node.b;
  for (uint32_t i = node.a; i < first_text; ++i) {
    const Lang part = derive(lists_[i], byte);
    if (part != kNothing) scratch_.push_back(part);
  }
  // Texts are in order: those that begin with `byte` stand together.
  const auto begin = lists_.begin();
  const auto lead = [this](Lang part) { return static_cast<uint8_t>(leading_text(part)[0]); };
  const auto from = std::partition_point(begin + first_text, begin + end, [&](Lang p) { return lead(p) < byte; });
  const auto to = std::partition_point(from, begin + end, [&](Lang p) { return lead(p) == byte; });
  const auto last = static_cast<uint32_t>(to - begin);
  for (auto i = static_cast<uint32_t>(from - begin); i < last; ++i) scratch_.push_back(derive(lists_[i], byte));
  if (scratch_.size() == mark) return kNothing;
  return unite_from(mark);
}

// -- rows

/// Adds the sets of bytes that `lang` tells apart; `singles`: bytes that each stand for themselves.
/// Each node once: parts are shared, and as a tree the expression may be exponentially large.
void LanguageStore::collect(Lang lang, std::vector<ByteSet>& sets, ByteSet& singles) {
  while (true) {
    if (collected_[lang] == n_partitions_asked_) return;
    collected_[lang] = n_partitions_asked_;
    spend();
    const ExprNode& node = at(lang);
    switch (node.kind) {
      case Kind::kNothing:
      case Kind::kEmptyText:
      case Kind::kAllBytes:
        return;
      case Kind::kAnyText:
        sets.insert(sets.end(), kLeads.begin(), kLeads.end());
        return;
      case Kind::kBytes:
        sets.push_back(sets_[node.a]);
        return;
      case Kind::kText:
        singles.add(static_cast<uint8_t>(text_[node.a]));
        return;
      case Kind::kChars:
        collect_chars(node, sets, singles);
        return;
      case Kind::kConcat:
        collect(node.a, sets, singles);
        if (!nullable(node.a)) return;
        lang = node.b;
        continue;
      case Kind::kUnion:
      case Kind::kCommon:
      case Kind::kOne:
        for (const Lang part : list_of(node)) collect(part, sets, singles);
        return;
      case Kind::kNot:
      case Kind::kRepeat:
        lang = node.a;
        continue;
      case Kind::kAutomaton: {
        const Languages::Automaton& automaton = *automata_[node.a];
        for (const char c : automaton.alphabet()) singles.add(static_cast<uint8_t>(c));
        if (automaton.alphabet().empty()) singles = ByteSet::range(0, 0xFF);
        return;
      }
    }
  }
}

void LanguageStore::collect_chars(const ExprNode& node, std::vector<ByteSet>& sets, ByteSet& singles) const {
  std::array<ByteSet, kNumUtf8States> whole;  // every character behind these bytes is in the set
  const std::vector<CharRange>& ranges = char_sets_[node.a].ranges();
  const bool at_lead = node.d == kBetween;
  for (int b = at_lead ? 0xC2 : 0x80; b <= (at_lead ? 0xF4 : 0xBF); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const Utf8State state = next_utf8_state(static_cast<Utf8State>(node.d), byte);
    if (state == kIllFormed) continue;
    int n_left = node.c - 1;
    uint32_t bits = node.b << 6 | (byte & 0x3F);
    if (at_lead) {
      n_left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      bits = byte & (0x3FU >> n_left);
    }
    uint32_t first = bits << (6 * n_left);
    uint32_t last = first | ((1U << (6 * n_left)) - 1);
    if (state == kAfterE0) first = 0x800;
    if (state == kAfterF0) first = 0x10000;
    if (state == kAfterED) last = 0xD7FF;
    if (state == kAfterF4) last = 0x10FFFF;
    const auto range =
        std::partition_point(ranges.begin(), ranges.end(), [first](CharRange r) { return r.last < first; });
    if (range == ranges.end() || range->first > last) continue;
    if (range->first <= first && range->last >= last) {
      whole[state].add(byte);
    } else {
      singles.add(byte);
    }
  }
  for (const ByteSet& set : whole) {
    if (!set.empty()) sets.push_back(set);
  }
}

uint32_t LanguageStore::partition_of(Lang lang) {
  std::vector<ByteSet>& sets = sets_scratch_;
  sets.clear();
  ByteSet singles;
  if (collected_.size() < nodes_.size()) collected_.resize(nodes_.size() + nodes_.size() / 2);
  ++n_partitions_asked_;
  collect(lang, sets, singles);
  std::array<ByteSet, 256>& classes = classes_scratch_;
  int32_t n = 1;
  classes[0] = ByteSet::range(0, 0xFF).without(singles);
  for (size_t i = 0; i < sets.size(); ++i) {
    if (i > 0 && sets[i] == sets[i - 1]) continue;
    const int32_t n_before = n;
    for (int32_t k = 0; k < n_before; ++k) {
      const ByteSet inside = classes[k] & sets[i];
      if (inside.empty() || inside == classes[k]) continue;
      classes[k] = classes[k].without(inside);
      classes[n++] = inside;
    }
  }
  if (classes[0].empty()) classes[0] = classes[--n];
  Partition partition;
  std::memset(&partition, 0, sizeof(partition));
  const auto put = [&partition](int32_t k, const ByteSet& set) {
    for (size_t word = 0; word < 4; ++word) {
      for (uint64_t rest = set.words[word]; rest != 0; rest &= rest - 1) {
        partition.class_of[word * 64 + static_cast<size_t>(std::countr_zero(rest))] = static_cast<uint8_t>(k);
      }
    }
    partition.example[k] = set.first();
  };
  for (int32_t k = 0; k < n; ++k) {
    if (!classes[k].empty()) put(k, classes[k]);
  }
  if (n == 1 && classes[0].empty()) n = 0;
  for (int b = 0; b < 256; ++b) {
    if (!singles.contains(static_cast<uint8_t>(b))) continue;
    partition.class_of[b] = static_cast<uint8_t>(n);
    partition.example[n++] = static_cast<uint8_t>(b);
  }
  partition.n_classes = n;
  uint64_t hash = static_cast<uint64_t>(n);
  for (size_t i = 0; i < 256; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, partition.class_of + i, 8);
    hash = (std::rotl(hash, 23) ^ word) * 0x9E3779B97F4A7C15ULL;
  }
  const auto short_hash = static_cast<uint32_t>(hash >> 32);
  for (size_t i = partition_hashes_.size(); i-- > 0;) {
    if (partition_hashes_[i] == short_hash && std::memcmp(&partitions_[i], &partition, sizeof(partition)) == 0) {
      return static_cast<uint32_t>(i);
    }
  }
  partitions_.push_back(partition);
  partition_hashes_.push_back(short_hash);
  count_bytes(sizeof(Partition));
  return static_cast<uint32_t>(partitions_.size() - 1);
}

int32_t LanguageStore::walk_of(Lang lang) {
  if (at(lang).walk >= 0) return at(lang).walk;
  const uint32_t partition = partition_of(lang);
  const auto n_classes = static_cast<size_t>(partitions_[partition].n_classes);
  nodes_[lang].walk = static_cast<int32_t>(walks_.size());
  walks_.push_back({partition, static_cast<uint32_t>(rows_.size())});
  rows_.resize(rows_.size() + n_classes, kUnknown);
  count_bytes(static_cast<int64_t>(sizeof(Walk) + n_classes * sizeof(Lang)));
  return at(lang).walk;
}

std::span<const uint8_t, 256> LanguageStore::byte_classes(Lang from) {
  const Walk walk = walks_[static_cast<size_t>(walk_of(live(from)))];
  return std::span<const uint8_t, 256>(partitions_[walk.partition].class_of);
}

/// The row entry, computed if need be: a language, with kUnverified where it may have no text.
Lang LanguageStore::raw_next(Walk walk, Lang from, int byte_class) {
  const size_t entry = walk.row + static_cast<size_t>(byte_class);
  if (rows_[entry] != kUnknown) return rows_[entry];
  const Lang after = live(derive(from, partitions_[walk.partition].example[byte_class]));
  if (exhausted()) return kNothing;
  const bool sure = after == kNothing || has(after, kNonEmpty);
  rows_[entry] = sure ? after : after | kUnverified;
  return rows_[entry];
}

Lang LanguageStore::find_next(Lang from, uint8_t byte) {
  if (from >= nodes_.size() || live(from) == kNothing || exhausted()) return kNothing;
  // One byte may come, or one is asked, or a table knows: that is sooner found than a row.
  const bool is_first = at(from).walk < 0 && !has(from, kStepped);
  if (is_first || begins_with_literal(from) || kind(from) == Kind::kAutomaton) {
    nodes_[from].flags |= kStepped;
    const Lang after = live(derive(from, byte));
    if (exhausted()) return kNothing;
    if (after == kNothing || has(after, kNonEmpty)) return after;
    if (is_first) return is_empty(after) || exhausted() ? kNothing : after;
  }
  const Walk walk = walks_[static_cast<size_t>(walk_of(from))];
  const int byte_class = partitions_[walk.partition].class_of[byte];
  Lang after = raw_next(walk, from, byte_class);
  if (exhausted()) return kNothing;
  if (after >= kUnverified) {
    after &= ~kUnverified;
    if (is_empty(after)) after = kNothing;
    if (exhausted()) return kNothing;
    rows_[walk.row + static_cast<size_t>(byte_class)] = after;
  }
  return after;
}

Lang LanguageStore::next(Lang from, std::string_view bytes) {
  while (!bytes.empty() && from != kNothing) {
    size_t n = take_run(from, bytes);
    if (n == 0) {
      from = next(from, static_cast<uint8_t>(bytes[0]));
      n = 1;
    }
    bytes.remove_prefix(n);
  }
  return from;
}

/// Takes several bytes at once of a text, or of a set of bytes that must still come some times: without the languages in
/// between. How many; 0: less than two are of that sort.
size_t LanguageStore::take_run(Lang& from, std::string_view bytes) {
  if (bytes.size() < 2 || from >= nodes_.size()) return 0;
  const Lang first = kind(from) == Kind::kConcat ? at(from).a : from;
  if (kind(first) != Kind::kText && kind(first) != Kind::kRepeat) return 0;
  if (live(from) == kNothing || exhausted()) return 0;
  const ExprNode whole = at(from), head = at(first);
  size_t n = 0;
  Lang after = kEmptyText;
  if (head.kind == Kind::kText) {
    const std::string_view text = text_of(head);
    n = static_cast<size_t>(std::ranges::mismatch(text, bytes).in1 - text.begin());
    if (n < 2) return 0;
    if (n < text.size()) {
      ExprNode rest;
      rest.kind = Kind::kText;
      rest.a = head.a + static_cast<uint32_t>(n);
      rest.b = head.b - static_cast<uint32_t>(n);
      after = intern(rest);
    }
  } else {
    if (kind(head.a) != Kind::kBytes) return 0;
    const ByteSet& set = sets_[at(head.a).a];
    const auto n_max = std::min(bytes.size(), static_cast<size_t>(head.c));
    while (n < n_max && set.contains(static_cast<uint8_t>(bytes[n]))) ++n;
    if (n < 2) return 0;
    const auto n_taken = static_cast<int32_t>(n);
    after = repeat(head.a, head.c - n_taken, head.d < 0 ? -1 : head.d - n_taken);
  }
  if (whole.kind == Kind::kConcat) after = concat(after, whole.b);
  from = exhausted() || is_empty(after) ? kNothing : after;
  if (exhausted()) from = kNothing;
  return n;
}

}  // namespace deepinfer::grammar
