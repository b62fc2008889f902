// Nodes: equal ones get equal numbers, and what is known of each is found from its parts when it is made.
#include <algorithm>
#include <limits>

#include "grammar/language_store.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kLengthMax = int64_t{1} << 60;

uint32_t mix(uint32_t hash, uint32_t value) {
  hash ^= value * 0x9E3779B1U;
  return (hash << 13 | hash >> 19) * 0x85EBCA6BU + 0x27220A95U;
}

uint32_t hash_bytes(std::string_view text) {
  uint32_t hash = 0x811C9DC5U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193U;
  return mix(hash, static_cast<uint32_t>(text.size()));
}

int64_t times(int64_t x, int64_t y) { return y != 0 && x > kLengthMax / y ? kLengthMax : x * y; }

bool has_list(Kind kind) { return kind == Kind::kUnion || kind == Kind::kCommon || kind == Kind::kOne; }

}  // namespace

LanguageStore::LanguageStore(int64_t n_bytes_max) : n_bytes_max_(n_bytes_max) {
  nodes_.reserve(128);
  table_.assign(256, 0);
  const auto add = [this](Kind kind, uint8_t flags) {
    ExprNode node;
    node.kind = kind;
    node.flags = flags;
    node.hash = mix(1, static_cast<uint32_t>(kind));
    nodes_.push_back(node);
    return static_cast<Lang>(nodes_.size() - 1);
  };
  constexpr uint8_t kSure = kPlain | kNonEmpty | kExact;
  add(Kind::kNothing, kFinite | kEmpty | kExact);
  add(Kind::kEmptyText, kNullable | kFinite | kSure);
  add(Kind::kAnyText, kNullable | kSure);
  add(Kind::kAllBytes, kNullable | kSure);
  nodes_[kNothing].may = nodes_[kEmptyText].may = 0;
  nodes_[kEmptyText].utf8 = kUtf8Identity;
  nodes_[kAnyText].utf8 = utf8_entry(kBetween, kBetween);
  char_sets_.push_back(CharSet::of({{0x80, 0x10FFFF}}));

  const Lang one = bytes(ByteSet::range(0x80, 0xBF));
  const Lang two = put_before(one, one);
  rest_of_char_[kBetween] = kEmptyText;
  rest_of_char_[kOneLeft] = one;
  rest_of_char_[kTwoLeft] = two;
  rest_of_char_[kThreeLeft] = put_before(one, two);
  rest_of_char_[kAfterE0] = put_before(bytes(ByteSet::range(0xA0, 0xBF)), one);
  rest_of_char_[kAfterED] = put_before(bytes(ByteSet::range(0x80, 0x9F)), one);
  rest_of_char_[kAfterF0] = put_before(bytes(ByteSet::range(0x90, 0xBF)), two);
  rest_of_char_[kAfterF4] = put_before(bytes(ByteSet::range(0x80, 0x8F)), two);
  for (Utf8State s = 0; s < kNumUtf8States; ++s) {
    rest_of_text_[s] = concat(rest_of_char_[s], kAnyText);
    nodes_[rest_of_text_[s]].residual = s;
  }
  ExprNode beyond;
  beyond.kind = Kind::kChars;
  beyond_ascii_ = intern(beyond);
  any_char_ = unite({{bytes(ByteSet::range(0, 0x7F)), beyond_ascii_}});
}

void LanguageStore::count_bytes(int64_t n_bytes) {
  n_bytes_ += n_bytes;
  if (n_bytes_ > n_bytes_max_) full_ = true;
}

bool LanguageStore::same(const ExprNode& x, const ExprNode& node, std::span<const Lang> list) const {
  if (x.hash != node.hash || x.kind != node.kind) return false;
  if (x.kind == Kind::kText) return text_of(x) == text_of(node);
  if (has_list(x.kind)) return std::ranges::equal(list_of(x), list);
  return x.a == node.a && x.b == node.b && x.c == node.c && x.d == node.d;
}

