#include "grammar/string_masks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <unordered_set>

#include "grammar/token_trie.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kIdsKept = 2048;
constexpr size_t kClosingsAsked = 8;
constexpr size_t kKindsReachedMax = 64;
constexpr size_t kKindStepsMax = 4096;
constexpr int32_t kFewNodesMax = 256;
constexpr int32_t kCountedMin = 8;  // characters
constexpr int32_t kCharsMax = 1 << 30;

bool has_bit(const MaskWord* row, int32_t bit) {
  const auto i = static_cast<size_t>(bit);
  return (row[i / 64] >> (i % 64) & 1) != 0;
}

void set_bit(std::vector<MaskWord>& set, int32_t bit) {
  set[static_cast<size_t>(bit) / 64] |= MaskWord{1} << (bit % 64);
}

void clear_bit(std::vector<MaskWord>& set, int32_t bit) {
  set[static_cast<size_t>(bit) / 64] &= ~(MaskWord{1} << (bit % 64));
}

template <class Take>
void for_each_bit(const std::vector<MaskWord>& set, Take take) {
  for (size_t i = 0; i < set.size(); ++i)
    for (MaskWord word = set[i]; word != 0; word &= word - 1)
      take(static_cast<int32_t>(i * 64) + std::countr_zero(word));
}

/// All values in the subtree of node `at`.
template <class Take>
void for_each_value(std::span<const TrieNode> nodes, uint32_t at, Take take) {
  for (uint32_t i = at; i < nodes[at].next; ++i)
    if (nodes[i].token >= 0) take(nodes[i].token);
}

}  // namespace

Mask StringMasks::mask(State state, const StringBody& body) {
  const Inside inside = inside_of(state, body);
  Closings closings(static_cast<size_t>(strings_.n_closing_words));
  if (body.same_after) {
    find_closings(state, body, inside, closings);
    keep_allowed(state, body, closings);
  } else {
    closings_by_text(state, body, inside, closings);
  }

  const bool asks_late = inside.any != nullptr ? !body.every_escape : body.counted_kind != 0;
  if (asks_late) {
    for (const int32_t closing : strings_.late_closings) ask(state, closing, closings);
  }

  Other* const other = inside.any == nullptr ? &others_[inside.other] : nullptr;
  int32_t n_chars = inside.max;
  if (other == nullptr) {
    n_chars = std::min(n_chars, vocabulary_.string_chars_max());
  } else if (n_chars >= other->tokens->n_chars_max) {
    n_chars = kAnyNumber;
  }
  // One character is in every token: no less than so many is a limit to those tokens only that are asked about.
  const int32_t min = other == nullptr || other->tokens->unsure.empty() || inside.min <= 1 ? 0 : inside.min;
  const Key key{inside.kind, inside.other, min, n_chars, number_of(closings)};
  const auto known = masks_.find(key);
  if (known != masks_.end()) return asks_late ? with_late_escapes(state, known->second) : known->second;
  const Mask tokens =
      other == nullptr ? any_text_inside(*inside.any, n_chars) : other_inside(state, *other, min, n_chars);
  ids_.clear();
  take_closings(closings);
  if (!std::is_sorted(ids_.begin(), ids_.end())) std::sort(ids_.begin(), ids_.end());
  const Mask mask = store_.keep_with(tokens, ids_);
  masks_.emplace(key, mask);
  if (ids_.capacity() > kIdsKept) ids_ = {};
  return asks_late ? with_late_escapes(state, mask) : mask;
}

/// The mask that is right about StringTokens::late_escapes, which are not the same for all states of a kind.
Mask StringMasks::with_late_escapes(State state, Mask mask) {
  std::vector<int32_t> missing, wrong;
  for (const int32_t first : strings_.late_escapes) {
    const bool is_allowed = step(state, vocabulary_.bytes(first)) != kDead;
    if (mask.allows(first) == is_allowed) continue;
    for (int32_t token = first; token >= 0; token = vocabulary_.same_bytes(token))
      (is_allowed ? missing : wrong).push_back(token);
  }
  if (!wrong.empty()) mask = store_.keep_without(mask, wrong);
  if (missing.empty()) return mask;
  std::sort(missing.begin(), missing.end());
  return store_.keep_with(mask, missing);
}

// -- lists of texts

