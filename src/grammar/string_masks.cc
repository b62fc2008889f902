#include "grammar/string_masks.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "grammar/mask_bits.h"
#include "grammar/token_trie.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kIdsKept = 2048;
constexpr size_t kKindsReachedMax = 64;
constexpr size_t kKindStepsMax = 4096;
constexpr int32_t kFewNodesMax = 256;
constexpr int32_t kCountedMin = 8;  // characters
constexpr int32_t kCharsMax = 1 << 30;

}  // namespace

Mask StringMasks::mask(State state, const StringBody& body) {
  if (!has_room(body)) return find_mask(state, body);
  const int32_t min = std::min(body.min_left, vocabulary_.token_bytes_max() + 1);
  const uint64_t key = uint64_t{body.after} << 32 | static_cast<uint32_t>(min);
  if (const auto known = roomy_.find(key); known != roomy_.end()) return known->second;
  const Mask mask = find_mask(state, body);
  roomy_.emplace(key, mask);
  return mask;
}

/// No token is too long for the string, and nothing else but what follows its quote makes a difference: then the states of a long
/// text, each with a limit of its own, have one mask.
bool StringMasks::has_room(const StringBody& body) const {
  const bool is_far = body.max_left < 0 || body.max_left >= vocabulary_.token_bytes_max();
  const bool is_one =
      body.same_after && body.except.empty() && body.reach.n_bytes < 0 && body.reach.brackets && body.reach.values;
  return body.any_text && body.every_escape && is_far && is_one;
}

Mask StringMasks::find_mask(State state, const StringBody& body) {
  const Inside inside = inside_of(state, body);
  const StringClosings::Set* const escaped = inside.any == nullptr ? nullptr : &inside.any->escaped;
  StringClosings::Set closings = closings_.allowed(state, body, {inside.kind, inside.min, inside.max, escaped});
  const bool asks_late = inside.any != nullptr ? !body.every_escape : body.counted_kind != 0;
  if (asks_late) {
    for (const int32_t closing : strings_.late_closings) closings_.ask(state, closing, closings);
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
  const Key key{inside.kind, inside.other, min, n_chars, closings_.number_of(closings)};
  const auto known = masks_.find(key);
  if (known != masks_.end()) return asks_late ? with_late_escapes(state, known->second) : known->second;
  const Mask tokens =
      other == nullptr ? any_text_inside(*inside.any, n_chars) : other_inside(state, *other, min, n_chars);
  ids_.clear();
  closings_.append_tokens(closings, ids_);
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
    vocabulary_.append_all(first, is_allowed ? missing : wrong);
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
    if (step(state, vocabulary_.bytes(first)) != kDead) vocabulary_.append_all(first, ids_);
  StringClosings::Set closings = closings_.none();
  for (const std::string_view text : texts->ended) closings_.add_text(state, text, closings);
  for (const int32_t closing : texts->closings_to_ask) closings_.ask(state, closing, closings);
  const size_t n_inside = ids_.size();
  closings_.append_tokens(closings, ids_);
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
      inside.other = other(body.counted_kind, true);
      if (others_[inside.other].tokens->is_counted) {
        inside.kind = body.counted_kind;
        inside.min = body.counted_min;
        inside.max = body.counted_max < 0 ? kAnyNumber : body.counted_max;
        return inside;
      }
    }
  }
  inside.other = other(body.kind, false);
  return inside;
}

// -- strings of any text

const StringMasks::AnyText& StringMasks::any_text(State state, const StringBody& body, int32_t n_chars) {
  std::shared_ptr<const AnyText>& known = any_text_[body.every_escape ? 0 : body.kind];
  if (known != nullptr && known->n_chars_known >= n_chars) return *known;
  if (body.every_escape) {
    const auto found = std::make_shared<AnyText>();
    found->n_chars_known = kAnyNumber;
    found->escaped.assign(static_cast<size_t>(strings_.n_closing_words), ~MaskWord{0});
    const size_t n_last = strings_.closings.size() % 64;
    if (n_last > 0) found->escaped.back() = (MaskWord{1} << n_last) - 1;
    known = found;
    return *known;
  }
  if (n_chars >= vocabulary_.token_bytes_max()) n_chars = kAnyNumber;  // no token has more
  known = facts_.get<AnyText>(
      body.kind, Question::kAnyText, [&] { return find_any_text(state, n_chars); }, n_chars);
  return *known;
}

