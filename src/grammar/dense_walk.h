// Walks a byte trie of which a large part lives: every state becomes a table row, so that a node costs a look-up.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "grammar/flat_map.h"
#include "grammar/machine.h"
#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

/// One walk. Step: State(State, uint8_t), asked once per state and byte. Mark: int32_t(State), once per state.
template <class Step, class Mark>
class DenseWalk {
 public:
  /// Both are kept.
  DenseWalk(Step step, Mark mark) : step_(std::move(step)), mark_(std::move(mark)) {}

  /// Calls found(node, mark of its state) for the live nodes of a whole trie. Subtrees that begin with a byte for which skip[byte] holds are
  /// left out. False: more states than rows; what was found so far is not all.
  /// Cost     3 to 4 ns a node, and the steps
  template <class Found>
  bool walk(std::span<const TrieNode> nodes, int32_t depth_max, State from, const std::array<bool, 256>& skip,
            Found found) {
    std::vector<Row*> rows(static_cast<size_t>(depth_max) + 1);  // by depth
    rows[0] = &rows_[row_of(from)];
    const auto n_nodes = static_cast<uint32_t>(nodes.size());
    for (uint32_t i = 1; i < n_nodes;) {
      const TrieNode& node = nodes[i];
      Row& parent = *rows[node.depth - 1];
      uint16_t to = parent.next[node.byte];
      if (to == kNotAsked) {
        const auto byte = static_cast<uint8_t>(node.byte);
        const State state = skip[byte] ? kDead : step_(parent.state, byte);
        to = state == kDead ? kDeadRow : row_of(state);
        if (to == kNotAsked) return false;
        parent.next[byte] = to;
      }
      if (to == kDeadRow) {
        i = node.next;
        continue;
      }
      rows[node.depth] = &rows_[to];
      found(node, rows_[to].mark);
      ++i;
    }
    return true;
  }

 private:
  static constexpr size_t kRowsMax = 8192;  // 4 MB
  static constexpr uint16_t kNotAsked = 0, kDeadRow = 1;

  struct Row {
    State state = kDead;
    int32_t mark = 0;
    std::array<uint16_t, 256> next{};  // places in rows_
  };

  /// kNotAsked: there is no more room.
  uint16_t row_of(State state) {
    const uint32_t known = index_.find(state);
    if (known != FlatMap::kNone) return static_cast<uint16_t>(known);
    if (rows_.size() >= kRowsMax) return kNotAsked;
    index_.insert(state, static_cast<uint32_t>(rows_.size()));
    rows_.push_back({.state = state, .mark = mark_(state)});
    return static_cast<uint16_t>(rows_.size() - 1);
  }

  Step step_;
  Mark mark_;
  std::deque<Row> rows_{2};  // rows stay where they are; the first two stand for kNotAsked and kDeadRow
  FlatMap index_;            // State -> rows_
};

}  // namespace deepinfer::grammar