std::optional<Mask> StringMasks::texts_mask(State state, const TextList& list) {
  Texts own;
  Texts* texts = &own;
  if (list.kind == 0) {
    find_texts(state, list, own);
  } else {
    const auto [known, is_new] = texts_.try_emplace(list.kind);
    texts = &known->second;
    if (is_new) find_texts(state, list, *texts);
  }
  if (!texts->is_list) return std::nullopt;
  ids_ = texts->tokens;
  for (const int32_t first : texts->tokens_to_ask)
    for (int32_t token = step(state, vocabulary_.bytes(first)) == kDead ? -1 : first; token >= 0;
         token = vocabulary_.same_bytes(token))
      ids_.push_back(token);
  Closings closings(static_cast<size_t>(strings_.n_closing_words));
  for (const std::string_view text : texts->ended) take_closings_of(state, text, closings);
  for (const int32_t closing : texts->closings_to_ask) ask(state, closing, closings);
  const size_t n_inside = ids_.size();
  take_closings(closings);
  if (ids_.size() > n_inside || !texts->tokens_to_ask.empty()) {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  }
  return store_.keep_ids(ids_);
}

void StringMasks::find_texts(State state, const TextList& list, Texts& out) {
  text_tokens_.begin(list.only_needed_escapes);
  out.is_list = walk_.machine().visit_texts(state, text_tokens_);
  if (!out.is_list) return;
  out.tokens = text_tokens_.take_tokens();
  out.tokens_to_ask = text_tokens_.tokens_to_ask();
  out.closings_to_ask = text_tokens_.closings_to_ask();
  out.ended = text_tokens_.ended();
}

/// Appends the tokens of the set to ids_.
void StringMasks::take_closings(const Closings& closings) {
  for_each_bit(closings, [&](int32_t index) {
    for (int32_t token = strings_.closings[static_cast<size_t>(index)].token; token >= 0;
         token = vocabulary_.same_bytes(token))
      ids_.push_back(token);
  });
}

StringMasks::Inside StringMasks::inside_of(State state, const StringBody& body) {
  Inside inside;
  inside.kind = body.kind;
  inside.min = body.min_left;
  inside.max = body.max_left < 0 ? kAnyNumber : body.max_left;
  if (body.any_text || body.takes_all || (body.counted_max < 0 && takes_every_character(body.kind))) {
    inside.any = &any_text(state, body, inside.max);
    return inside;
  }
  if (body.counted_kind != 0) {
    // Near the end few tokens fit: soon walked, if the walk without limits has not been done.
    const bool is_near = body.counted_max >= 0 && body.counted_max < kCountedMin;
    if (!is_near || other_of_.contains(body.counted_kind)) {
      inside.other = other(state, body.counted_kind, kAnyNumber, true);
      if (others_[inside.other].tokens->is_counted) {
        inside.kind = body.counted_kind;
        inside.min = body.counted_min;
        inside.max = body.counted_max < 0 ? kAnyNumber : body.counted_max;
        return inside;
      }
    }
  }
  inside.other = other(state, body.kind, inside.max, false);
  return inside;
}

/// The closings whose text before the quote may stand there.
void StringMasks::find_closings(State state, const StringBody& body, const Inside& inside, Closings& out) {
  if (!body.any_text && !walk_.machine().has_kinds()) {
    out = closings_asked(state, body, inside.max, strings_.closing_trie);
    return;
  }
  if (body.any_text) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = strings_.plain[i] | inside.any->escaped[i];
  } else if (walk_.machine().kind_bytes(inside.kind) <= static_cast<int64_t>(strings_.text_bytes_max)) {
    out = plain_closings(inside.kind);
  }
  keep_within(inside.min, inside.max, out);
  if (body.any_text || strings_.escaped_trie.size() == 1) return;
  const Closings& escaped =
      closings_asked(state, body, body.max_left < 0 ? kAnyNumber : body.max_left, strings_.escaped_trie);
  for (size_t i = 0; i < out.size(); ++i) out[i] |= escaped[i];
}

// -- strings of any text

const StringMasks::AnyText& StringMasks::any_text(State state, const StringBody& body, int32_t n_chars) {
  std::shared_ptr<const AnyText>& known = any_text_[body.every_escape ? 0 : body.kind];
  if (known != nullptr && known->n_chars_known >= n_chars) return *known;
  const auto found = std::make_shared<AnyText>();
  if (body.every_escape) {
    found->n_chars_known = kAnyNumber;
    found->escaped.assign(static_cast<size_t>(strings_.n_closing_words), ~MaskWord{0});
    const size_t n_last = strings_.closings.size() % 64;
    if (n_last > 0) found->escaped.back() = (MaskWord{1} << n_last) - 1;
    known = found;
    return *known;
  }
  if (n_chars >= vocabulary_.token_bytes_max()) n_chars = kAnyNumber;  // no token has more
  const std::optional<KindKey> key = key_of(body.kind, kAnyText, n_chars);
  if (key && (known = vocabulary_.kinds().find<AnyText>(*key)) != nullptr) return *known;
  found->n_chars_known = n_chars;
  find_any_text(state, *found);
  known = share<AnyText>(key, found, found->n_bytes());
  return *known;
}