/// Walks the tokens about which the machine may decide otherwise: escapes and cut characters.
StringMasks::AnyText StringMasks::find_any_text(State state, int32_t n_chars) {
  AnyText out;
  out.n_chars_known = n_chars;
  const auto n_chars_limit = static_cast<uint32_t>(n_chars);
  bool cut = false;
  const auto enter = [&](uint32_t, const TrieNode& node) {
    if (node.chars <= n_chars_limit) return true;
    cut = true;
    return false;
  };
  out.escaped.assign(static_cast<size_t>(strings_.n_closing_words), 0);

  const std::vector<TrieNode>& rest = strings_.rest;
  marks_.assign(rest.size(), 0);
  walk_.begin();
  walk_.walk(rest, 1, rest[0].next, state, enter, [&](uint32_t index, const TrieNode&) {
    marks_[index] = 1;
    return true;
  });
  const std::span<const MaskWord> all = vocabulary_.string_mask(vocabulary_.string_chars_max());
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
  return out;
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
  if (n_ones(row) == static_cast<int32_t>(removed.size())) return store_.keep(nullptr, added, {});
  return store_.keep(row.data(), added, removed);
}

// -- other strings

/// Number of what is inside of strings of the kind, without limits.
uint32_t StringMasks::other(uint32_t kind, bool count) {
  const uint32_t known = known_other(kind, count);
  if (known != kNone) return known;
  const Question question = count ? Question::kCountedTokens : Question::kTokens;
  if (auto known_to_all = facts_.find<KindTokens>(kind, question)) return add_other(kind, std::move(known_to_all));
  const uint32_t of_family = family_other(kind, count);
  if (of_family == kNone) return own_other(kind, count);
  other_of_.insert_or_assign(kind, of_family);
  facts_.keep(kind, question, others_[of_family].tokens);
  return of_family;
}

uint32_t StringMasks::add_other(uint32_t kind, std::shared_ptr<const KindTokens> tokens) {
  const auto number = static_cast<uint32_t>(others_.size());
  others_.push_back({std::move(tokens), {}});
  other_of_.insert_or_assign(kind, number);
  return number;
}

uint32_t StringMasks::known_other(uint32_t kind, bool count) const {
  const auto known = other_of_.find(kind);
  if (known == other_of_.end()) return kNone;
  return !count || others_[known->second].tokens->was_counted ? known->second : kNone;
}

/// What all kinds of a family share, once several of them have come up; kNone: nothing, or not yet.
uint32_t StringMasks::family_other(uint32_t kind, bool count) {
  for (const int32_t n_counted : {4, 16}) {
    const auto [low, high] = walk_.machine().kind_bounds(kind, n_counted);
    if (low == high || kind == low || kind == high) return kNone;
    Family& family = families_[{low, high}];
    if (!family.is_known) {
      if (++family.n_asked < 2) return kNone;
      const uint32_t least = own_other(low, count);
      const uint32_t most = own_other(high, count);
      family.is_known = true;
      if (equal(vocabulary_, *others_[least].tokens, *others_[most].tokens)) family.other = most;
    }
    if (family.other != kNone && (!count || others_[family.other].tokens->was_counted)) return family.other;
  }
  return kNone;
}

uint32_t StringMasks::own_other(uint32_t kind, bool count) {
  const uint32_t known = known_other(kind, count);
  if (known != kNone) return known;
  const auto find = [&] {
    KindTokens tokens;
    if (count || !find_few(kind, tokens)) find_other(kind, count, tokens);
    return tokens;
  };
  return add_other(kind, facts_.get<KindTokens>(kind, count ? Question::kCountedTokens : Question::kTokens, find));
}

