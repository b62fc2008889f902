// Walks a byte trie with a machine: depth-first, no recursion, a subtree is left at its first dead byte.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/flat_map.h"
#include "grammar/machine.h"
#include "grammar/string_tokens.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Not thread-safe. For few live nodes: asks the machine which bytes are worth a step. dense_walk.h is for many.
class TrieWalk {
 public:
  /// Both are borrowed. Other tries may be walked that are no deeper than the vocabulary's.
  TrieWalk(const Vocabulary& vocabulary, Machine& machine);

  [[nodiscard]] Machine& machine() const { return machine_; }

  /// Before the first walk() of a mask. After so many live nodes, walks stop: see stopped().
  void begin(int32_t n_nodes_max = std::numeric_limits<int32_t>::max());
  [[nodiscard]] bool stopped() const { return n_left_ < 0; }

  /// Walks the nodes first <= i < end, which are all below one node (not included) whose state is `from`.
  /// enter(index, node): false skips the subtree unasked. found(index, node) is called for live nodes; false: do
  /// not go below.
  /// In found(): the state behind the node.
  [[nodiscard]] State state() const { return state_; }
  template <class Enter, class Found>
  void walk(std::span<const TrieNode> nodes, uint32_t first, uint32_t end, State from, Enter enter, Found found);

  /// The whole trie of the vocabulary, `from` at its root. Tokens of blanks alone go to take_blank(token); enter() and found() are
  /// not asked about blanks that a token begins with.
  template <class Enter, class Found>
  void walk_from_root(State from, Enter enter, Found found) {
    walk_from_root(from, enter, found, [](int32_t) {});
  }
  template <class Enter, class Found, class TakeBlank>
  void walk_from_root(State from, Enter enter, Found found, TakeBlank take_blank);

  [[nodiscard]] int64_t n_bytes() const;

 private:
  /// What a state answered: the states after each byte, kUnknown where not asked.
  struct Row {
    State next[256];
    bool has_bytes;
    NextBytes bytes;
  };
  struct Frame {
    State state = kDead;
    Row* row = nullptr;  // null: none kept
    bool has_bytes = false;
    NextBytes bytes;                                // if has_bytes: others are dead
    const TrieFan* fan = nullptr;                   // of the node, if has_bytes
    uint32_t end = 0;                               // of the node's subtree, if fan
    bool in_text = false;                           // inside a string of any text: nothing but its end is asked
    Utf8State utf8 = kBetween;                      // if in_text
    bool takes_blanks = false;                      // then they are counted, not asked; `state` is the clean one
    int32_t n_line_ends = 0, n_blanks = 0;          // that may still follow here
    int32_t n_line_ends_all = 0, n_blanks_all = 0;  // and at first
  };
  static constexpr State kUnknown = UINT32_MAX;
  static constexpr uint32_t kLargeSubtree = 8;  // nodes; worth a question for next_bytes()
  static constexpr uint32_t kFanNodes = 64;     // smaller subtrees have no fan
  static constexpr size_t kRowsMax = 64;        // in one walk
  static constexpr size_t kRowsKept = 4;        // memory between walks
  static constexpr uint32_t kNoRow = UINT32_MAX - 1;
  static constexpr uint64_t kBlankBytes =
      uint64_t{1} << ' ' | uint64_t{1} << '\n' | uint64_t{1} << '\t' | uint64_t{1} << '\r';

  static bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

