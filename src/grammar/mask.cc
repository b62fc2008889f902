#include "grammar/mask.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/dense_walk.h"
#include "grammar/flat_map.h"
#include "grammar/mask_bits.h"
#include "grammar/mask_store.h"
#include "grammar/string_masks.h"
#include "grammar/structure_masks.h"
#include "grammar/trie_walk.h"

namespace deepinfer::grammar {

namespace {
constexpr int32_t kSparseNodesMax = 4096;  // live ones, before the walk begins anew as a dense one
constexpr size_t kIdsKept = 2048;          // a list of all tokens would be 0.5 MB
}  // namespace

struct MaskCache::Impl {
  Impl(const Vocabulary& words, Machine& automaton)
      : vocabulary(words),
        machine(automaton),
        walk(words, automaton),
        store(words),
        strings(words, walk, store),
        structure(words, walk),
        composes_numbers(words.number_end_tokens().empty()) {}

  Mask find_mask(State state);
  Mask find_number(const NumberBody& body);
  Mask find_structure(const Blanks& blanks);
  Mask find_free_text(State state, const FreeText& text);
  void find_ids(State state);

  const Vocabulary& vocabulary;
  Machine& machine;
  TrieWalk walk;
  MaskStore store;
  StringMasks strings;
  StructureMasks structure;
  FlatMap index;  // State -> masks
  std::vector<Mask> masks;
  const bool composes_numbers;
  std::vector<int32_t> ids;
};

Mask MaskCache::Impl::find_mask(State state) {
  if (state == kDead) return {};
  const std::span<const int32_t> ends = machine.complete(state) ? vocabulary.end_of_text() : std::span<const int32_t>();
  if (const auto list = machine.text_list(state))
    if (const auto mask = strings.texts_mask(state, *list)) return store.keep_with(*mask, ends);
  if (const auto body = machine.string_body(state)) return store.keep_with(strings.mask(state, *body), ends);
  if (const auto text = machine.free_text(state)) return store.keep_with(find_free_text(state, *text), ends);
  if (composes_numbers) {
    if (const auto body = machine.number_body(state)) return store.keep_with(find_number(*body), ends);
  }
  if (machine.is_json()) {
    if (const auto blanks = machine.blanks(state)) return store.keep_with(find_structure(*blanks), ends);
  }
  find_ids(state);
  ids.insert(ids.end(), ends.begin(), ends.end());
  const Mask mask = store.keep_ids(ids);
  if (ids.capacity() > kIdsKept) ids = {};
  return mask;
}

/// What goes on with the number, and what may follow if it ends here.
Mask MaskCache::Impl::find_number(const NumberBody& body) {
  const Mask inside = strings.number_tokens(body.kind);
  if (!body.ends || body.after == kDead) return inside;
  const uint32_t known = index.find(body.after);
  if (known != FlatMap::kNone) return store.keep_either(inside, masks[known]);
  const Mask after = find_mask(body.after);
  index.insert(body.after, static_cast<uint32_t>(masks.size()));
  masks.push_back(after);
  return store.keep_either(inside, after);
}

/// Between two tokens of JSON.
Mask MaskCache::Impl::find_structure(const Blanks& blanks) {
  ids.clear();
  structure.append(blanks, ids);
  const uint32_t number = composes_numbers ? machine.number_kind(blanks.clean) : 0;
  if (number != 0) return store.keep_with_others(strings.number_tokens(number), ids);
  const std::optional<NextBytes> next = machine.next_bytes(blanks.clean);
  const auto found = [this](uint32_t, const TrieNode& node) {
    vocabulary.append_all(node.token, ids);
    return true;
  };
  for (const char c : std::string_view("-0123456789")) {
    const auto byte = static_cast<uint8_t>(c);
    const auto node = static_cast<uint32_t>(vocabulary.first_node(byte));
    if (node == 0 || (next && !next->contains(byte))) continue;
    walk.begin();
    walk.walk(
        vocabulary.nodes(), node, vocabulary.nodes()[node].next, blanks.clean,
        [](uint32_t, const TrieNode&) { return true; }, found);
  }
  return store.keep_ids(ids);
}

Mask MaskCache::Impl::find_free_text(State state, const FreeText& text) {
  const std::span<MaskWord> row = store.begin_row();
  std::copy(vocabulary.text_row().begin(), vocabulary.text_row().end(), row.begin());
  const auto look_at = [&](int32_t token) {
    const std::string_view bytes = vocabulary.bytes(token);
    if (bytes.empty() || !machine.leaves_free_text(state, bytes)) return;
    const State to = machine.steps(state, bytes);
    to == kDead ? clear_bit(row, token) : set_bit(row, token);
  };
  bool is_listed = true;
  for (const char c : text.bytes) is_listed = is_listed && vocabulary.tokens_with(static_cast<uint8_t>(c)).has_value();
  if (is_listed) {
    for (const char c : text.bytes) {
      const std::span<const int32_t> tokens = *vocabulary.tokens_with(static_cast<uint8_t>(c));
      std::for_each(tokens.begin(), tokens.end(), look_at);
    }
  } else {
    for (int32_t token = 0; token < vocabulary.n_head(); ++token) look_at(token);
  }
  return store.keep_row();
}

/// All tokens that may follow.
void MaskCache::Impl::find_ids(State state) {
  const auto enter = [](uint32_t, const TrieNode&) { return true; };
  const auto found = [this](uint32_t, const TrieNode& node) {
    vocabulary.append_all(node.token, ids);
    return true;
  };
  const auto take_blank = [this](int32_t token) { ids.push_back(token); };
  ids.clear();
  walk.begin(kSparseNodesMax);
  walk.walk_from_root(state, enter, found, take_blank);
  if (!walk.stopped()) return;
  ids.clear();
  DenseWalk dense([this](State from, uint8_t byte) { return machine.step(from, byte); }, [](State) { return 0; });
  const auto take = [this](const TrieNode& node, int32_t) { vocabulary.append_all(node.token, ids); };
  if (dense.walk(vocabulary.nodes(), vocabulary.token_bytes_max(), state, {}, take)) return;
  ids.clear();
  walk.begin();
  walk.walk_from_root(state, enter, found, take_blank);
}

MaskCache::MaskCache(const Vocabulary& vocabulary, Machine& machine)
    : impl_(std::make_unique<Impl>(vocabulary, machine)) {}

MaskCache::~MaskCache() = default;

const Mask* MaskCache::find(State state) const {
  const uint32_t at = impl_->index.find(state);
  return at == FlatMap::kNone ? nullptr : &impl_->masks[at];
}

Mask MaskCache::mask(State state) {
  if (const Mask* known = find(state)) return *known;
  const Mask mask = impl_->find_mask(state);
  impl_->index.insert(state, static_cast<uint32_t>(impl_->masks.size()));
  impl_->masks.push_back(mask);
  return mask;
}

void MaskCache::prepare_behind_quote(State state) { impl_->strings.prepare(state); }

State MaskCache::advance(State state, int32_t token) {
  const std::string_view bytes = impl_->vocabulary.bytes(token);
  return bytes.empty() ? kDead : impl_->machine.steps(state, bytes);
}

int64_t MaskCache::n_bytes() const {
  return impl_->walk.n_bytes() + impl_->store.n_bytes() + impl_->strings.n_bytes() + impl_->structure.n_bytes() +
         impl_->index.n_bytes() +
         static_cast<int64_t>(impl_->masks.capacity() * sizeof(Mask) + impl_->ids.capacity() * sizeof(int32_t));
}

}  // namespace deepinfer::grammar
