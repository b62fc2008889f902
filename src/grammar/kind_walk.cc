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
    const int32_t n_chars_before = node.n_chars - (node.begins_character ? 1 : 0);
    if (Row& before = node.begins_character ? *frame.row : here;
        is_taken(node, before, node.n_chars_max - n_chars_before)) {
      found(node.first, node.end, before, node.n_chars_max);
    } else {
      if (node.n_own > 0) found(node.first, node.first + node.n_own, here, node.n_chars);
      take_leaves(node, here);
      if (node.n_children > 0) open_.push_back({node.children, node.children + node.n_children, &here});
    }
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

/// Whether all below the node, which is behind the row or begins a character there, stays inside and counts as the row. The
/// tokens have up to n_chars characters from the row on.
bool KindWalk::is_taken(const TokenTrie::Node& node, Row& from, int32_t n_chars) {
  if ((node.groups & kNoGroup) != 0) return false;
  if (!from.loops_known) {
    if (node.end - node.first < kLoopTokens) return false;
    find_loops(from);
  }
  return (node.groups & ~from.loops) == 0 || shifts_all(from, node.groups, n_chars);
}

/// Whether from here on one row leads to the next by all characters of the groups, as far as n_chars or to one that loops.
bool KindWalk::shifts_all(Row& from, CharGroups groups, int32_t n_chars) {
  if (n_chars > kShiftsMax) return false;
  Row* at = &from;
  for (; n_chars > 0 && (groups & ~at->loops) != 0; --n_chars) {
    if ((groups & ~at->shifts) != 0) return false;
    at = &row(at->shift_to);
    if (at->n_more != from.n_more || at->is_counted != from.is_counted) return false;
    if (!at->loops_known && n_chars > 1) find_loops(*at);
  }
  return true;
}

void KindWalk::find_loops(Row& from) {
  constexpr uint32_t kDiffer = 0;
  from.loops_known = true;
  behind_.clear();
  targets_.fill(kDiffer);
  CharGroups seen = 0, broken = kNoGroup;
  const auto lead = [&](int32_t group_index, uint32_t to) {
    const CharGroups group = CharGroups{1} << group_index;
    uint32_t& target = targets_[static_cast<size_t>(group_index)];
    if ((seen & group) == 0) target = to;
    seen |= group;
    if (to == kDiffer || to != target) broken |= group;
  };
  blank_ = {};
  for (int b = 0x20; b < 0xF5; ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const CharGroups group = CharGroups{1} << char_group(byte);
    const bool may_be_blank = byte == 0xC2 || byte == 0xE1 || byte == 0xE2 || byte == 0xE3 || byte == 0xEF;
    if ((broken & group) != 0 && !may_be_blank) continue;
    const Utf8State utf8 = next_utf8_state(kBetween, byte);
    const uint32_t kind = machine_.kind_step(from.kind, byte);
    const uint32_t bits = byte < 0xE0 ? byte & 0x1FU : byte & 0x0FU;
    lead(char_group(byte), utf8 == kBetween ? kind : behind(from, kind, utf8, bits));
  }
  if (blank_.n == kWideBlanks) lead(kBlankGroup, blank_.to);
  const CharGroups whole = seen & ~broken;
  uint32_t on = kDiffer;  // where most characters lead on to: those of the first group that leads elsewhere
  for (int32_t group = 0; group <= kBlankGroup; ++group) {
    const CharGroups bit = CharGroups{1} << group;
    if ((whole & bit) == 0) continue;
    const uint32_t to = targets_[static_cast<size_t>(group)];
    if (to == from.kind) from.loops |= bit;
    if (to != from.kind && on == kDiffer) on = to;
    if (to == on) from.shifts |= bit;
  }
  if (on != kDiffer) from.shift_to = row_of(on);
}

/// Where all rests of a character lead to, but blanks, if all begun ones count as the row does; 0: they differ, or one leads
/// nowhere.
uint32_t KindWalk::behind(const Row& from, uint32_t kind, Utf8State utf8, uint32_t bits) {
  if (kind == 0) return 0;
  const int32_t n_left = utf8 == kOneLeft ? 1 : utf8 == kTwoLeft || utf8 == kAfterE0 || utf8 == kAfterED ? 2 : 3;
  const bool has_blank = has_wide_blank(bits, n_left);
  if (!has_blank) {
    const auto known = std::ranges::find_if(behind_, [&](const Behind& b) { return b.kind == kind && b.utf8 == utf8; });
    if (known != behind_.end()) return known->to;
  }
  bool is_one = !count_ || machine_.kind_chars(kind) == (from.is_counted ? from.n_more : -1);
  bool is_first = true;
  uint32_t common = 0;
  for (uint32_t b = 0x80; b < 0xC0 && (is_one || has_blank); ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const Utf8State after = next_utf8_state(utf8, byte);
    if (after == kIllFormed) continue;
    uint32_t to = machine_.kind_step(kind, byte);
    const uint32_t more_bits = bits << 6 | (b & 0x3F);
    if (after != kBetween) {
      to = behind(from, to, after, more_bits);
    } else if (has_blank && has_wide_blank(more_bits, 0)) {
      if (blank_.n == 0) blank_.to = to;
      blank_.n += to != 0 && to == blank_.to ? 1 : 0;
      continue;
    }
    if (is_first) common = to;
    is_first = false;
    is_one = is_one && to != 0 && to == common;
  }
  if (!is_one) common = 0;
  if (!has_blank) behind_.push_back({kind, utf8, common});
  return common;
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
