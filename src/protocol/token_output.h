// Token ids of one sequence → output events: the detokenizer and the output parser joined, with token counts.
#pragma once

#include <cstdint>
#include <utility>

#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"
#include "protocol/output_parser.h"
#include "protocol/special_tokens.h"

namespace deepinfer::protocol {

/// Borrows the tokenizer and the specials, which must outlive it. Owner's thread.
class TokenOutput {
 public:
  TokenOutput(const Tokenizer& tokenizer, const SpecialTokens& specials, OutputSettings settings)
      : tokenizer_(&tokenizer), specials_(&specials), parser_(std::move(settings), OutputParser::Markers::kByToken) {}

  /// Errors   kInvalidArgument: an id outside the vocabulary (the state is unchanged)
  Status push(int32_t id, OutputEvents& events);
  void finish(OutputEvents& events);

  [[nodiscard]] const OutputParser& parser() const { return parser_; }
  /// Ids pushed so far, but not those after the end nor an EOS; and those of them after which the reasoning goes on.
  [[nodiscard]] int64_t n_tokens() const { return n_tokens_; }
  [[nodiscard]] int64_t n_reasoning_tokens() const { return n_reasoning_tokens_; }

 private:
  const Tokenizer* tokenizer_;     // borrowed
  const SpecialTokens* specials_;  // borrowed
  OutputParser parser_;
  int64_t n_tokens_ = 0;
  int64_t n_reasoning_tokens_ = 0;
};

}  // namespace deepinfer::protocol