/// For strings of few texts. False: there are more.
bool StringMasks::find_few(uint32_t kind, KindTokens& out) {
  const auto enter = [](uint32_t, const TrieNode& node) {
    return node.byte >= 0x20 && node.byte != '"' && node.byte != '\\';
  };
  const auto enter_all = [](uint32_t, const TrieNode&) { return true; };
  ids_.clear();
  const auto found = [&](uint32_t, const TrieNode& node) {
    if (node.token >= 0) out.n_chars_max = std::max(out.n_chars_max, static_cast<int32_t>(node.chars));
    vocabulary_.append_all(node.token, ids_);
    return true;
  };
  kind_walk_.begin(kFewNodesMax);
  kind_walk_.walk_from_root(kind, enter, found);
  if (kind_walk_.stopped()) return false;
  walk_.begin();
  walk_.walk(strings_.escapes, 1, strings_.escapes[0].next, walk_.machine().kind_state(kind), enter_all, found);
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
        vocabulary_.append_all(node.token, ids_);
        return true;
      });
  MaskStore store(vocabulary_);
  return TokenSet(vocabulary_, store.keep_ids(ids_));
}

Mask StringMasks::number_tokens(uint32_t kind) {
  std::shared_ptr<const TokenSet>& known = number_tokens_[kind];
  if (known == nullptr)
    known = facts_.get<TokenSet>(kind, Question::kNumberTokens, [&] { return find_number_tokens(kind); });
  return known->mask();
}

void StringMasks::find_other(uint32_t kind, bool count, KindTokens& out) {
  out.was_counted = out.is_counted = count;
  KindWalk raw(vocabulary_.token_trie(), walk_.machine(), count);
  raw.walk(kind);
  out.is_counted = count && raw.is_counted();
  out.n_chars_max = raw.n_chars_max();
  std::vector<Counted> escapes;  // n_chars: that must still come
  walk_.begin();
  walk_.walk(
      strings_.escapes, 1, strings_.escapes[0].next, walk_.machine().kind_state(kind),
      [](uint32_t, const TrieNode&) { return true; },
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
    return;
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
      if (has_bit(fit, token)) set_bit(row, token);
  };
  if (!tokens.is_counted) add(tokens.all, n_chars);
  for (const KindTokens::Row& of_count : tokens.rows) add(of_count.tokens, n_chars - of_count.n_more);
  for (const Counted& token : tokens.unsure)
    if ((min == 0 && token.n_chars <= n_chars) || step(state, vocabulary_.bytes(token.token)) != kDead)
      set_bit(row, token.token);
  const Mask mask = store_.keep_row();
  if (tokens.unsure.empty()) kind.up_to.emplace(n_chars, mask);
  return mask;
}

/// Whether every text of raw characters stays inside, as where a pattern is searched for. Then so it does for all kinds
/// that can be reached.
bool StringMasks::takes_every_character(uint32_t kind) {
  const auto known = takes_every_.find(kind);
  if (known != takes_every_.end()) return known->second;
  const auto find = [&] { return find_takes_every_character(kind); };
  return takes_every_[kind] = *facts_.get<bool>(kind, Question::kTakesEveryCharacter, find);
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

int64_t StringMasks::n_bytes() const {
  constexpr size_t kNode = 48;  // a map's own part of an entry
  int64_t n_row_bytes = 0;
  for (const Other& other : others_)
    n_row_bytes +=
        static_cast<int64_t>(sizeof(Other) + other.up_to.size() * (kNode + sizeof(Mask))) + other.tokens->n_bytes();
  for (const auto& [kind, tokens] : number_tokens_) n_row_bytes += kNode + tokens->n_bytes();
  for (const auto& [kind, texts] : texts_)
    n_row_bytes += static_cast<int64_t>(kNode + sizeof(Texts) + texts.tokens.capacity() * sizeof(int32_t) +
                                        texts.ended.capacity() * sizeof(std::string_view));
  for (const auto& [kind, any] : any_text_) n_row_bytes += static_cast<int64_t>(kNode) + any->n_bytes();
  return n_row_bytes + closings_.n_bytes() +
         static_cast<int64_t>(masks_.size() * (kNode + sizeof(Key) + sizeof(Mask)) + marks_.capacity() +
                              roomy_.size() * (kNode + sizeof(Mask)) +
                              (other_of_.size() + families_.size() + takes_every_.size()) * (kNode + sizeof(Family)));
}

}  // namespace deepinfer::grammar
