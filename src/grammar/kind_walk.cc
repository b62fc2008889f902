#include "grammar/kind_walk.h"

namespace deepinfer::grammar {

void KindWalk::walk(uint32_t kind) {
  const std::span<const TokenTrie::Node> nodes = trie_.nodes();
  rows_.resize(2);
  Row& start = row(row_of(kind));
  take_leaves(nodes[0], start);
  open_.assign(1, {nodes[0].children, nodes[0].children + nodes[0].n_children, &start});
  while (!open_.empty()) {
    Frame& frame = open_.back();
    if (frame.child == frame.end) {
      open_.pop_back();
      continue;
    }
    const TokenTrie::Node& node = nodes[frame.child++];
    const uint16_t to = next(*frame.row, node.byte);
    if (to == kDeadRow) continue;
    Row& here = row(to);
    if (Row& before = node.begins_character ? *frame.row : here; is_taken(node, before)) {
      found(node.first, node.end, before, node.n_chars_max);
      continue;
    }
    if (node.n_own > 0) found(node.first, node.first + node.n_own, here, node.n_chars);
    take_leaves(node, here);
    if (node.n_children > 0) open_.push_back({node.children, node.children + node.n_children, &here});
    if (rows_.size() > kRowsMax) begin_anew();
  }
}

/// Forgets all rows but those of the nodes that are open.
void KindWalk::begin_anew() {
  std::vector<uint32_t> kinds;
  for (const Frame& frame : open_) kinds.push_back(frame.row->kind);
  rows_.clear();
  tables_.clear();
  index_.clear();
  rows_.resize(2);
  for (size_t i = 0; i < kinds.size(); ++i) open_[i].row = &row(row_of(kinds[i]));
}

uint16_t KindWalk::row_of(uint32_t kind) {
  const uint32_t known = index_.find(kind);
  if (known != FlatMap::kNone) return static_cast<uint16_t>(known);
  index_.insert(kind, static_cast<uint32_t>(rows_.size()));
  Row& added = rows_.emplace_back();
  added.kind = kind;
  if (count_) {
    added.n_more = machine_.kind_chars(kind);
    added.is_counted = added.n_more >= 0 && added.n_more <= kMoreMax;
    if (!added.is_counted) added.n_more = 0;
  }
  return static_cast<uint16_t>(rows_.size() - 1);
}

uint16_t KindWalk::next(Row& from, uint8_t byte) {
  if (from.table == nullptr) from.table = &tables_.emplace_back();
  uint16_t& to = (*from.table)[byte];
  if (to == kNotAsked) {
    const bool is_raw = byte >= 0x20 && byte != '"' && byte != '\\';
    const uint32_t kind = is_raw ? machine_.kind_step(from.kind, byte) : 0;
    to = kind == 0 ? kDeadRow : row_of(kind);
  }
  return to;
}

void KindWalk::take_leaves(const TokenTrie::Node& node, Row& from) {
  uint32_t at = node.first + node.n_own;
  for (const uint32_t end = at + node.n_leaves; at < end; ++at) {
    const uint8_t byte = trie_.leaf_byte(at);
    const uint16_t to = next(from, byte);
    if (to != kDeadRow) found(at, at + 1, row(to), node.n_chars + ((byte & 0xC0) != 0x80 ? 1 : 0));
  }
}

/// Whether all below the node, which is behind the row or begins a character there, leads back to the row.
bool KindWalk::is_taken(const TokenTrie::Node& node, Row& from) {
  if ((node.groups & kNoGroup) != 0) return false;
  if (!from.loops_known) {
    if (node.end - node.first < kLoopTokens) return false;
    find_loops(from);
  }
  return (node.groups & ~from.loops) == 0;
}

void KindWalk::find_loops(Row& from) {
  from.loops_known = true;
  behind_.clear();
  n_blank_loops_ = 0;
  CharGroups broken = kNoGroup;
  for (int b = 0x20; b < 0xF5; ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const CharGroups group = CharGroups{1} << char_group(byte);
    const bool may_be_blank = byte == 0xC2 || byte == 0xE1 || byte == 0xE2 || byte == 0xE3 || byte == 0xEF;
    if ((broken & group) != 0 && !may_be_blank) continue;
    const Utf8State utf8 = next_utf8_state(kBetween, byte);
    const uint32_t kind = machine_.kind_step(from.kind, byte);
    const uint32_t bits = byte < 0xE0 ? byte & 0x1FU : byte & 0x0FU;
    if (utf8 == kBetween ? kind != from.kind : !loops_behind(from, kind, utf8, bits)) broken |= group;
  }
  from.loops = ~broken & ((CharGroups{1} << kBlankGroup) - 1);
  if (n_blank_loops_ == kWideBlanks) from.loops |= CharGroups{1} << kBlankGroup;
}

/// Whether all rests of a character but blanks lead back to the row, and all begun ones count as it does.
bool KindWalk::loops_behind(const Row& from, uint32_t kind, Utf8State utf8, uint32_t bits) {
  if (kind == 0) return false;
  const int32_t n_left = utf8 == kOneLeft ? 1 : utf8 == kTwoLeft || utf8 == kAfterE0 || utf8 == kAfterED ? 2 : 3;
  const bool has_blank = has_wide_blank(bits, n_left);
  if (!has_blank) {
    const auto known = std::ranges::find_if(behind_, [&](const Behind& b) { return b.kind == kind && b.utf8 == utf8; });
    if (known != behind_.end()) return known->loops;
  }
  bool loops = !count_ || machine_.kind_chars(kind) == (from.is_counted ? from.n_more : -1);
  for (uint32_t b = 0x80; b < 0xC0 && (loops || has_blank); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const Utf8State after = next_utf8_state(utf8, byte);
    if (after == kIllFormed) continue;
    const uint32_t to = machine_.kind_step(kind, byte);
    const uint32_t more_bits = bits << 6 | (b & 0x3F);
    if (after != kBetween) {
      loops = loops_behind(from, to, after, more_bits) && loops;
    } else if (has_blank && has_wide_blank(more_bits, 0)) {
      n_blank_loops_ += to == from.kind ? 1 : 0;
    } else {
      loops = loops && to == from.kind;
    }
  }
  if (!has_blank) behind_.push_back({kind, utf8, loops});
  return loops;
}

void set_tokens(const TokenTrie& trie, std::span<const TokenRun> runs, int32_t n_more, std::span<MaskWord> row) {
  const std::span<const int32_t> tokens = trie.tokens();
  const auto for_each = [&](uint32_t first, uint32_t end, auto take) {
    for (uint32_t i = first; i < end; ++i)
      take(row[static_cast<size_t>(tokens[i]) / 64], MaskWord{1} << (tokens[i] % 64));
  };
  const auto set = [](MaskWord& word, MaskWord bit) { word |= bit; };
  const auto clear = [](MaskWord& word, MaskWord bit) { word &= ~bit; };
  size_t n_tokens = 0;
  for (const TokenRun& run : runs)
    if (n_more < 0 || run.n_more == n_more) n_tokens += run.end - run.first;
  if (n_tokens <= tokens.size() / 2) {
    for (const TokenRun& run : runs)
      if (n_more < 0 || run.n_more == n_more) for_each(run.first, run.end, set);
    return;
  }
  std::ranges::copy(trie.row(), row.begin());
  uint32_t from = 0;
  for (const TokenRun& run : runs) {
    if (n_more >= 0 && run.n_more != n_more) continue;
    for_each(from, run.first, clear);
    from = run.end;
  }
  for_each(from, static_cast<uint32_t>(tokens.size()), clear);
}

}  // namespace deepinfer::grammar
