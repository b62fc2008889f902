#include "engine/answer_text.h"

#include <algorithm>
#include <utility>

namespace deepinfer {

namespace {
constexpr int64_t kUnfinished = -1;
}

AnswerText::AnswerText(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                       std::vector<std::string> stop_strings)
    : tokenizer_(tokenizer), stops_(std::move(stop_strings)) {
  // A character is at most four bytes and every token that carries one has at least one byte of it.
  constexpr size_t kTokensMax = 4;
  std::string end;
  for (size_t i = prompt.size() - std::min(prompt.size(), kTokensMax); i < prompt.size(); ++i) {
    if (tokenizer.contains(prompt[i])) end += tokenizer.token_bytes(prompt[i]);
  }
  utf8_.prime(end);
}

std::string AnswerText::release(std::string_view decoded) {
  n_decoded_bytes_ += static_cast<int64_t>(decoded.size());
  std::string certain = stops_.push(decoded);
  text_ += certain;
  return certain;
}

std::string AnswerText::push(int32_t id) {
  std::string decoded;
  if (tokenizer_.contains(id)) utf8_.push(tokenizer_.token_bytes(id), decoded);
  std::string certain = release(decoded);
  token_end_.push_back(utf8_.n_pending() == 0 ? n_decoded_bytes_ : kUnfinished);
  return certain;
}

std::string AnswerText::finish() {
  if (stopped()) return {};
  std::string decoded;
  utf8_.finish(decoded);
  std::string certain = release(decoded);
  if (stopped()) return certain;
  const std::string held = stops_.finish();
  text_ += held;
  return certain + held;
}

std::optional<std::string> AnswerText::stop_string() const {
  if (!stopped()) return std::nullopt;
  return stops_.match();
}

int64_t AnswerText::n_kept() const {
  const auto n_tokens = static_cast<int64_t>(token_end_.size());
  if (!stopped()) return n_tokens;
  const auto cut = static_cast<int64_t>(text_.size());
  int64_t n_kept = 0;
  for (int64_t i = 0; i < n_tokens; ++i) {
    const int64_t end = token_end_[static_cast<size_t>(i)];
    if (end > cut) break;
    if (end != kUnfinished) n_kept = i + 1;
  }
  return n_kept;
}

}  // namespace deepinfer