  template <class Enter, class Found>
  void walk_below(std::span<const TrieNode> nodes, uint32_t first, uint32_t end, Enter enter, Found found);
  State step(const Frame& parent, uint8_t byte) {
    if (parent.row == nullptr) return machine_.step(parent.state, byte);
    State& state = parent.row->next[byte];
    if (state == kUnknown) state = machine_.step(parent.state, byte);
    return state;
  }
  void enter_root(State from, Frame& frame);
  /// The subtree of the node holds nothing but digits.
  [[nodiscard]] bool is_digit_node(std::span<const TrieNode> nodes, uint32_t node) const {
    return node - vocabulary_.digit_nodes().first < vocabulary_.digit_nodes().n &&
           nodes.data() == vocabulary_.nodes().data();
  }
  bool loops_on_digits(State state);
  /// Prepares the frame of a live node for its subtree.
  void open(State state, uint32_t n_nodes, const Frame& parent, Frame& frame) {
    frame.in_text = false;
    if (n_nodes < kLargeSubtree) {
      frame.state = state;
      frame.row = nullptr;
      frame.has_bytes = false;
      frame.fan = nullptr;
      ask_blanks(frame);
    } else if (state == parent.state && parent.row != nullptr) {
      frame = parent;
      frame.n_line_ends = frame.n_line_ends_all;
      frame.n_blanks = frame.n_blanks_all;
    } else {
      ask(state, frame);
    }
  }
  void ask(State state, Frame& frame);
  void set_fan(std::span<const TrieNode> nodes, uint32_t node, Frame& frame) {
    frame.fan = nullptr;
    if (!frame.has_bytes || nodes[node].next - node < kFanNodes || nodes.data() != vocabulary_.nodes().data()) return;
    frame.fan = vocabulary_.fan(node);
    frame.end = nodes[node].next;
  }
  /// The child with the next byte above that is taken; the end of the subtree if there is none.
  static uint32_t next_child(const Frame& frame, uint8_t byte) {
    NextBytes bytes = frame.bytes;
    if (frame.takes_blanks)
      for (const char c : {' ', '\n', '\t', '\r'}) bytes.insert(static_cast<uint8_t>(c));
    uint64_t above = ~uint64_t{1} << (byte & 63);
    for (size_t i = byte >> 6; i < 4; ++i, above = ~uint64_t{0}) {
      const uint64_t word = frame.fan->bytes[i] & bytes.words[i] & above;
      if (word == 0) continue;
      return frame.fan->child(static_cast<uint8_t>(64 * i + static_cast<size_t>(std::countr_zero(word))));
    }
    return frame.end;
  }
  void ask_blanks(Frame& frame) {
    const std::optional<Blanks> blanks = machine_.blanks(frame.state);
    frame.takes_blanks = blanks.has_value();
    if (!blanks) return;
    frame.state = blanks->clean;
    frame.n_line_ends = frame.n_line_ends_all = blanks->n_line_ends;
    frame.n_blanks = frame.n_blanks_all = blanks->n_others;
  }
  Row* row_of(State state, bool& is_new);

  const Vocabulary& vocabulary_;
  Machine& machine_;
  std::vector<Frame> frames_;  // by depth
  std::vector<std::unique_ptr<Row>> rows_;
  size_t n_rows_ = 0;  // in use
  FlatMap asked_;      // State -> rows_, or kNoRow when asked once
  State state_ = kDead;
  State digit_loop_ = kDead;  // a state that every digit leads back to
  int32_t n_left_ = 0;        // live nodes until the walk stops
};

template <class Enter, class Found>
void TrieWalk::walk(std::span<const TrieNode> nodes, uint32_t first, uint32_t end, State from, Enter enter,
                    Found found) {
  if (first >= end) return;
  enter_root(from, frames_[nodes[first].depth - 1]);
  walk_below(nodes, first, end, enter, found);
}

