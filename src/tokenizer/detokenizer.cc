// Detokenizer and the Utf8Stream under it.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "deepinfer/tokenizer.h"
#include "text/utf8.h"

namespace deepinfer {

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  if (bytes.empty()) return;
  // An unfinished character has at most three bytes, so joining costs one short copy, and only when there is one.
  std::string joined;
  std::string_view rest = bytes;
  bool only_primed = n_pending_ > 0 && pending_is_primed_;  // true until past the pending bytes
  const size_t n_pending_before = n_pending_;
  if (n_pending_ > 0) {
    joined.reserve(n_pending_ + bytes.size());
    joined.append(pending_, n_pending_);
    joined.append(bytes);
    rest = joined;
  }
  n_pending_ = 0;
  pending_is_primed_ = false;
  while (!rest.empty()) {
    const size_t n_good = find_ill_formed(rest).value_or(rest.size());
    out += rest.substr(0, n_good);
    only_primed = only_primed && n_good == 0;
    rest.remove_prefix(n_good);
    if (rest.empty()) return;
    const Utf8Step step = next_utf8(rest);
    if (step.unit == Utf8Unit::kUnfinished) {
      std::memcpy(pending_, rest.data(), step.n_bytes);
      n_pending_ = step.n_bytes;
      return;
    }
    if (!(only_primed && step.n_bytes <= n_pending_before)) out += kReplacementCharacter;
    only_primed = false;
    rest.remove_prefix(step.n_bytes);
  }
}

void Utf8Stream::finish(std::string& out) {
  if (n_pending_ > 0 && !pending_is_primed_) out += kReplacementCharacter;
  n_pending_ = 0;
  pending_is_primed_ = false;
}

void Utf8Stream::prime(std::string_view text) {
  n_pending_ = 0;
  for (size_t n = std::min<size_t>(3, text.size()); n > 0; --n) {
    const std::string_view tail = text.substr(text.size() - n);
    if (next_utf8(tail).unit != Utf8Unit::kUnfinished) continue;
    std::memcpy(pending_, tail.data(), n);
    n_pending_ = static_cast<uint8_t>(n);
    break;
  }
  pending_is_primed_ = n_pending_ > 0;
}

Status Detokenizer::prime(std::span<const int32_t> prompt_ids) {
  DI_ASSIGN_OR_RETURN(const std::string bytes, tokenizer_->decode_bytes(prompt_ids, skip_special_));
  stream_.prime(bytes);
  return {};
}

Result<std::string> Detokenizer::push(int32_t id) {
  DI_ASSIGN_OR_RETURN(const std::string bytes, tokenizer_->decode_bytes({&id, 1}, skip_special_));
  std::string text;
  stream_.push(bytes, text);
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  stream_.finish(text);
  return text;
}

}  // namespace deepinfer
