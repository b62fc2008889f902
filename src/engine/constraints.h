// Constraints of one model: its vocabulary as grammars see it and the compiled constraints, made when first asked for.
// Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "deepinfer/constraint.h"
#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"
#include "grammar/grammar_cache.h"
#include "grammar/vocabulary.h"

namespace deepinfer {

/// Added tokens (<think> and the like) count as tokens without text: no text of a constraint makes them.
/// Errors   kInvalidArgument: no token has text, or an end id is outside the head
/// Cost     0.3 s for 129,280 tokens
Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::span<const int32_t> end_ids,
                                                                      int32_t vocab_size);

class Constraints {
 public:
  /// The tokenizer is borrowed. end_ids: tokens that end a text; vocab_size: rows of the head.
  Constraints(const Tokenizer& tokenizer, std::vector<int32_t> end_ids, int32_t vocab_size);

  /// Errors   kInvalidArgument: refused; the place in the schema, the keyword and the reason
  Result<std::shared_ptr<grammar::CompiledGrammar>> compile(const grammar::Constraint& constraint);

 private:
  Result<grammar::GrammarCache*> cache();

  const Tokenizer& tokenizer_;
  const std::vector<int32_t> end_ids_;
  const int32_t vocab_size_;
  std::mutex mutex_;  // guards the making of cache_
  std::unique_ptr<grammar::GrammarCache> cache_;
};

}  // namespace deepinfer
