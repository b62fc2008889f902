// The content of a tokenizer.json as plain data. Reading it refuses by name everything this engine does not implement;
// whether ids and merges fit together is for Vocabulary and Bpe to say. Knows JSON, nothing of tokenizing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

struct VocabularyEntry {
  std::string token;  // byte-level form
  int32_t id;
};

struct MergeEntry {
  std::string left;
  std::string right;
};

struct AddedTokenEntry {
  std::string content;
  int32_t id;
  bool special;
  bool normalized;  // found only in what the others leave over
};

struct TokenizerFile {
  std::vector<VocabularyEntry> vocabulary;
  std::vector<MergeEntry> merges;  // lowest rank first
  std::vector<AddedTokenEntry> added_tokens;
};

/// Limits, far above any real file; they keep ids and ranks within their packed tables.
inline constexpr int32_t kTokensMax = 1 << 20;
inline constexpr size_t kAddedTokenBytesMax = 256;

/// Errors   kBadModelFile: not JSON, not of the expected form, or a feature that is not implemented
Result<TokenizerFile> parse_tokenizer_file(std::string_view json);

}  // namespace deepinfer