/// Walks the tokens about which the machine may decide otherwise: escapes and cut characters.
void StringMasks::find_any_text(State state, AnyText& out) {
  const int32_t n_chars = out.n_chars_known;
  const auto n_chars_limit = static_cast<uint32_t>(n_chars);
  bool cut = false;
  const auto enter = [&](uint32_t, const TrieNode& node) {
    if (node.chars <= n_chars_limit) return true;
    cut = true;
    return false;
  };
  out.added.clear();
  out.removed.clear();
  out.escaped.assign(static_cast<size_t>(strings_.n_closing_words), 0);

  const std::vector<TrieNode>& rest = strings_.rest;
  marks_.assign(rest.size(), 0);
  walk_.begin();
  walk_.walk(rest, 1, rest[0].next, state, enter, [&](uint32_t index, const TrieNode&) {
    marks_[index] = 1;
    return true;
  });
  const MaskWord* all = vocabulary_.string_mask(vocabulary_.string_chars_max()).data();
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i].token < 0 || rest[i].chars > n_chars_limit) continue;
    const bool expected = has_bit(all, rest[i].token);
    if (expected == (marks_[i] != 0)) continue;
    for (int32_t token = rest[i].token; token >= 0; token = vocabulary_.same_bytes(token))
      (expected ? out.removed : out.added).push_back({static_cast<int32_t>(rest[i].chars), token});
  }

  const std::vector<TrieNode>& escaped = strings_.escaped_trie;
  const auto enter_escaped = [&](uint32_t index, const TrieNode& node) {
    if (!enter(index, node)) return false;
    if (node.closes == 0) return true;
    for_each_value(escaped, index, [&](int32_t closing) { set_bit(out.escaped, closing); });
    return false;
  };
  walk_.walk(escaped, 1, escaped[0].next, state, enter_escaped, [](uint32_t, const TrieNode&) { return true; });
  if (!cut) out.n_chars_known = kAnyNumber;
}

