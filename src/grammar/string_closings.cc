#include "grammar/string_closings.h"

#include <algorithm>

#include "grammar/mask_bits.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kClosingsAsked = 8;

}  // namespace

StringClosings::Set StringClosings::allowed(State state, const StringBody& body, const Text& text) {
  if (!body.same_after) return by_text(state, body, text);
  Set set = before_quote(state, body, text);
  keep_allowed(state, body, set);
  return set;
}

void StringClosings::append_tokens(const Set& set, std::vector<int32_t>& tokens) const {
  for_each_bit(
      set, [&](int32_t index) { vocabulary_.append_all(strings_.closings[static_cast<size_t>(index)].token, tokens); });
}

uint32_t StringClosings::number_of(const Set& set) {
  return numbers_.try_emplace(set, static_cast<uint32_t>(numbers_.size())).first->second;
}

void StringClosings::ask(State state, int32_t closing, Set& out) {
  const int32_t token = strings_.closings[static_cast<size_t>(closing)].token;
  step(state, vocabulary_.bytes(token)) == kDead ? clear_bit(out, closing) : set_bit(out, closing);
}

// -- before the quote

/// Those whose text may stand there.
StringClosings::Set StringClosings::before_quote(State state, const StringBody& body, const Text& text) {
  Set set = none();
  if (body.any_text) {
    for (size_t i = 0; i < set.size(); ++i) set[i] = strings_.plain[i] | (*text.escaped)[i];
  } else if (walk_.machine().kind_bytes(text.kind) <= static_cast<int64_t>(strings_.text_bytes_max)) {
    set = plain(text.kind);
  }
  keep_within(text.min, text.max, set);
  if (body.any_text || !has_escaped()) return set;
  const Set& more = escaped(state, body);
  for (size_t i = 0; i < set.size(); ++i) set[i] |= more[i];
  return set;
}

/// Takes away those with fewer or more characters before the quote.
void StringClosings::keep_within(int32_t min, int32_t max, Set& set) const {
  if (set.empty()) return;
  if (min > strings_.closing_chars_max) return set.assign(set.size(), 0);
  const size_t n_words = set.size();
  const MaskWord* up_to =
      &strings_.chars_up_to[n_words * static_cast<size_t>(std::min(max, strings_.closing_chars_max))];
  const MaskWord* below = min > 0 ? &strings_.chars_up_to[n_words * static_cast<size_t>(min - 1)] : nullptr;
  for (size_t i = 0; i < n_words; ++i) set[i] &= below == nullptr ? up_to[i] : up_to[i] & ~below[i];
}

/// Those without escapes that have characters of this kind before their quote.
const StringClosings::Set& StringClosings::plain(uint32_t kind) {
  std::shared_ptr<const Set>& known = plain_[kind];
  if (known == nullptr)
    known = facts_.get<Set>(kind, KindFacts::Question::kPlainClosings, [&] { return find_plain(kind); });
  return *known;
}

StringClosings::Set StringClosings::find_plain(uint32_t kind) {
  Set found = none();
  Machine& machine = walk_.machine();
  for (const auto& [text, set] : strings_.all_closings.of_text) {
    uint32_t to = kind;
    for (size_t i = 0; i < text.size() && to != 0; ++i) to = machine.kind_step(to, static_cast<uint8_t>(text[i]));
    if (to == 0 || !machine.kind_ends(to)) continue;
    for (size_t i = 0; i < set.size(); ++i) found[i] |= set[i];
  }
  return found;
}