Lang LanguageStore::intern(ExprNode node, std::span<const Lang> list) {
  if (!spend(1 + static_cast<int64_t>(list.size() / 8))) return kNothing;
  uint32_t hash = mix(7, static_cast<uint32_t>(node.kind));
  if (node.kind == Kind::kText) {
    hash = hash_bytes(text_of(node));
  } else if (has_list(node.kind)) {
    for (const Lang part : list) hash = mix(hash, part);
  } else {
    hash = mix(mix(mix(mix(hash, node.a), node.b), static_cast<uint32_t>(node.c)), static_cast<uint32_t>(node.d));
  }
  node.hash = hash;
  const size_t size_mask = table_.size() - 1;
  size_t slot = hash & size_mask;
  for (; table_[slot] != 0; slot = (slot + 1) & size_mask) {
    if (same(nodes_[table_[slot] - 1], node, list)) return table_[slot] - 1;
  }
  if (has_list(node.kind)) {
    node.a = static_cast<uint32_t>(lists_.size());
    node.b = static_cast<uint32_t>(list.size());
    lists_.insert(lists_.end(), list.begin(), list.end());
  }
  describe(node, list);
  if (node.height > kHeightMax) full_ = true;
  nodes_.push_back(node);
  table_[slot] = static_cast<uint32_t>(nodes_.size());
  count_bytes(static_cast<int64_t>(sizeof(ExprNode) + (list.size() + 2) * sizeof(Lang)));
  if (nodes_.size() * 2 > table_.size()) rehash();
  return full_ ? kNothing : static_cast<Lang>(nodes_.size() - 1);
}