Mask StringMasks::any_text_inside(const AnyText& kind, int32_t n_chars) {
  const auto ids_of = [&](const std::vector<Counted>& tokens) {
    std::vector<int32_t> ids;
    for (const Counted& counted : tokens)
      if (counted.n_chars <= n_chars) ids.push_back(counted.token);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const auto row = vocabulary_.string_mask(n_chars);
  if (kind.added.empty() && kind.removed.empty()) return {n_chars > 0 ? row.data() : nullptr, {}, {}};
  const std::vector<int32_t> added = ids_of(kind.added);
  const std::vector<int32_t> removed = ids_of(kind.removed);
  size_t n_row = 0;
  for (const MaskWord word : row) n_row += static_cast<size_t>(std::popcount(word));
  if (n_row == removed.size()) return store_.keep(nullptr, added, {});
  return store_.keep(row.data(), added, removed);
}

/// Takes away the closings with fewer or more characters before the quote.
void StringMasks::keep_within(int32_t min, int32_t max, Closings& closings) const {
  if (closings.empty()) return;
  if (min > strings_.closing_chars_max) return closings.assign(closings.size(), 0);
  const size_t n_words = closings.size();
  const MaskWord* up_to =
      &strings_.chars_up_to[n_words * static_cast<size_t>(std::min(max, strings_.closing_chars_max))];
  const MaskWord* below = min > 0 ? &strings_.chars_up_to[n_words * static_cast<size_t>(min - 1)] : nullptr;
  for (size_t i = 0; i < n_words; ++i) closings[i] &= below == nullptr ? up_to[i] : up_to[i] & ~below[i];
}

// -- other strings

/// Number of what is inside of strings of the kind.
uint32_t StringMasks::other(State state, uint32_t kind, int32_t n_chars, bool count) {
  const uint32_t known = known_other(kind, n_chars, count);
  if (known != kNone) return known;
  if (!walk_.machine().has_kinds()) return own_other(state, kind, n_chars, count);
  const std::optional<KindKey> key = key_of(kind, count ? kCountedTokens : kTokens);
  if (key) {
    if (auto known_to_all = vocabulary_.kinds().find<KindTokens>(*key))
      return add_other(kind, kAnyNumber, std::move(known_to_all));
  }
  const uint32_t of_family = family_other(state, kind, count);
  if (of_family == kNone) return own_other(state, kind, n_chars, count);
  other_of_.insert_or_assign(kind, of_family);
  if (others_[of_family].n_chars_known == kAnyNumber)
    share(key, others_[of_family].tokens, others_[of_family].tokens->n_bytes());
  return of_family;
}

uint32_t StringMasks::add_other(uint32_t kind, int32_t n_chars_known, std::shared_ptr<const KindTokens> tokens) {
  const auto number = static_cast<uint32_t>(others_.size());
  others_.push_back({std::move(tokens), n_chars_known, {}});
  other_of_.insert_or_assign(kind, number);
  return number;
}

std::optional<KindKey> StringMasks::key_of(uint32_t kind, Question question, int32_t n_chars) const {
  const auto name = walk_.machine().kind_name(kind);
  if (!name) return std::nullopt;
  return KindKey{name->print, name->machine, question, n_chars};
}

template <class Fact>
std::shared_ptr<const Fact> StringMasks::share(const std::optional<KindKey>& key, std::shared_ptr<const Fact> fact,
                                               int64_t n_bytes) {
  if (!key || !walk_.machine().failure().empty()) return fact;  // what was found without fuel is not so
  return vocabulary_.kinds().keep(*key, std::move(fact), n_bytes);
}

uint32_t StringMasks::known_other(uint32_t kind, int32_t n_chars, bool count) const {
  const auto known = other_of_.find(kind);
  if (known == other_of_.end()) return kNone;
  const Other& there = others_[known->second];
  return there.n_chars_known >= n_chars && (!count || there.tokens->was_counted) ? known->second : kNone;
}

/// What all kinds of a family share, once several of them have come up; kNone: nothing, or not yet.
uint32_t StringMasks::family_other(State state, uint32_t kind, bool count) {
  for (const int32_t n_counted : {4, 16}) {
    const auto [low, high] = walk_.machine().kind_bounds(kind, n_counted);
    if (low == high || kind == low || kind == high) return kNone;
    Family& family = families_[{low, high}];
    if (!family.is_known) {
      if (++family.n_asked < 2) return kNone;
      const uint32_t least = own_other(state, low, kAnyNumber, count);
      const uint32_t most = own_other(state, high, kAnyNumber, count);
      family.is_known = true;
      if (equal(vocabulary_, *others_[least].tokens, *others_[most].tokens)) family.other = most;
    }
    if (family.other != kNone && (!count || others_[family.other].tokens->was_counted)) return family.other;
  }
  return kNone;
}

uint32_t StringMasks::own_other(State state, uint32_t kind, int32_t n_chars, bool count) {
  const uint32_t known = known_other(kind, n_chars, count);
  if (known != kNone) return known;
  if (!walk_.machine().has_kinds()) {
    const auto tokens = std::make_shared<KindTokens>();
    const int32_t n_chars_known = find_other_without_kinds(state, n_chars, *tokens);
    return add_other(kind, n_chars_known, tokens);
  }
  const std::optional<KindKey> key = key_of(kind, count ? kCountedTokens : kTokens);
  if (key) {
    if (auto known_to_all = vocabulary_.kinds().find<KindTokens>(*key))
      return add_other(kind, kAnyNumber, std::move(known_to_all));
    n_chars = kAnyNumber;
  }
  const auto tokens = std::make_shared<KindTokens>();
  const bool is_few = !count && n_chars == kAnyNumber && find_few(kind, *tokens);
  const int32_t n_chars_known = is_few ? kAnyNumber : find_other(state, kind, n_chars, count, *tokens);
  return add_other(kind, n_chars_known, share<KindTokens>(key, tokens, tokens->n_bytes()));
}

/// For strings of few texts. False: there are more.
bool StringMasks::find_few(uint32_t kind, KindTokens& out) {
  const State inside = walk_.machine().kind_state(kind);
  if (inside == kDead) return false;
  const auto enter = [](uint32_t, const TrieNode& node) {
    return node.byte >= 0x20 && node.byte != '"' && node.byte != '\\';
  };
  const auto enter_all = [](uint32_t, const TrieNode&) { return true; };
  ids_.clear();
  const auto found = [&](uint32_t, const TrieNode& node) {
    for (int32_t token = node.token; token >= 0; token = vocabulary_.same_bytes(token)) ids_.push_back(token);
    return true;
  };
  kind_walk_.begin(kFewNodesMax);
  kind_walk_.walk_from_root(kind, enter, found);
  if (kind_walk_.stopped()) return false;
  walk_.begin();
  walk_.walk(strings_.escapes, 1, strings_.escapes[0].next, inside, enter_all, found);
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  MaskStore store(vocabulary_);
  out.all = TokenSet(vocabulary_, store.keep_ids(ids_));
  return true;
}

TokenSet StringMasks::find_number_tokens(uint32_t kind) {
  ids_.clear();
  kind_walk_.begin();
  kind_walk_.walk_from_root(
      kind, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t, const TrieNode& node) {
        for (int32_t token = node.token; token >= 0; token = vocabulary_.same_bytes(token)) ids_.push_back(token);
        return true;
      });
  MaskStore store(vocabulary_);
  return TokenSet(vocabulary_, store.keep_ids(ids_));
}

