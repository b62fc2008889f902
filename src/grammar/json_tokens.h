// The tokens of a vocabulary as they look from between two tokens of JSON: those that can stand there, whatever the schema
// (307 of the model's 129,280). Found once per vocabulary. Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

struct JsonTokens {
  /// What is left of a token without the blanks that it begins with.
  struct Text {
    std::string_view bytes;  // in the vocabulary
    // If it begins with a quote, of the string:
    int32_t n_chars = 0;
    bool closes = false, has_escape = false;
  };
  struct Token {
    int32_t token;                  // the first with these bytes
    int32_t n_line_ends, n_others;  // blanks before the text
    int32_t text;
  };
  std::vector<Text> texts;                 // ascending; some JSON text goes on like each from somewhere
  std::vector<Token> tokens;               // without those that begin with a number at once, and those of blanks alone
  std::vector<TrieNode> trie;              // of the texts; values are their indices
  uint32_t quote_node = 0;                 // of the trie, a child of the root; 0: there is none
  size_t first_string = 0, n_strings = 0;  // the texts that begin with a quote

  [[nodiscard]] int64_t n_bytes() const;
};

/// Borrows the bytes. Precondition: entries ascend, their values are token ids.
JsonTokens find_json_tokens(std::span<const TrieEntry> entries);

}  // namespace deepinfer::grammar