void LanguageStore::rehash() {
  table_.assign(table_.size() * 2, 0);
  const size_t size_mask = table_.size() - 1;
  for (size_t i = kEverything + 1; i < nodes_.size(); ++i) {
    size_t slot = nodes_[i].hash & size_mask;
    while (table_[slot] != 0) slot = (slot + 1) & size_mask;
    table_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void LanguageStore::describe_bytes(ExprNode& node, std::span<const Lang> list) const {
  const auto bit = [](char c) { return uint64_t{1} << (static_cast<uint8_t>(c) & 63); };
  switch (node.kind) {
    case Kind::kBytes: {
      const std::array<uint64_t, 4>& words = sets_[node.a].words;
      node.may = words[0] | words[1] | words[2] | words[3];
      break;
    }
    case Kind::kText:
      for (const char c : text_of(node)) node.must |= bit(c);
      node.may = node.must;
      break;
    case Kind::kConcat:
      node.must = at(node.a).must | at(node.b).must;
      node.may = at(node.a).may | at(node.b).may;
      break;
    case Kind::kRepeat:
      node.must = node.c > 0 ? at(node.a).must : 0;
      node.may = at(node.a).may;
      break;
    case Kind::kUnion:
      node.must = ~uint64_t{0};
      node.may = 0;
      for (const Lang part : list) {
        node.must &= at(part).must;
        node.may |= at(part).may;
      }
      break;
    case Kind::kCommon:
      for (const Lang part : list) {
        node.must |= at(part).must;
        node.may &= at(part).may;
      }
      break;
    case Kind::kAutomaton: {
      const std::string_view alphabet = automata_[node.a]->alphabet();
      if (!alphabet.empty()) node.may = 0;
      for (const char c : alphabet) node.may |= bit(c);
      break;
    }
    default:
      break;
  }
}

void LanguageStore::describe(ExprNode& node, std::span<const Lang> list) const {
  describe_bytes(node, list);
  constexpr uint8_t kSure = kPlain | kNonEmpty | kExact;
  switch (node.kind) {
    case Kind::kBytes:
      node.flags = kFinite | kSure;
      node.utf8 = utf8_map_of(sets_[node.a]);
      node.n_min = 1;
      break;
    case Kind::kText: {
      node.flags = kFinite | kSure;
      node.utf8 = kUtf8Identity;
      for (const char c : text_of(node)) {
        Utf8Map step = 0;
        for (int s = kNumUtf8States - 1; s >= 0; --s) {
          step = step << 4 | next_utf8_state(static_cast<Utf8State>(s), static_cast<uint8_t>(c));
        }
        node.utf8 = utf8_then(node.utf8, step);
        if (node.utf8 == kNoUtf8Map) break;
      }
      node.n_min = node.b;
      break;
    }
    case Kind::kChars: {
      node.flags = kFinite | kSure;
      node.utf8 = utf8_entry(static_cast<Utf8State>(node.d), kBetween);
      const uint32_t first = char_sets_[node.a].ranges().front().first;
      node.n_min = node.c != 0 ? node.c : first < 0x800 ? 2 : first < 0x10000 ? 3 : 4;
      break;
    }
    case Kind::kConcat: {
      const ExprNode& a = at(node.a);
      const ExprNode& b = at(node.b);
      node.flags = a.flags & b.flags & (kNullable | kPlain | kFinite | kNonEmpty | kExact);
      node.utf8 = utf8_then(a.utf8, b.utf8);
      node.height = std::max<uint16_t>(a.height + 1, b.height);
      node.n_min = std::min(a.n_min + b.n_min, kLengthMax);
      break;
    }
    case Kind::kRepeat: {
      const ExprNode& a = at(node.a);
      node.flags = a.flags & (kPlain | kNonEmpty | kExact);
      if (node.d >= 0) node.flags |= a.flags & kFinite;
      if (node.c == 0) node.flags |= kNullable | kNonEmpty | kExact;
      for (Utf8State s = 0; s < kNumUtf8States; ++s) {
        if (leads_to(a.utf8, s) == s) node.utf8 = (node.utf8 & ~(15U << (4 * s))) | uint32_t{s} << (4 * s);
      }
      node.height = a.height + 1;
      node.n_min = times(a.n_min, node.c);
      break;
    }
    case Kind::kNot: {
      const ExprNode& a = at(node.a);
      if ((a.flags & kNullable) == 0) node.flags |= kNullable | kNonEmpty | kExact;
      if ((a.flags & kFinite) != 0) node.flags |= kNonEmpty;
      node.height = a.height + 1;
      node.n_min = (node.flags & kNullable) != 0 ? 0 : 1;
      break;
    }
    case Kind::kAutomaton: {
      const Languages::Automaton& automaton = *automata_[node.a];
      const int64_t shortest = automaton.shortest(node.c);
      const bool accepts = automaton.accepts(node.c);
      if (accepts) node.flags |= kNullable;
      if (accepts || shortest >= 0) node.flags |= kNonEmpty | kExact;
      node.n_min = accepts ? 0 : std::max<int64_t>(shortest, 1);
      const std::string_view alphabet = automaton.alphabet();
      const bool ascii = std::ranges::all_of(alphabet, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
      if (!alphabet.empty() && ascii) node.utf8 = utf8_entry(kBetween, kBetween);
      break;
    }
    default:
      describe_list(node, list);
  }
}

void LanguageStore::describe_list(ExprNode& node, std::span<const Lang> list) const {
  const bool common = node.kind == Kind::kCommon;
  uint8_t all = 0xFF;
  uint8_t any = 0;
  int n_nullable = 0;
  int n_infinite = 0;  // plain ones
  int n_limits = 0;    // complements of finite ones: take finitely many texts away
  node.n_min = common ? 0 : std::numeric_limits<int64_t>::max();
  node.utf8 = at(list[0]).utf8;
  for (const Lang part : list) {
    const ExprNode& x = at(part);
    all &= x.flags;
    any |= x.flags;
    n_nullable += (x.flags & kNullable) != 0 ? 1 : 0;
    n_infinite += (x.flags & (kPlain | kFinite)) == kPlain ? 1 : 0;
    n_limits += x.kind == Kind::kNot && has(x.a, kFinite) ? 1 : 0;
    node.n_min = common ? std::max(node.n_min, x.n_min) : std::min(node.n_min, x.n_min);
    node.utf8 = common ? utf8_either(node.utf8, x.utf8) : utf8_both(node.utf8, x.utf8);
    node.height = std::max<uint16_t>(node.height, x.height + 1);
  }
  const int n = static_cast<int>(list.size());
  bool nullable = n_nullable > 0;
  if (common) {
    nullable = n_nullable == n;
    node.flags = any & kFinite;
    if (n_limits == n || (n_limits == n - 1 && n_infinite == 1)) node.flags |= kNonEmpty;
  } else if (node.kind == Kind::kUnion) {
    node.flags = (all & (kPlain | kFinite | kExact)) | (any & kNonEmpty);
  } else {
    nullable = n_nullable == 1;
    node.flags = all & kFinite;
  }
  if (nullable) {
    node.flags |= kNullable | kNonEmpty | kExact;
    node.n_min = 0;
  }
}

uint32_t LanguageStore::set_index(const ByteSet& set) {
  const auto found = std::ranges::find(sets_, set);  // few: a hundred is much
  if (found == sets_.end()) {
    sets_.push_back(set);
    count_bytes(sizeof(ByteSet));
    return static_cast<uint32_t>(sets_.size() - 1);
  }
  return static_cast<uint32_t>(found - sets_.begin());
}

Lang LanguageStore::bytes(const ByteSet& set) {
  if (set.empty()) return kNothing;
  if (set.is_one()) {
    const char one = static_cast<char>(set.first());
    return text({&one, 1});
  }
  ExprNode node;
  node.kind = Kind::kBytes;
  node.a = set_index(set);
  return intern(node);
}

Lang LanguageStore::text(std::string_view literal) {
  Lang result = kEmptyText;
  while (!literal.empty()) {
    const size_t n = literal.size() % kTextMax == 0 ? kTextMax : literal.size() % kTextMax;
    const std::string_view piece = literal.substr(literal.size() - n);
    literal.remove_suffix(n);
    ExprNode node;
    node.kind = Kind::kText;
    node.a = static_cast<uint32_t>(text_.size());
    node.b = static_cast<uint32_t>(n);
    text_.insert(text_.end(), piece.begin(), piece.end());
    const Lang head = intern(node);
    if (head != kNothing && at(head).a != node.a) {
      text_.resize(node.a);
    } else {
      count_bytes(static_cast<int64_t>(n));
    }
    if (result == kEmptyText) {
      result = head;
      continue;
    }
    ExprNode both;
    both.kind = Kind::kConcat;
    both.a = head;
    both.b = result;
    result = intern(both);
  }
  return result;
}

Lang LanguageStore::negate(Lang lang) {
  lang = live(lang);
  if (exhausted()) return kNothing;
  if (lang == kNothing) return kEverything;
  if (kind(lang) == Kind::kAllBytes) return kNothing;
  if (kind(lang) == Kind::kNot) return at(lang).a;
  ExprNode node;
  node.kind = Kind::kNot;
  node.a = lang;
  return intern(node);
}

Lang LanguageStore::automaton(std::shared_ptr<const Languages::Automaton> automaton) {
  if (automaton->shortest(0) == -1) return kNothing;
  const auto known = std::find(automata_.begin(), automata_.end(), automaton);  // few
  ExprNode node;
  node.kind = Kind::kAutomaton;
  node.a = static_cast<uint32_t>(known - automata_.begin());
  if (known == automata_.end()) automata_.push_back(std::move(automaton));
  return intern(node);
}

Lang LanguageStore::concat(std::span<const Lang> parts) {
  Lang result = kEmptyText;
  for (size_t i = parts.size(); i-- > 0;) result = concat(parts[i], result);
  return exhausted() ? kNothing : result;
}

Lang LanguageStore::concat(Lang first, Lang second) {
  first = live(first);
  second = live(second);
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEmptyText) return second;
  if (second == kEmptyText) return first;
  const size_t mark = scratch_.size();
  while (kind(first) == Kind::kConcat) {
    scratch_.push_back(at(first).a);
    first = at(first).b;
  }
  Lang result = put_before(first, second);
  while (scratch_.size() > mark && result != kNothing) {
    result = put_before(scratch_.back(), result);
    scratch_.pop_back();
  }
  scratch_.resize(mark);
  return result;
}

Lang LanguageStore::put_before(Lang head, Lang tail) {
  if (tail == kEmptyText) return head;
  const ExprNode h = at(head);
  const ExprNode t = at(tail);
  const bool tail_is_concat = t.kind == Kind::kConcat;
  const Lang next = tail_is_concat ? t.a : tail;
  const Lang rest = tail_is_concat ? t.b : kEmptyText;
  const ExprNode n = at(next);
  // Two texts become one.
  if (h.kind == Kind::kText && n.kind == Kind::kText && h.b + n.b <= kTextMax) {
    char both[kTextMax];
    std::copy_n(text_.data() + h.a, h.b, both);
    std::copy_n(text_.data() + n.a, n.b, both + h.b);
    const Lang merged = text({both, h.b + n.b});
    return rest == kEmptyText || merged == kNothing ? merged : put_before(merged, rest);
  }
  // Any text swallows what may be empty and is text itself.
  const auto is_text_or_empty = [](const ExprNode& x) {
    return (x.flags & kNullable) != 0 && leads_to(x.utf8, kBetween) == kBetween;
  };
  if (next == kAnyText && is_text_or_empty(h)) return tail;
  if (head == kAnyText && is_text_or_empty(t)) return kAnyText;
  if (h.kind == Kind::kAllBytes && (t.kind == Kind::kAllBytes || (t.flags & kNullable) != 0)) return head;
  // x{a,b} x{c,d} = x{a+c,b+d}
  const Lang head_body = h.kind == Kind::kRepeat ? h.a : head;
  const Lang next_body = n.kind == Kind::kRepeat ? n.a : next;
  if (head_body == next_body && (h.kind == Kind::kRepeat || n.kind == Kind::kRepeat)) {
    const auto least = [](const ExprNode& x) { return x.kind == Kind::kRepeat ? int64_t{x.c} : 1; };
    const auto most = [](const ExprNode& x) { return x.kind == Kind::kRepeat ? int64_t{x.d} : 1; };
    const int64_t max = most(h) < 0 || most(n) < 0 ? -1 : most(h) + most(n);
    if (least(h) + least(n) <= INT32_MAX && max <= INT32_MAX) {
      const Lang merged = repeat(head_body, static_cast<int32_t>(least(h) + least(n)), static_cast<int32_t>(max));
      return rest == kEmptyText ? merged : concat(merged, rest);
    }
  }
  ExprNode node;
  node.kind = Kind::kConcat;
  node.a = head;
  node.b = tail;
  return intern(node);
}

Lang LanguageStore::repeat(Lang body, int32_t min, int32_t max) {
  body = live(body);
  if (exhausted()) return kNothing;
  if (max == 0) return kEmptyText;
  if (body == kNothing) return min == 0 ? kEmptyText : kNothing;
  if (body == kEmptyText || body == kAnyText || body == kEverything) return body;
  if (min == 1 && max == 1) return body;
  if (nullable(body)) min = 0;
  if (body == any_char_ && min == 0 && max < 0) return kAnyText;
  const ExprNode inner = at(body);
  if (inner.kind == Kind::kRepeat) {
    // k times a to b of it, for each k from min to max: one range if they leave no gap.
    const int64_t low = int64_t{inner.c} * min;
    const bool endless = inner.d < 0 || max < 0;
    const int64_t high = endless ? -1 : int64_t{inner.d} * max;
    bool no_gap = min == max;
    if (inner.d < 0) no_gap = no_gap || min >= 1 || inner.c <= 1;
    if (inner.d >= 0) no_gap = no_gap || int64_t{inner.c} * (int64_t{min} + 1) <= int64_t{inner.d} * min + 1;
    if (no_gap && low <= INT32_MAX && high <= INT32_MAX) {
      return repeat(inner.a, static_cast<int32_t>(low), static_cast<int32_t>(high));
    }
  }
  if (inner.kind == Kind::kUnion && min == 0 && max < 0) {
    // (x* | y)* = (x | y)*
    const size_t mark = scratch_.size();
    bool changed = false;
    for (uint32_t i = 0; i < inner.b; ++i) {
      const Lang part = lists_[inner.a + i];
      const ExprNode& x = at(part);
      const bool strip = x.kind == Kind::kRepeat && x.c <= 1 && x.d < 0;
      changed = changed || strip;
      scratch_.push_back(strip ? x.a : part);
    }
    if (changed) return repeat(unite_from(mark), 0, -1);
    scratch_.resize(mark);
  }
  ExprNode node;
  node.kind = Kind::kRepeat;
  node.a = body;
  node.c = min;
  node.d = max;
  return intern(node);
}

}  // namespace deepinfer::grammar