Mask StringMasks::number_tokens(uint32_t kind) {
  const auto [at, is_new] = number_tokens_.try_emplace(kind);
  if (!is_new) return at->second->mask();
  const std::optional<KindKey> key = key_of(kind, kNumberTokens);
  if (key) at->second = vocabulary_.kinds().find<TokenSet>(*key);
  if (!at->second) {
    auto tokens = std::make_shared<TokenSet>(find_number_tokens(kind));
    const int64_t n_bytes = tokens->n_bytes();
    at->second = share<TokenSet>(key, std::move(tokens), n_bytes);
  }
  return at->second->mask();
}

/// The characters up to which all is known.
int32_t StringMasks::find_other(State state, uint32_t kind, int32_t n_chars, bool count, KindTokens& out) {
  out.was_counted = out.is_counted = count;
  KindWalk raw(vocabulary_.token_trie(), walk_.machine(), count);
  raw.walk(kind);
  out.is_counted = count && raw.is_counted();
  out.n_chars_max = raw.n_chars_max();
  std::vector<Counted> escapes;  // n_chars: that must still come
  const State inside = walk_.machine().kind_state(kind);
  if (inside != kDead) n_chars = kAnyNumber;
  bool cut = false;
  const auto enter = [&](uint32_t, const TrieNode& node) {
    cut = cut || node.chars > static_cast<uint32_t>(n_chars);
    return node.chars <= static_cast<uint32_t>(n_chars);
  };
  walk_.begin();
  walk_.walk(strings_.escapes, 1, strings_.escapes[0].next, inside == kDead ? state : inside, enter,
             [&](uint32_t, const TrieNode& node) {
               if (node.token < 0) return true;
               const int32_t n_more = out.is_counted ? walk_.machine().chars_left(walk_.state()) : 0;
               const bool is_sure = n_more >= 0 && n_more <= KindWalk::kMoreMax;
               const auto n_chars_here = static_cast<int32_t>(node.chars);
               // Of a shortest way the bytes are known, which are no less than its characters.
               const int64_t n_bytes = is_sure ? 0 : walk_.machine().distance(walk_.state());
               const int32_t n_chars_all =
                   n_chars_here + (is_sure       ? n_more
                                   : n_bytes < 0 ? kCharsMax
                                                 : static_cast<int32_t>(std::min<int64_t>(n_bytes, kCharsMax)));
               out.n_chars_max = std::max(out.n_chars_max, n_chars_all);
               for (int32_t token = node.token; token >= 0; token = vocabulary_.same_bytes(token))
                 (is_sure ? escapes : out.unsure).push_back({is_sure ? n_more : n_chars_all, token});
               return true;
             });
  std::vector<MaskWord> row(static_cast<size_t>(vocabulary_.n_words()));
  set_tokens(vocabulary_.token_trie(), raw.runs(), -1, row);
  for (const std::vector<Counted>* tokens : {&escapes, &out.unsure})
    for (const Counted& token : *tokens) set_bit(row, token.token);
  out.all = TokenSet::of_row(vocabulary_, row);
  if (!out.is_counted) {
    out.unsure = {};
    return cut ? n_chars : kAnyNumber;
  }
  std::array<bool, KindWalk::kMoreMax + 1> has_row{};
  for (const TokenRun& run : raw.runs()) has_row[static_cast<size_t>(run.n_more)] = true;
  for (const Counted& token : escapes) has_row[static_cast<size_t>(token.n_chars)] = true;
  for (int32_t n_more = 0; n_more <= KindWalk::kMoreMax; ++n_more) {
    if (!has_row[static_cast<size_t>(n_more)]) continue;
    set_tokens(vocabulary_.token_trie(), raw.runs(), n_more, row);
    for (const Counted& token : escapes)
      if (token.n_chars == n_more) set_bit(row, token.token);
    out.rows.push_back({n_more, TokenSet::of_row(vocabulary_, row)});
  }
  return cut ? n_chars : kAnyNumber;
}