template <class Enter, class Found>
void TrieWalk::walk_below(std::span<const TrieNode> nodes, uint32_t first, uint32_t end, Enter enter, Found found) {
  for (uint32_t i = first; i < end;) {
    const TrieNode node = nodes[i];
    const auto byte = static_cast<uint8_t>(node.byte);
    const Frame& parent = frames_[node.depth - 1];
    if (parent.takes_blanks && is_blank(byte)) {
      if ((byte == '\n' ? parent.n_line_ends : parent.n_blanks) == 0 || !enter(i, node) || !found(i, node)) {
        i = node.next;
        continue;
      }
      Frame& frame = frames_[node.depth];
      frame = parent;
      --(byte == '\n' ? frame.n_line_ends : frame.n_blanks);
      set_fan(nodes, i, frame);
      ++i;
      continue;
    }
    if (parent.in_text && (parent.utf8 != kBetween || (byte != '"' && byte != '\\'))) {
      const Utf8State utf8 = byte < 0x20 ? kIllFormed : next_utf8_state(parent.utf8, byte);
      if (utf8 == kIllFormed || !enter(i, node) || !found(i, node)) {
        i = node.next;
        continue;
      }
      if (--n_left_ < 0) return;
      frames_[node.depth] = parent;
      frames_[node.depth].utf8 = utf8;
      ++i;
      continue;
    }
    if (parent.has_bytes && !parent.bytes.contains(byte)) {
      i = parent.fan != nullptr ? next_child(parent, byte) : node.next;
      continue;
    }
    if (!enter(i, node)) {
      i = node.next;
      continue;
    }
    const State state = step(parent, byte);
    state_ = state;
    if (state == kDead || !found(i, node)) {
      i = node.next;
      continue;
    }
    if (--n_left_ < 0) return;
    if (is_digit_node(nodes, i) && loops_on_digits(state)) {
      for (uint32_t below = i + 1; below < node.next; ++below)
        if (enter(below, nodes[below])) found(below, nodes[below]);
      i = node.next;
      continue;
    }
    if (byte == '"' && i + 1 < node.next && machine_.in_any_text(state)) {
      frames_[node.depth] = {.state = state, .in_text = true};
    } else if (i + 1 < node.next) {
      open(state, node.next - i - 1, parent, frames_[node.depth]);
      set_fan(nodes, i, frames_[node.depth]);
    }
    ++i;
  }
}

template <class Enter, class Found, class TakeBlank>
void TrieWalk::walk_from_root(State from, Enter enter, Found found, TakeBlank take_blank) {
  const std::span<const TrieNode> nodes = vocabulary_.nodes();
  Frame& top = frames_[0];
  enter_root(from, top);
  const auto walk_children = [&](const std::array<uint64_t, 4>& bytes, uint32_t node) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (uint64_t word = bytes[i]; word != 0; word &= word - 1) {
        const auto byte = static_cast<uint8_t>(i * 64 + static_cast<size_t>(std::countr_zero(word)));
        const uint32_t child = vocabulary_.child(node, byte);
        if (child != 0) walk_below(nodes, child, nodes[child].next, enter, found);
      }
    }
  };
  std::array<uint64_t, 4> first;
  for (size_t i = 0; i < first.size(); ++i) first[i] = top.has_bytes ? top.bytes.words[i] : ~uint64_t{0};
  if (!top.takes_blanks) return walk_children(first, 0);
  first[0] &= ~kBlankBytes;
  walk_children(first, 0);
  for (const BlankToken& blank : vocabulary_.blank_tokens())
    if (blank.n_line_ends <= top.n_line_ends_all && blank.n_others <= top.n_blanks_all) take_blank(blank.token);
  const std::array<uint64_t, 4> any = {~kBlankBytes, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};
  const std::array<uint64_t, 4>& next = top.has_bytes ? top.bytes.words : any;
  for (const BlankPrefix& prefix : vocabulary_.blank_prefixes()) {
    if (prefix.n_line_ends > top.n_line_ends_all || prefix.n_others > top.n_blanks_all) continue;
    std::array<uint64_t, 4> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = prefix.bytes[i] & next[i];
    if (bytes == std::array<uint64_t, 4>{}) continue;
    Frame& frame = frames_[nodes[prefix.node].depth];
    frame = top;
    frame.n_line_ends -= prefix.n_line_ends;
    frame.n_blanks -= prefix.n_others;
    walk_children(bytes, prefix.node);
  }
}

}  // namespace deepinfer::grammar
