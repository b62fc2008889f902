// Walks the tokens with a kind of JSON strings: the raw bytes that stay inside. Every state becomes a table row, so that a byte
// costs a look-up; where all characters below a node lead back to the state, or along a chain of states, its tokens are taken
// unseen.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/flat_map.h"
#include "grammar/machine.h"
#include "grammar/token_trie.h"

namespace deepinfer::grammar {

/// Tokens of TokenTrie::tokens() from first on, before end.
struct TokenRun {
  uint32_t first, end;
  int32_t n_more;  // characters that must still come behind each
};

/// One walk.
class KindWalk {
 public:
  static constexpr int32_t kMoreMax = 126;

  /// Both are borrowed. count: Machine::kind_chars() is asked; else n_more is 0.
  KindWalk(const TokenTrie& trie, Machine& machine, bool count) : trie_(trie), machine_(machine), count_(count) {}

  /// Cost     5 to 10 ns for each node that is looked at, 2 ns for each leaf, and the steps
  void walk(uint32_t kind);

  [[nodiscard]] std::span<const TokenRun> runs() const { return runs_; }  // ascending
  /// The kinds behind all tokens said how many characters must still come, and not too many. Where they did not, n_more is 0.
  [[nodiscard]] bool is_counted() const { return is_counted_; }
  /// At least the characters of each token with its n_more.
  [[nodiscard]] int32_t n_chars_max() const { return n_chars_max_; }

 private:
  static constexpr size_t kRowsMax = 8192;     // 4 MB; beyond, all are found anew
  static constexpr uint32_t kLoopTokens = 64;  // below a node: worth a question for loops
  static constexpr int32_t kShiftsMax = 64;    // rows of a chain
  static constexpr uint16_t kNotAsked = 0, kDeadRow = 1;
  using Table = std::array<uint16_t, 256>;  // places in rows_, by byte
  struct Row {
    uint32_t kind = 0;
    int32_t n_more = 0;
    bool is_counted = true;
    bool loops_known = false;
    Table* table = nullptr;
    CharGroups loops = 0;   // all characters of which lead back here
    CharGroups shifts = 0;  // all characters of which lead to the row shift_to
    uint16_t shift_to = 0;
  };
  struct Frame {
    uint32_t child, end;  // of nodes, still to be looked at
    Row* row;
  };

  Row& row(uint16_t at) { return rows_[at]; }
  uint16_t row_of(uint32_t kind);
  uint16_t next(Row& row, uint8_t byte);
  void begin_anew();
  void take_leaves(const TokenTrie::Node& node, Row& row);
  bool is_taken(const TokenTrie::Node& node, Row& row, int32_t n_chars);
  bool shifts_all(Row& row, CharGroups groups, int32_t n_chars);
  void find_loops(Row& row);
  uint32_t behind(const Row& row, uint32_t kind, Utf8State utf8, uint32_t bits);
  void found(uint32_t first, uint32_t end, const Row& row, int32_t n_chars) {
    is_counted_ = is_counted_ && row.is_counted;
    n_chars_max_ = std::max(n_chars_max_, n_chars + row.n_more);
    if (!runs_.empty() && runs_.back().end == first && runs_.back().n_more == row.n_more) {
      runs_.back().end = end;
    } else {
      runs_.push_back({first, end, row.n_more});
    }
  }

  const TokenTrie& trie_;
  Machine& machine_;
  const bool count_;
  std::deque<Row> rows_;  // rows stay where they are; the first two stand for kNotAsked and kDeadRow
  std::deque<Table> tables_;
  FlatMap index_;  // kind -> rows_
  std::vector<Frame> open_;
  struct Behind {  // answers of behind() for one row
    uint32_t kind;
    Utf8State utf8;
    uint32_t to;
  };
  std::vector<Behind> behind_;
  std::array<uint32_t, 64> targets_{};  // by group: where all of its characters lead to; 0: not seen, or they differ
  struct {
    uint32_t to = 0;
    int32_t n = 0;  // that lead there
  } blank_;         // blanks outside ASCII, of one row
  std::vector<TokenRun> runs_;
  bool is_counted_ = true;
  int32_t n_chars_max_ = 0;
};

/// Sets the bits of the tokens with so many characters to come; -1: of all. Precondition: the row is empty, the runs ascend.
/// Cost     1 ns a token that is in them, or that is not if those are less
void set_tokens(const TokenTrie& trie, std::span<const TokenRun> runs, int32_t n_more, std::span<MaskWord> row);

}  // namespace deepinfer::grammar
