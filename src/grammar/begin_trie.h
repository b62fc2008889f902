// The strings that begin regions of a text, as one automaton that sees each of them end wherever it occurs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/flat_map.h"

namespace deepinfer::grammar {

/// A node stands for a text that some strings start with; node 0 for the empty one. Numbers grow with depth along a branch.
class BeginTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;

  /// strings[i] begins region i; none is empty, equal ones are allowed.
  explicit BeginTrie(std::span<const std::string_view> strings);

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  /// kNone: no string goes on like that.
  [[nodiscard]] uint32_t child(uint32_t node, uint8_t byte) const { return children_.find(node << 8 | byte); }
  [[nodiscard]] std::span<const uint8_t> bytes_of(uint32_t node) const { return nodes_[node].bytes; }
  /// The node of the longest end of the text read so far; occurrences overlap.
  [[nodiscard]] uint32_t next(uint32_t node, uint8_t byte) const;
  /// The node of the longest string that ends where this node's text ends; kNone: none does.
  [[nodiscard]] uint32_t ended(uint32_t node) const { return nodes_[node].ended; }
  /// Of the string that this node spells; empty: it spells none.
  [[nodiscard]] std::span<const uint32_t> regions(uint32_t node) const { return nodes_[node].regions; }
  [[nodiscard]] Utf8State utf8(uint32_t node) const { return nodes_[node].utf8; }
  /// Another region whose string ends within this one before its end, so that this one never ends; kNone: there is none.
  [[nodiscard]] uint32_t hidden_by(std::string_view string) const;

  [[nodiscard]] int64_t n_bytes() const;

 private:
  struct Node {
    uint32_t shorter = kRoot;  // of the longest proper end of its text
    uint32_t ended = kNone;
    Utf8State utf8 = kBetween;
    std::vector<uint8_t> bytes;  // of its children
    std::vector<uint32_t> regions;
  };
  void link();

  std::vector<Node> nodes_;
  FlatMap children_;  // node * 256 + byte -> node
};

}  // namespace deepinfer::grammar
