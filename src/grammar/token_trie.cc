#include "grammar/token_trie.h"

#include <algorithm>
#include <string_view>

#include "grammar/mask_bits.h"

namespace deepinfer::grammar {
namespace {

constexpr std::array<uint32_t, kWideBlanks> kBlanks = {0x00A0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                                       0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                                       0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF};

constexpr std::array<uint8_t, 256> kGroups = [] {
  std::array<uint8_t, 256> groups{};
  groups.fill(63);
  uint8_t n = 0;
  const auto add = [&](int first, int last) {
    for (int b = first; b <= last; ++b) groups[static_cast<size_t>(b)] = n;
    ++n;
  };
  add('0', '9');
  add('A', 'F');
  add('G', 'Z');
  for (int b = 'a'; b <= 'z'; ++b) add(b, b);  // where some text is to be found, its letters are each a step
  for (const std::string_view alike : {"#$%", "()", "*+", "<>", "[]", "{|}", "^`~\x7F"}) {
    for (const char c : alike) groups[static_cast<size_t>(c)] = n;
    ++n;
  }
  for (int b = 0x20; b < 0x7F; ++b)
    if (groups[static_cast<size_t>(b)] == 63 && b != '"' && b != '\\') add(b, b);
  const std::array<int, 10> leads = {0xC2, 0xC4, 0xE0, 0xE2, 0xE3, 0xE4, 0xEA, 0xEE, 0xF0, 0xF5};
  for (size_t i = 0; i + 1 < leads.size(); ++i) add(leads[i], leads[i + 1] - 1);
  return groups;
}();
static_assert(kGroups[0xF4] < kBlankGroup);

CharGroups bit(int32_t group) { return CharGroups{1} << group; }

}  // namespace

int32_t char_group(uint8_t first_byte) { return kGroups[first_byte]; }

bool has_wide_blank(uint32_t bits, int32_t n_left) {
  return std::ranges::any_of(kBlanks, [=](uint32_t c) { return c >> (6 * n_left) == bits; });
}

TokenTrie::TokenTrie(std::span<const TrieNode> trie, std::span<const int32_t> same_as, int32_t n_words)
    : row_(static_cast<size_t>(n_words)) {
  nodes_.resize(1);
  fill({trie, same_as}, 0, 0, {});
  nodes_.shrink_to_fit();
  tokens_.shrink_to_fit();
  last_bytes_.shrink_to_fit();
}

void TokenTrie::take(const Source& source, int32_t token, uint8_t byte) {
  for (; token >= 0; token = source.same_as.empty() ? -1 : source.same_as[static_cast<size_t>(token)]) {
    tokens_.push_back(token);
    last_bytes_.push_back(byte);
    set_bit(row_, token);
  }
}

/// What one more byte adds to the characters. ends: a token ends with it.
CharGroups TokenTrie::step(Place& place, uint8_t byte, bool ends) {
  if (place.utf8 == kIllFormed) return kNoGroup;
  const bool begins = place.utf8 == kBetween;
  place.utf8 = next_utf8_state(place.utf8, byte);
  if (place.utf8 == kIllFormed) return kNoGroup;
  if (begins) place.lead = byte;
  const uint32_t own_bits = byte < 0x80 ? byte : !begins ? byte & 0x3FU : byte < 0xE0 ? byte & 0x1FU : byte & 0x0FU;
  place.bits = begins ? own_bits : place.bits << 6 | own_bits;
  if (place.utf8 != kBetween) return ends ? bit(char_group(place.lead)) : 0;
  return bit(byte >= 0x80 && has_wide_blank(place.bits, 0) ? kBlankGroup : char_group(place.lead));
}

/// Fills node `at` and those below from source.trie[from], behind whose byte `place` is. The groups below it.
/// Recursive: no deeper than tokens are long.
CharGroups TokenTrie::fill(const Source& source, uint32_t from, uint32_t at, Place place) {
  const std::span<const TrieNode> trie = source.trie;
  const TrieNode& here = trie[from];
  const auto is_leaf = [&](uint32_t i) {
    return trie[i].next == i + 1 && (source.same_as.empty() || source.same_as[static_cast<size_t>(trie[i].token)] < 0);
  };
  Node node{};
  node.byte = static_cast<uint8_t>(here.byte);
  node.n_chars = node.n_chars_max = static_cast<uint16_t>(here.chars);
  node.first = static_cast<uint32_t>(tokens_.size());
  take(source, here.token, node.byte);
  node.n_own = static_cast<uint16_t>(tokens_.size() - node.first);
  CharGroups below = 0;
  for (uint32_t i = from + 1; i < here.next; i = trie[i].next) {
    if (!is_leaf(i)) {
      ++node.n_children;
      continue;
    }
    ++node.n_leaves;
    node.n_chars_max = std::max(node.n_chars_max, static_cast<uint16_t>(trie[i].chars));
    take(source, trie[i].token, static_cast<uint8_t>(trie[i].byte));
    Place behind = place;
    below |= step(behind, static_cast<uint8_t>(trie[i].byte), true);
  }
  node.children = static_cast<uint32_t>(nodes_.size());
  nodes_.resize(nodes_.size() + node.n_children);
  uint32_t child = node.children;
  for (uint32_t i = from + 1; i < here.next; i = trie[i].next) {
    if (is_leaf(i)) continue;
    Place behind = place;
    const CharGroups own = step(behind, static_cast<uint8_t>(trie[i].byte), trie[i].token >= 0);
    const CharGroups below_child = fill(source, i, child, behind);
    Node& filled = nodes_[child];
    filled.begins_character = place.utf8 == kBetween && behind.utf8 != kBetween && behind.utf8 != kIllFormed;
    filled.groups = filled.begins_character ? own | below_child : behind.utf8 == kBetween ? below_child : kNoGroup;
    node.n_chars_max = std::max(node.n_chars_max, filled.n_chars_max);
    below |= own | below_child;
    ++child;
  }
  node.end = static_cast<uint32_t>(tokens_.size());
  node.groups = below;  // of the root; those of others are known above
  nodes_[at] = node;
  return below;
}

int64_t TokenTrie::n_bytes() const {
  return static_cast<int64_t>(sizeof(*this) + nodes_.capacity() * sizeof(Node) + tokens_.capacity() * sizeof(int32_t) +
                              last_bytes_.capacity() + row_.capacity() * sizeof(MaskWord));
}

}  // namespace deepinfer::grammar