/// The characters up to which all is known.
int32_t StringMasks::find_other_without_kinds(State state, int32_t n_chars, KindTokens& out) {
  const auto n_chars_limit = static_cast<uint32_t>(n_chars);
  bool cut = false;
  const auto enter = [&](uint32_t, const TrieNode& node) {
    if (node.closes != 0) return false;
    if (node.chars <= n_chars_limit) return true;
    cut = true;
    return false;
  };
  std::vector<MaskWord> row(static_cast<size_t>(vocabulary_.n_words()));
  walk_.begin();
  walk_.walk_from_root(state, enter, [&](uint32_t, const TrieNode& node) {
    if (node.token < 0) return true;
    out.n_chars_max = std::max(out.n_chars_max, static_cast<int32_t>(node.chars));
    for (int32_t token = node.token; token >= 0; token = vocabulary_.same_bytes(token)) set_bit(row, token);
    return true;
  });
  out.all = TokenSet::of_row(vocabulary_, row);
  return cut ? n_chars : kAnyNumber;
}

/// Tokens of up to so many characters, with those that must still come.
Mask StringMasks::other_inside(State state, Other& kind, int32_t min, int32_t n_chars) {
  const KindTokens& tokens = *kind.tokens;
  if (n_chars == kAnyNumber && min == 0) return tokens.all.mask();
  const auto known = kind.up_to.find(n_chars);
  if (tokens.unsure.empty() && known != kind.up_to.end()) return known->second;
  const std::span<MaskWord> row = store_.begin_row();
  const auto add = [&](const TokenSet& set, int32_t n_chars_fit) {
    const std::span<const MaskWord> fit = vocabulary_.string_mask(n_chars_fit);
    const Mask mask = set.mask();
    if (mask.base != nullptr) {
      more_.resize(row.size());
      mask.fill(more_);
      for (size_t i = 0; i < row.size(); ++i) row[i] |= more_[i] & fit[i];
      return;
    }
    for (const int32_t token : mask.added)
      if (has_bit(fit.data(), token)) row[static_cast<size_t>(token) / 64] |= MaskWord{1} << (token % 64);
  };
  if (!tokens.is_counted) add(tokens.all, n_chars);
  for (const KindTokens::Row& of_count : tokens.rows) add(of_count.tokens, n_chars - of_count.n_more);
  for (const Counted& token : tokens.unsure)
    if ((min == 0 && token.n_chars <= n_chars) || step(state, vocabulary_.bytes(token.token)) != kDead)
      row[static_cast<size_t>(token.token) / 64] |= MaskWord{1} << (token.token % 64);
  const Mask mask = store_.keep_row();
  if (tokens.unsure.empty()) kind.up_to.emplace(n_chars, mask);
  return mask;
}

/// Which closings without escapes have characters of this kind before their quote.
const StringMasks::Closings& StringMasks::plain_closings(uint32_t kind) {
  const auto [at, is_new] = plain_closings_.try_emplace(kind);
  if (!is_new) return *at->second;
  const std::optional<KindKey> key = key_of(kind, kPlainClosings);
  if (key && (at->second = vocabulary_.kinds().find<Closings>(*key)) != nullptr) return *at->second;
  Closings out(static_cast<size_t>(strings_.n_closing_words));
  for (const auto& [text, set] : strings_.of_text) {
    uint32_t to = kind;
    for (size_t i = 0; i < text.size() && to != 0; ++i) to = kinds_.step(to, static_cast<uint8_t>(text[i]));
    if (to == 0 || !kinds_.complete(to)) continue;
    for (size_t i = 0; i < set.size(); ++i) out[i] |= set[i];
  }
  const auto n_bytes = static_cast<int64_t>(sizeof(Closings) + out.size() * sizeof(MaskWord));
  at->second = share<Closings>(key, std::make_shared<Closings>(std::move(out)), n_bytes);
  return *at->second;
}

/// Whether every text of raw characters stays inside, as where a pattern is searched for. Then so it does for all kinds
/// that can be reached.
bool StringMasks::takes_every_character(uint32_t kind) {
  if (!walk_.machine().has_kinds()) return false;
  const auto known = takes_every_.find(kind);
  if (known != takes_every_.end()) return known->second;
  const std::optional<KindKey> key = key_of(kind, kTakesEveryCharacter);
  std::shared_ptr<const bool> fact = key ? vocabulary_.kinds().find<bool>(*key) : nullptr;
  if (!fact) fact = share<bool>(key, std::make_shared<bool>(find_takes_every_character(kind)), sizeof(bool));
  takes_every_[kind] = *fact;
  return *fact;
}

