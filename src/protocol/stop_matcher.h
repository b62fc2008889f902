// Finds the first of many strings in a stream of bytes (Aho, Corasick): a byte costs the same however many strings there
// are. Internal to the output parser; one sequence's state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/marker_matcher.h"

namespace deepinfer::protocol {

class StopMatcher {
 public:
  /// Precondition: no string is empty, and all together have less than 2^31 bytes.
  /// Cost     linear in the strings' bytes: 20 bytes of memory each, and 1 KiB for each string that branches off others
  explicit StopMatcher(const std::vector<std::string>& stops);

  /// Index of the string that `byte` completes, if any; of several the first in the list. Then only reset() may follow.
  std::optional<int32_t> step(unsigned char byte) {
    int32_t next = child(at_, byte);
    while (next < 0 && at_ != kRoot) {
      at_ = nodes_[static_cast<size_t>(at_)].fallback;
      next = child(at_, byte);
    }
    if (next >= 0) at_ = next;
    const int32_t stop = nodes_[static_cast<size_t>(at_)].stop;
    return stop == kNone ? std::nullopt : std::optional(stop);
  }

  void reset() { at_ = kRoot; }

  /// Bytes that may turn out to be the beginning of a string: the longest such end of what was fed.
  [[nodiscard]] size_t n_bytes() const { return static_cast<size_t>(nodes_[static_cast<size_t>(at_)].depth); }
  [[nodiscard]] bool is_idle() const { return at_ == kRoot; }
  /// Adds what it takes to tell from two bytes that an idle matcher has nothing to do with them.
  void add_to(WakeBytes& bytes) const;

 private:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kNone = -1;
  using Branches = std::array<int32_t, 256>;

  /// One prefix of the strings. Nearly all have one child, which is kept in place; the others have a table.
  struct Node {
    int32_t child = kNone;     // the only child, or, with `branches`, where the table is
    int32_t fallback = kRoot;  // longest proper end of this prefix that is a prefix, too
    int32_t stop = kNone;      // first string of the list that ends this prefix
    int32_t depth = 0;         // bytes
    unsigned char byte = 0;    // leads to the only child
    bool branches = false;
  };

  [[nodiscard]] int32_t child(int32_t parent, unsigned char byte) const {
    const Node& node = nodes_[static_cast<size_t>(parent)];
    if (node.branches) return tables_[static_cast<size_t>(node.child)][byte];
    return node.byte == byte ? node.child : kNone;
  }
  int32_t add_child(int32_t parent, unsigned char byte);
  void add_branches(int32_t parent);
  void link_fallbacks(const std::vector<std::string>& stops);

  std::vector<Node> nodes_;
  std::vector<Branches> tables_;
  int32_t at_ = kRoot;
};

}  // namespace deepinfer::protocol
