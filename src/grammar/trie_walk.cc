#include "grammar/trie_walk.h"

#include <algorithm>

namespace deepinfer::grammar {

TrieWalk::TrieWalk(const Vocabulary& vocabulary, Machine& machine)
    : vocabulary_(vocabulary), machine_(machine), frames_(static_cast<size_t>(vocabulary.token_bytes_max()) + 1) {}

void TrieWalk::begin(int32_t n_nodes_max) {
  if (rows_.size() > kRowsKept) rows_.resize(kRowsKept);
  n_rows_ = 0;
  asked_.clear();
  digit_loop_ = kDead;
  n_left_ = n_nodes_max;
}

void TrieWalk::enter_root(State from, Frame& frame) { ask(from, frame); }

void TrieWalk::ask(State state, Frame& frame) {
  frame.state = state;
  frame.in_text = false;
  ask_blanks(frame);
  bool is_new = false;
  frame.row = row_of(frame.state, is_new);
  frame.fan = nullptr;
  if (frame.row != nullptr && !is_new) {
    frame.has_bytes = frame.row->has_bytes;
    if (frame.has_bytes) frame.bytes = frame.row->bytes;
    return;
  }
  const std::optional<NextBytes> bytes = machine_.next_bytes(frame.state);
  frame.has_bytes = bytes.has_value();
  if (bytes) frame.bytes = *bytes;
  if (frame.row == nullptr) return;
  frame.row->has_bytes = frame.has_bytes;
  frame.row->bytes = frame.bytes;
}

/// The row of a state that comes up for the second time in a walk (digits): its answers are kept from then on.
TrieWalk::Row* TrieWalk::row_of(State state, bool& is_new) {
  uint32_t* const known = asked_.find_slot(state);
  if (known == nullptr) {
    asked_.insert(state, kNoRow);
    return nullptr;
  }
  if (*known != kNoRow) return rows_[*known].get();
  if (n_rows_ >= kRowsMax) return nullptr;
  *known = static_cast<uint32_t>(n_rows_++);
  if (n_rows_ > rows_.size()) rows_.push_back(std::make_unique<Row>());
  std::fill_n(rows_[*known]->next, 256, kUnknown);
  is_new = true;
  return rows_[*known].get();
}

bool TrieWalk::loops_on_digits(State state) {
  if (state == digit_loop_) return true;
  for (uint8_t digit = '0'; digit <= '9'; ++digit)
    if (machine_.step(state, digit) != state) return false;
  digit_loop_ = state;
  return true;
}

int64_t TrieWalk::n_bytes() const {
  return static_cast<int64_t>(frames_.capacity() * sizeof(Frame) + rows_.size() * sizeof(Row)) + asked_.n_bytes();
}

}  // namespace deepinfer::grammar