bool StringMasks::find_takes_every_character(uint32_t kind) {
  std::vector<uint32_t> reached{kind};  // between characters
  std::unordered_set<uint32_t> seen{kind};
  struct Cut {
    uint32_t kind;
    StringScan scan;
  };
  std::vector<Cut> open;
  std::set<std::pair<uint32_t, int>> seen_cut;
  size_t n_steps = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    open.push_back({reached[i], {}});
    while (!open.empty()) {
      const Cut from = open.back();
      open.pop_back();
      for (int byte = from.scan.between() ? 0x20 : 0x80; byte < 0xF5; ++byte) {
        Cut to = from;
        if (byte == '"' || byte == '\\' || !to.scan.step(static_cast<uint8_t>(byte))) continue;
        to.kind = kinds_.step(from.kind, static_cast<uint8_t>(byte));
        if (to.kind == 0 || reached.size() > kKindsReachedMax || ++n_steps > kKindStepsMax) return false;
        if (!to.scan.between()) {
          if (seen_cut.emplace(to.kind, to.scan.cut()).second) open.push_back(to);
        } else if (seen.insert(to.kind).second) {
          reached.push_back(to.kind);
        }
      }
    }
  }
  for (const uint32_t other_kind : reached) takes_every_[other_kind] = true;
  return true;
}

/// Which closings of the trie the machine takes up to their quote.
const StringMasks::Closings& StringMasks::closings_asked(State state, const StringBody& body, int32_t max,
                                                         const std::vector<TrieNode>& trie) {
  const int32_t n_max = strings_.closing_chars_max;
  const OtherClosings key{body.kind, std::min(body.min_left, n_max + 1), max > n_max ? -1 : max};
  const auto [at, is_new] = other_closings_.try_emplace(key);
  if (!is_new) return at->second;
  Closings& out = at->second;
  out.resize(static_cast<size_t>(strings_.n_closing_words));
  walk_.begin();
  walk_.walk(
      trie, 1, trie[0].next, state, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t index, const TrieNode& node) {
        if (node.closes == 0) return true;
        for_each_value(trie, index, [&](int32_t closing) { set_bit(out, closing); });
        return false;
      });
  return out;
}

// -- what follows the quote

/// Takes away the closings whose suffix may not follow.
void StringMasks::keep_allowed(State state, const StringBody& body, Closings& closings) {
  const Closings& allowed = allowed_after(body.after);
  const Closings before = closings;
  for (size_t i = 0; i < closings.size(); ++i) closings[i] &= allowed[i];
  if (is_bounded(body.reach)) {
    for_each_bit(before, [&](int32_t closing) {
      if (is_beyond(closing, body.reach)) ask(state, closing, closings);
    });
  }
  if (!body.except.empty()) make_exceptions(state, body, closings);
}

void StringMasks::make_exceptions(State state, const StringBody& body, Closings& closings) {
  std::vector<const Closings*> sets;
  std::vector<std::string_view> texts;  // of the sets; they live in the vocabulary
  for (const std::string_view text : body.except) {
    if (text.size() > strings_.text_bytes_max) continue;
    const auto found = strings_.of_text.find(text);
    if (found == strings_.of_text.end()) continue;
    texts.push_back(found->first);
    sets.push_back(&found->second);
  }
  for (size_t n = 0; n < sets.size(); ++n) {  // body.except is no longer looked at: the machine is asked
    for (size_t i = 0; i < closings.size(); ++i) closings[i] &= ~(*sets[n])[i];
    take_closings_of(state, texts[n], closings);
  }
  if (strings_.escaped_trie.size() == 1) return;
  for (int32_t closing = 0; closing < static_cast<int32_t>(strings_.closings.size()); ++closing)
    if (!has_bit(strings_.plain.data(), closing)) ask(state, closing, closings);
}

State StringMasks::step(State state, std::string_view bytes) { return walk_.machine().steps(state, bytes); }

/// Sets the bit of one closing by walking its token.
void StringMasks::ask(State state, int32_t closing, Closings& closings) {
  const int32_t token = strings_.closings[static_cast<size_t>(closing)].token;
  step(state, vocabulary_.bytes(token)) == kDead ? clear_bit(closings, closing) : set_bit(closings, closing);
}

/// Where the quote leads elsewhere after some texts, or nowhere: each text by itself.
void StringMasks::closings_by_text(State state, const StringBody& body, const Inside& inside, Closings& out) {
  Closings may = strings_.plain;
  if (!body.any_text && walk_.machine().has_kinds()) may = plain_closings(inside.kind);
  for (const auto& [text, set] : strings_.of_text) {
    const bool any =
        std::ranges::any_of(set, [&, i = size_t{0}](MaskWord word) mutable { return (word & may[i++]) != 0; });
    if (any) take_closings_of(state, text, out);
  }
  if (strings_.escaped_trie.size() == 1) return;
  walk_.begin();
  walk_.walk(
      strings_.escaped_trie, 1, strings_.escaped_trie[0].next, state, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t, const TrieNode& node) {
        if (node.token >= 0) set_bit(out, node.token);
        return true;
      });
}

