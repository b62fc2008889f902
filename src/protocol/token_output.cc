#include "protocol/token_output.h"

#include <string>

namespace deepinfer::protocol {

Status TokenOutput::push(int32_t id, OutputEvents& events) {
  if (!tokenizer_->contains(id)) {
    return Error{Code::kInvalidArgument, "token id " + std::to_string(id) + " is outside the vocabulary [0, " +
                                             std::to_string(tokenizer_->vocab_size()) + ")"};
  }
  if (parser_.section() == Section::kFinished) return {};
  const std::optional<Special> special = tokenizer_->is_added(id) ? specials_->find(id) : std::nullopt;
  if (special) {
    parser_.push_special(*special, events);
  } else if (tokenizer_->is_special(id)) {
    parser_.push_special(Special::kBos, events);  // like that one, it is no text and ends an unfinished character
  } else {
    parser_.push_text(tokenizer_->token_bytes(id), events);
  }
  if (special != Special::kEos) {
    ++n_tokens_;
    if (parser_.section() == Section::kReasoning) ++n_reasoning_tokens_;  // the token that ends it is none
  }
  return {};
}

void TokenOutput::finish(OutputEvents& events) { parser_.finish(events); }

}  // namespace deepinfer::protocol