/// Those with an escape before the quote that the machine takes up to there.
const StringClosings::Set& StringClosings::escaped(State state, const StringBody& body) {
  const int32_t n_max = strings_.closing_chars_max;
  const EscapedKey key{body.kind, std::min(body.min_left, n_max + 1), body.max_left > n_max ? -1 : body.max_left};
  const auto [at, is_new] = escaped_.try_emplace(key);
  Set& out = at->second;
  if (!is_new) return out;
  out = none();
  const std::vector<TrieNode>& trie = strings_.escaped_trie;
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

// -- behind the quote

/// Takes away those whose suffix may not follow.
void StringClosings::keep_allowed(State state, const StringBody& body, Set& set) {
  const Set& may = allowed_after(body.after);
  Set before = set;
  for (size_t i = 0; i < set.size(); ++i) {
    before[i] &= tables_.all[i];
    set[i] &= may[i];
  }
  if (is_bounded(body.reach)) {
    for_each_bit(before, [&](int32_t closing) {
      if (is_beyond(closing, body.reach)) ask(state, closing, set);
    });
  }
  if (!body.except.empty()) make_exceptions(state, body, set);
}

void StringClosings::make_exceptions(State state, const StringBody& body, Set& set) {
  std::vector<std::string_view> texts;  // they live in the vocabulary
  for (const std::string_view text : body.except) {
    if (text.size() > strings_.text_bytes_max) continue;
    const auto found = tables_.of_text.find(text);
    if (found != tables_.of_text.end()) texts.push_back(found->first);
  }
  for (const std::string_view text : texts) {  // body.except is no longer looked at: the machine is asked
    const Set& of_text = tables_.of_text.at(text);
    for (size_t i = 0; i < set.size(); ++i) set[i] &= ~of_text[i];
    add_text(state, text, set);
  }
  if (!has_escaped()) return;
  for (int32_t closing = 0; closing < static_cast<int32_t>(strings_.closings.size()); ++closing)
    if (has_bit(tables_.all, closing) && !has_bit(strings_.plain, closing)) ask(state, closing, set);
}

/// Where the quote leads elsewhere after some texts, or nowhere: each text by itself.
StringClosings::Set StringClosings::by_text(State state, const StringBody& body, const Text& text) {
  Set out = none();
  const Set& may = body.any_text ? strings_.plain : plain(text.kind);
  for (const auto& [before, set] : tables_.of_text) {
    bool any = false;
    for (size_t i = 0; i < set.size(); ++i) any = any || (set[i] & may[i]) != 0;
    if (any) add_text(state, before, out);
  }
  if (!has_escaped()) return out;
  const std::vector<TrieNode>& trie = strings_.escaped_trie;
  walk_.begin();
  walk_.walk(
      trie, 1, trie[0].next, state, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t, const TrieNode& node) {
        if (node.token >= 0) set_bit(out, node.token);
        return true;
      });
  return out;
}

/// Some may be beyond the reach.
bool StringClosings::is_bounded(const Reach& reach) const {
  return !reach.brackets || !reach.values || (reach.n_bytes >= 0 && reach.n_bytes < strings_.suffix_bytes_max);
}

bool StringClosings::is_beyond(int32_t closing, const Reach& reach) const {
  const Closing& token = strings_.closings[static_cast<size_t>(closing)];
  return (reach.n_bytes >= 0 && token.suffix_bytes > reach.n_bytes) || (!reach.brackets && token.has_bracket) ||
         (!reach.values && token.ends_member);
}

void StringClosings::add_text(State state, std::string_view text, Set& out) {
  const auto found = tables_.of_text.find(text);
  if (found == tables_.of_text.end()) return;
  Reach reach;
  const State after = walk_.machine().after_text(state, text, reach);
  if (after == kDead) return;
  const Set& set = found->second;
  // All suffixes are a walk of 10 us; most texts stand before a few of them only.
  const bool is_walked = n_ones(set) > kClosingsAsked || after_.contains(after);
  if (is_walked) {
    const Set& may = allowed_after(after);
    for (size_t i = 0; i < out.size(); ++i) out[i] |= set[i] & may[i];
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

const StringClosings::Set& StringClosings::allowed_after(State after) {
  const auto [at, is_new] = after_.try_emplace(after);
  Set& out = at->second;
  if (!is_new) return out;
  out = none();
  if (after == kDead) return out;
  const auto take = [&](int32_t suffix) {
    const size_t n_words = out.size();
    for (size_t i = 0; i < n_words; ++i) out[i] |= strings_.of_suffix[static_cast<size_t>(suffix) * n_words + i];
  };
  const std::vector<TrieNode>& trie = tables_.suffixes;
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

int64_t StringClosings::n_bytes() const {
  constexpr size_t kNode = 64;  // a map's own part of an entry, and the key
  const size_t set = static_cast<size_t>(strings_.n_closing_words) * sizeof(MaskWord) + sizeof(Set);
  return static_cast<int64_t>((after_.size() + numbers_.size() + escaped_.size() + plain_.size()) * (kNode + set));
}

}  // namespace deepinfer::grammar
