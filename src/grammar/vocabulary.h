// The tokens of one model as the grammar sees them: a byte trie in depth-first order, and what is shared by all JSON
// strings. Built once per tokenizer (<= 0.3 s for 129,280 entries), immutable but for a cache behind a lock, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "grammar/flat_map.h"
#include "grammar/json_tokens.h"
#include "grammar/kind_cache.h"
#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

class TokenTrie;

/// The children of a node that has many: which bytes they have, and where they are. Brothers lie far apart in the trie.
struct TrieFan {
  std::array<uint64_t, 4> bytes{};
  std::array<uint32_t, 256> nodes{};  // by byte

  [[nodiscard]] uint32_t child(uint8_t byte) const { return nodes[byte]; }
};

/// A token of nothing but blanks (line ends: LF; others: space, tab, CR).
struct BlankToken {
  int32_t token;
  int32_t n_line_ends, n_others;
};

/// A node whose bytes from the root on are nothing but blanks, with other bytes below it.
struct BlankPrefix {
  uint32_t node;
  int32_t n_line_ends, n_others;
  std::array<uint64_t, 4> bytes;  // of its children that are no blanks
};

class Vocabulary {
 public:
  using Node = TrieNode;

  /// tokens[i]: bytes of token i; empty for special tokens and ids without text, which no text ever makes.
  /// end_of_text: ids that end a text (allowed where a text is complete). n_head: rows of the output head; ids from there
  /// on are never allowed, rows beyond tokens.size() neither. Tokens longer than kTokenBytesMax are never allowed.
  /// n_kind_bytes_max: of kinds(), which are empty at first; KindCache::kBytesMax if not given.
  /// Errors   kInvalidArgument: no token has text, or an end id is outside the head
  static Result<std::shared_ptr<const Vocabulary>> build(std::span<const std::string_view> tokens,
                                                         std::span<const int32_t> end_of_text, int32_t n_head,
                                                         int64_t n_kind_bytes_max);
  static Result<std::shared_ptr<const Vocabulary>> build(std::span<const std::string_view> tokens,
                                                         std::span<const int32_t> end_of_text, int32_t n_head);

