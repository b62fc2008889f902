// The tokens of a vocabulary as they look from inside a JSON string, between two characters: those that stay inside, and
// those that close it. Found once per vocabulary, because every grammar asks the same. Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace deepinfer::grammar {

/// Row of bits, one per head row: bit i of word i / 64 is token i.
using MaskWord = uint64_t;

/// One node of a byte trie in depth-first order. The root has no byte; the children of node i are i + 1,
/// nodes[i + 1].next, .. below nodes[i].next.
struct TrieNode {
  int32_t token;        // the value that ends here (a token: the first of equal ones), or -1
  uint32_t next : 31;   // index of the first node after this subtree
  uint32_t closes : 1;  // read as text of a JSON string from the root, this byte is the closing quote
  uint32_t byte : 8;
  uint32_t depth : 12;  // bytes from the root
  uint32_t chars : 12;  // characters begun from the root on, read as text of a JSON string (before its closing quote)
};
static_assert(sizeof(TrieNode) == 12);

/// All values in the subtree of node `at`.
template <class Take>
void for_each_value(std::span<const TrieNode> nodes, uint32_t at, Take take) {
  for (uint32_t i = at; i < nodes[at].next; ++i)
    if (nodes[i].token >= 0) take(nodes[i].token);
}

/// Longest bytes of a token that a trie holds; longer ones are never allowed.
inline constexpr size_t kTokenBytesMax = 4000;

struct TrieEntry {
  std::string_view bytes;
  int32_t value;
};
/// Precondition: ascending bytes. Of equal ones the first counts. `entries` may be empty.
std::vector<TrieNode> make_trie(std::span<const TrieEntry> entries);

/// Reads the text of a JSON string byte by byte, from between two characters on: RFC 8259, and surrogates in pairs only.
class StringScan {
 public:
  /// False: no JSON string goes on like that.
  bool step(uint8_t byte);

  [[nodiscard]] bool dead() const { return mode_ == Mode::kNever; }
  [[nodiscard]] bool closed() const { return mode_ == Mode::kClosed; }
  [[nodiscard]] bool between() const { return mode_ == Mode::kBetween; }
  /// Where it stands inside a raw character: equal numbers allow equal bytes.
  [[nodiscard]] int cut() const { return n_left_ << 16 | first_ << 8 | last_; }
  [[nodiscard]] bool has_escape() const { return has_escape_; }
  [[nodiscard]] int32_t n_chars() const { return n_chars_; }

 private:
  enum class Mode : uint8_t { kBetween, kInside, kEscape, kHex, kClosed, kNever };
  bool begin(uint8_t byte);
  bool hex(uint8_t byte);
  Mode mode_ = Mode::kBetween;
  uint8_t n_left_ = 0;                  // bytes of the character, or digits of the escape, still to come
  uint8_t first_ = 0x80, last_ = 0xBF;  // limits of the next byte of a character
  bool has_escape_ = false;
  bool high_ = false;  // the last character is the first half of a pair
  uint16_t hex_ = 0;
  uint16_t n_chars_ = 0;
};

/// A token that holds the closing quote: some characters, the quote, and a suffix.
struct Closing {
  int32_t token;    // the first with these bytes
  int32_t suffix;   // number of what stands behind the quote
  int32_t n_chars;  // before the quote
  int32_t suffix_bytes;
  bool has_bracket;  // a closing one, in the suffix
  bool ends_member;  // the string can be a name only, and the suffix reaches the end of its value
  bool may_be_json;  // false: no JSON text goes on like the suffix
};

/// A token with an escape, decoded: the text of its characters, and the escape that it ends in, if any.
struct EscapedToken {
  enum class Cut : uint8_t {
    kNone,       // it ends between two characters, or in a raw one
    kBackslash,  // behind a backslash
    kDigits,     // behind \u and n_digits digits, which are `digits`
    kPair,       // inside or behind the first half of a pair: the character that comes is beyond U+FFFF
  };
  int32_t token;  // the first with these bytes
  bool closes;  // with the closing quote in it; then `token` is an index of `closings`. The text ends before the quote
  bool is_needed;  // no escape could be left out (of the whole ones)
  Cut cut;
  uint8_t n_digits;
  uint16_t digits;
};

/// Closings by what stands before the quote and behind it.
struct ClosingTables {
  std::vector<MaskWord> all;  // the set of them
  /// Set per text before the quote, without escapes. The keys point into the vocabulary.
  std::unordered_map<std::string_view, std::vector<MaskWord>> of_text;
  std::vector<TrieNode> suffixes;  // trie of the suffixes, "" at the root; values are their numbers
};

struct StringTokens {
  /// Tokens that stay inside where n characters are still allowed: rows[row_of[n]], n < row_of.size(); the last stands
  /// for more. Characters may be raw, escaped, and cut at the end.
  std::vector<std::vector<MaskWord>> rows;
  std::vector<int32_t> row_of;
  /// Trie of the tokens with an escape or a cut character that may stay inside; the only ones that a machine can see
  /// differently from `rows`.
  std::vector<TrieNode> rest;
  std::vector<TrieNode> escapes;  // those with an escape

  std::vector<Closing> closings;  // ascending tokens; a set of them is a row of n_closing_words words
  int32_t n_closing_words = 0;
  std::vector<TrieNode> escaped_trie;  // of those with an escape before the quote; values are indices of `closings`
  std::vector<MaskWord> plain;         // set: closings without an escape
  ClosingTables all_closings;          // by everything
  ClosingTables json_closings;         // of those that may be JSON
  size_t text_bytes_max = 0;
  std::vector<MaskWord> chars_up_to;  // n_closing_words each: n_chars <= 0, 1, ..
  int32_t closing_chars_max = 0;      // largest n_chars
  std::vector<MaskWord> of_suffix;    // n_closing_words each
  int32_t suffix_bytes_max = 0;

  /// Trie of the decoded texts of escaped tokens; values are numbers of lists: the escaped tokens with that text are
  /// escaped_tokens[escaped_from[i]] .. below escaped_tokens[escaped_from[i + 1]].
  std::vector<TrieNode> escaped_texts;
  std::vector<uint32_t> escaped_from;
  std::vector<EscapedToken> escaped_tokens;
  /// Tokens and closings with an escape behind other characters that could be left out, or may turn out so: whether they may
  /// come hangs on what these characters lead to.
  std::vector<int32_t> late_escapes, late_closings;

  [[nodiscard]] int64_t n_bytes() const;
};

/// Borrows the bytes. Precondition: entries ascend, their values are token ids in 0..n_head-1; same_as[token]: the next token with equal
/// bytes or -1 (may be empty: there are none).
StringTokens find_string_tokens(std::span<const TrieEntry> entries, std::span<const int32_t> same_as, int32_t n_head);

}  // namespace deepinfer::grammar