/// Some closings may be beyond the reach.
bool StringMasks::is_bounded(const Reach& reach) const {
  return !reach.brackets || (reach.n_bytes >= 0 && reach.n_bytes < strings_.suffix_bytes_max);
}

bool StringMasks::is_beyond(int32_t closing, const Reach& reach) const {
  const Closing& token = strings_.closings[static_cast<size_t>(closing)];
  return (reach.n_bytes >= 0 && token.suffix_bytes > reach.n_bytes) || (!reach.brackets && token.has_bracket);
}

/// Adds the closings with this text before the quote that may come.
void StringMasks::take_closings_of(State state, std::string_view text, Closings& out) {
  Reach reach;
  const State after = walk_.machine().after_text(state, text, reach);
  if (after == kDead) return;
  const Closings& set = strings_.of_text.at(text);
  // All suffixes are a walk of 10 us; most texts stand before a few of them only.
  size_t n_closings = 0;
  for (const MaskWord word : set) n_closings += static_cast<size_t>(std::popcount(word));
  const bool is_walked = n_closings > kClosingsAsked || after_.contains(after);
  if (is_walked) {
    const Closings& allowed = allowed_after(after);
    for (size_t i = 0; i < out.size(); ++i) out[i] |= set[i] & allowed[i];
  }
  if (is_walked && !is_bounded(reach)) return;
  for_each_bit(set, [&](int32_t closing) {
    const Closing& token = strings_.closings[static_cast<size_t>(closing)];
    if (is_beyond(closing, reach)) {
      ask(state, closing, out);
    } else if (!is_walked) {
      const std::string_view bytes = vocabulary_.bytes(token.token);
      if (step(after, bytes.substr(bytes.size() - static_cast<size_t>(token.suffix_bytes))) != kDead)
        set_bit(out, closing);
    }
  });
}

const StringMasks::Closings& StringMasks::allowed_after(State after) {
  const auto [at, is_new] = after_.try_emplace(after);
  Closings& out = at->second;
  if (!is_new) return out;
  const auto n_words = static_cast<size_t>(strings_.n_closing_words);
  out.resize(n_words);
  if (after == kDead) return out;
  const auto take = [&](int32_t suffix) {
    for (size_t i = 0; i < n_words; ++i) out[i] |= strings_.of_suffix[static_cast<size_t>(suffix) * n_words + i];
  };
  const std::vector<TrieNode>& trie = strings_.suffixes;
  if (trie[0].token >= 0) take(trie[0].token);
  walk_.begin();
  walk_.walk(
      trie, 1, trie[0].next, after, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t, const TrieNode& node) {
        if (node.token >= 0) take(node.token);
        return true;
      });
  return out;
}

uint32_t StringMasks::number_of(const Closings& closings) {
  return numbers_.try_emplace(closings, static_cast<uint32_t>(numbers_.size())).first->second;
}

int64_t StringMasks::n_bytes() const {
  constexpr size_t kNode = 48;  // a map's own part of an entry
  const size_t set = static_cast<size_t>(strings_.n_closing_words) * sizeof(MaskWord) + sizeof(Closings);
  int64_t n_row_bytes = 0;
  for (const Other& other : others_)
    n_row_bytes +=
        static_cast<int64_t>(sizeof(Other) + other.up_to.size() * (kNode + sizeof(Mask))) + other.tokens->n_bytes();
  for (const auto& [kind, tokens] : number_tokens_) n_row_bytes += kNode + tokens->n_bytes();
  for (const auto& [kind, texts] : texts_)
    n_row_bytes += static_cast<int64_t>(kNode + sizeof(Texts) + texts.tokens.capacity() * sizeof(int32_t) +
                                        texts.ended.capacity() * sizeof(std::string_view));
  return n_row_bytes +
         static_cast<int64_t>((after_.size() + numbers_.size() + other_closings_.size()) * (kNode + set + 16) +
                              masks_.size() * (kNode + sizeof(Key) + sizeof(Mask)) +
                              plain_closings_.size() * (kNode + set + 16) +
                              any_text_.size() * (kNode + sizeof(AnyText) + set) +
                              (other_of_.size() + families_.size()) * (kNode + sizeof(Family)) + marks_.capacity());
}

}  // namespace deepinfer::grammar