  ~Vocabulary();
  [[nodiscard]] int32_t n_head() const { return n_head_; }
  [[nodiscard]] int32_t n_words() const { return (n_head_ + 63) / 64; }
  /// Empty: special, or outside the head or the vocabulary.
  [[nodiscard]] std::string_view bytes(int32_t token) const {
    if (token < 0 || token >= n_tokens_) return {};
    const auto i = static_cast<size_t>(token);
    return std::string_view(text_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  [[nodiscard]] std::span<const int32_t> end_of_text() const { return end_of_text_; }
  [[nodiscard]] bool ends_text(int32_t token) const;

  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  /// nodes()[i] is the root's child for this byte; 0: it has none.
  [[nodiscard]] int32_t first_node(uint8_t byte) const { return first_nodes_[byte]; }
  /// The child of a node; 0: it has none for this byte.
  /// Cost     a look at the smaller brothers, where they are few; else a hash look-up
  [[nodiscard]] uint32_t child(uint32_t node, uint8_t byte) const;
  /// The nodes of tokens that begin with an ASCII digit, if they are nothing but digits; else none.
  struct NodeRange {
    uint32_t first = 0, n = 0;
  };
  [[nodiscard]] NodeRange digit_nodes() const { return digit_nodes_; }
  [[nodiscard]] std::span<const BlankToken> blank_tokens() const { return blank_tokens_; }
  [[nodiscard]] std::span<const BlankPrefix> blank_prefixes() const { return blank_prefixes_; }
  /// Tokens in which a JSON number ends before the last byte: digits, perhaps behind other bytes of numbers, then something
  /// else, perhaps more. Many tokenizers have none.
  [[nodiscard]] std::span<const int32_t> number_end_tokens() const { return number_end_tokens_; }
  /// nullptr: the node has few children, or is none of nodes().
  [[nodiscard]] const TrieFan* fan(uint32_t node) const {
    const uint32_t at = fan_index_.find(node);
    return at == FlatMap::kNone ? nullptr : &fans_[at];
  }
  /// The next token with the same bytes as `token`, or -1.
  [[nodiscard]] int32_t same_bytes(int32_t token) const {
    return same_bytes_.empty() ? -1 : same_bytes_[static_cast<size_t>(token)];
  }
  /// The token, the first of those with its bytes, and the others. -1: nothing.
  void append_all(int32_t first, std::vector<int32_t>& tokens) const {
    for (int32_t token = first; token >= 0; token = same_bytes(token)) tokens.push_back(token);
  }
  [[nodiscard]] int32_t token_bytes_max() const { return token_bytes_max_; }

  /// Every id of vocabulary and head but the end-of-text ids: free text.
  [[nodiscard]] std::span<const MaskWord> free_row() const { return free_row_; }
  /// Tokens of well-formed text, from between two characters on; the last character may be cut.
  [[nodiscard]] std::span<const MaskWord> text_row() const { return text_row_; }
  /// Tokens with this byte, ascending; of ASCII letters, digits and the space, which many have, nothing.
  [[nodiscard]] std::optional<std::span<const int32_t>> tokens_with(uint8_t byte) const;
  /// The tokens of nothing but ASCII digits, and how many they are.
  [[nodiscard]] std::span<const MaskWord> digit_row() const { return digit_row_; }
  [[nodiscard]] int32_t n_digit_tokens() const { return n_digit_tokens_; }

  /// Tokens that stay inside a JSON string of any text in which n characters are still allowed; n saturates at
  /// string_chars_max(), which stands for any number.
  [[nodiscard]] std::span<const MaskWord> string_mask(int32_t n_chars_max) const;
  [[nodiscard]] int32_t string_chars_max() const { return static_cast<int32_t>(strings_.row_of.size()) - 1; }
  [[nodiscard]] const StringTokens& strings() const { return strings_; }
  [[nodiscard]] const JsonTokens& json_tokens() const { return json_tokens_; }

  /// For walks of which much lives.
  [[nodiscard]] const TokenTrie& token_trie() const { return *token_trie_; }
  /// What all grammars of this vocabulary know of their strings. Its facts refer to rows of the vocabulary.
  [[nodiscard]] KindCache& kinds() const { return *kinds_; }

  /// With all that is kept in kinds() now.
  [[nodiscard]] int64_t n_bytes() const;

 private:
  explicit Vocabulary(int64_t n_kind_bytes_max);
  int32_t n_head_ = 0;
  int32_t n_tokens_ = 0;  // min(tokens, head)
  int32_t token_bytes_max_ = 0;
  int32_t n_digit_tokens_ = 0;
  std::vector<int32_t> end_of_text_;  // ascending
  std::string text_;                  // the bytes of all tokens
  std::vector<uint32_t> offsets_;     // n_tokens_ + 1
  std::vector<Node> nodes_;
  std::array<int32_t, 256> first_nodes_{};
  NodeRange digit_nodes_;
  std::vector<BlankToken> blank_tokens_;
  std::vector<BlankPrefix> blank_prefixes_;
  std::vector<int32_t> number_end_tokens_;
  std::vector<TrieFan> fans_;
  FlatMap fan_index_;  // node -> fans_
  void find_digit_nodes();
  void find_fans();
  void find_text_tokens();
  void find_blanks();
  void find_number_ends();
  std::vector<int32_t> same_bytes_;  // empty: no two tokens are equal
  std::vector<MaskWord> free_row_, digit_row_, text_row_;
  std::array<uint32_t, 257> with_byte_from_{};  // of with_byte_
  std::vector<int32_t> with_byte_;              // tokens
  StringTokens strings_;
  JsonTokens json_tokens_;
  std::unique_ptr<const TokenTrie> token_trie_;
  std::unique_ptr<KindCache> kinds_;
};

}  // namespace deepinfer::grammar
