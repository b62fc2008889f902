// The tokens of a vocabulary as a byte trie for walks of which a large part lives: brothers stand side by side, leaves are
// bytes in a row, all tokens below a node stand in a row, and nodes know which characters occur below them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

/// Characters that strings hold raw, in groups that are mostly alike to patterns: a bit set of groups.
using CharGroups = uint64_t;
inline constexpr int32_t kBlankGroup = 62;                   // blanks outside ASCII
inline constexpr CharGroups kNoGroup = CharGroups{1} << 63;  // what strings do not hold raw
/// The group of the characters that begin with this byte, but for blanks outside ASCII; of kNoGroup 63.
int32_t char_group(uint8_t first_byte);
/// White space of ECMA-262 outside ASCII, and how many characters that are. n_left: of characters whose code points begin
/// with these bits, so many bytes being left, is one such a blank?
inline constexpr int32_t kWideBlanks = 19;
bool has_wide_blank(uint32_t bits, int32_t n_left);

/// Immutable, any thread.
class TokenTrie {
 public:
  /// A node with children, or with tokens of equal bytes.
  struct Node {
    CharGroups groups;    // of the characters below; in a character kNoGroup
    uint32_t first, end;  // of tokens(): its own, its leaves', those below its children
    uint32_t children;    // of nodes(), in a row
    uint16_t n_children, n_leaves;
    uint16_t n_own;        // tokens that end here
    uint16_t n_chars;      // begun up to here
    uint16_t n_chars_max;  // of all its tokens
    uint8_t byte;
    bool begins_character;  // outside ASCII: then groups are those of this character, too
  };
  /// Node 0 is the root. same_as[token]: the next token with equal bytes or -1 (may be empty: there are none).
  TokenTrie(std::span<const TrieNode> trie, std::span<const int32_t> same_as, int32_t n_words);

  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  /// Of the leaf whose token is tokens()[at]. The leaves of a node have tokens first + n_own and those that follow.
  [[nodiscard]] uint8_t leaf_byte(uint32_t at) const { return last_bytes_[at]; }
  /// Of tokens().
  [[nodiscard]] std::span<const MaskWord> row() const { return row_; }
  [[nodiscard]] int64_t n_bytes() const;

 private:
  struct Source {
    std::span<const TrieNode> trie;
    std::span<const int32_t> same_as;
  };
  /// Where a byte stands in its character.
  struct Place {
    Utf8State utf8 = kBetween;
    uint8_t lead = 0;
    uint32_t bits = 0;
  };
  void take(const Source& source, int32_t token, uint8_t byte);
  CharGroups fill(const Source& source, uint32_t from, uint32_t at, Place place);
  static CharGroups step(Place& place, uint8_t byte, bool ends);

  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  std::vector<uint8_t> last_bytes_;  // of tokens_
  std::vector<MaskWord> row_;
};

}  // namespace deepinfer::grammar
