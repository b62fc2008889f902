// The Engram token compression map: tokens that differ only in case, accents, width or blanks share a class. Engram
// layers hash classes instead of token ids. A pure function of the tokenizer; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"

namespace deepinfer {

struct TokenMap {
  std::vector<int32_t> class_of;  // [vocab_size] class of each token id, in [0, n_classes)
  int32_t n_classes;
};

/// Classes of ids 0 .. vocab_size - 1, numbered as they are first seen. The caller compares n_classes with the config.
/// Errors   kBadModelFile: vocab_size outside [1, tokenizer.vocab_size()]
/// Cost     about 0.1 s for 129 280 tokens
/// Source   spec of the backbone, section "Token compression map"
Result<TokenMap> compressed_token_map(const Tokenizer& tokenizer, int32_t vocab_size);

/// The text by which tokens are compared: compatibility-decomposed, without combining marks, lower case, blanks joined
/// and trimmed; a lone blank stays. Empty if nothing is left. Precondition: well-formed UTF-8.
std::string fold_token_text(std::string_view text);

}  // namespace deepinfer
