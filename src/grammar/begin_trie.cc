#include "grammar/begin_trie.h"

namespace deepinfer::grammar {

BeginTrie::BeginTrie(std::span<const std::string_view> strings) : nodes_(1) {
  for (uint32_t region = 0; region < strings.size(); ++region) {
    uint32_t node = kRoot;
    for (const char c : strings[region]) {
      const auto byte = static_cast<uint8_t>(c);
      uint32_t to = child(node, byte);
      if (to == kNone) {
        to = size();
        children_.insert(node << 8 | byte, to);
        nodes_[node].bytes.push_back(byte);
        const Utf8State utf8 = next_utf8_state(nodes_[node].utf8, byte);
        nodes_.emplace_back().utf8 = utf8;
      }
      node = to;
    }
    nodes_[node].regions.push_back(region);
  }
  link();
}

/// By depth, because the links of a node lead to less deep ones.
void BeginTrie::link() {
  std::vector<uint32_t> order = {kRoot};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t node = order[i];
    nodes_[node].ended = !nodes_[node].regions.empty() ? node : nodes_[nodes_[node].shorter].ended;
    for (const uint8_t byte : nodes_[node].bytes) {
      const uint32_t to = child(node, byte);
      if (node != kRoot) nodes_[to].shorter = next(nodes_[node].shorter, byte);
      order.push_back(to);
    }
  }
}

uint32_t BeginTrie::next(uint32_t node, uint8_t byte) const {
  while (true) {
    const uint32_t to = child(node, byte);
    if (to != kNone) return to;
    if (node == kRoot) return kRoot;
    node = nodes_[node].shorter;
  }
}

uint32_t BeginTrie::hidden_by(std::string_view string) const {
  uint32_t node = kRoot;
  for (const char c : string.substr(0, string.size() - 1)) {
    node = child(node, static_cast<uint8_t>(c));
    if (ended(node) != kNone) return regions(ended(node))[0];
  }
  return kNone;
}

int64_t BeginTrie::n_bytes() const {
  int64_t n_bytes = static_cast<int64_t>(nodes_.capacity() * sizeof(Node)) + children_.n_bytes();
  for (const Node& node : nodes_)
    n_bytes += static_cast<int64_t>(node.bytes.capacity() + node.regions.capacity() * sizeof(uint32_t));
  return n_bytes;
}

}  // namespace deepinfer::grammar
