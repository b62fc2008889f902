#include "grammar/matcher.h"

#include <utility>

#include "base/check.h"
#include "grammar/compiled_grammar.h"

namespace deepinfer::grammar {

Matcher::Matcher(std::shared_ptr<CompiledGrammar> grammar, MatcherOptions options)
    : grammar_(std::move(grammar)),
      states_(grammar_->states()),
      options_(options),
      is_free_(options.starts_after >= 0) {}

State Matcher::state() const { return steps_.size() > 0 ? steps_.state() : states_->start(); }

Mask Matcher::mask() const {
  if (is_free_) return {grammar_->vocabulary().free_row().data(), {}, {}};
  if (ended()) return {nullptr, grammar_->vocabulary().end_of_text(), {}};
  return states_->mask(state());
}

bool Matcher::advance(int32_t token) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (token < 0 || token >= vocabulary.n_head()) return false;
  if (is_free_) {
    const auto i = static_cast<size_t>(token);
    if ((vocabulary.free_row()[i / 64] >> (i % 64) & 1) == 0) return false;
    ++n_free_;
    is_free_ = token != options_.starts_after;
    return true;
  }
  if (vocabulary.ends_text(token)) {
    if (!ended() && !states_->complete(state())) return false;
    steps_.push(state(), true);
    return true;
  }
  if (ended()) return false;
  const State to = states_->advance(state(), token);
  if (to == kDead) return false;
  steps_.push(to, false);
  return true;
}

void Matcher::roll_back(int32_t n) {
  DI_CHECK(n >= 0 && n <= n_tokens());
  const int32_t n_steps = std::min(n, steps_.size());
  steps_.pop(n_steps);
  if (n == n_steps) return;
  n_free_ -= n - n_steps;
  is_free_ = true;
}

std::vector<Mask> Matcher::masks_along(std::span<const int32_t> tokens) const {
  std::vector<Mask> masks;
  masks.reserve(tokens.size() + 1);
  Matcher at = fork();
  masks.push_back(at.mask());
  for (const int32_t token : tokens) {
    if (!at.advance(token)) break;
    masks.push_back(at.mask());
  }
  return masks;
}

std::string Matcher::forced_bytes(int32_t n_max) const {
  return is_free_ || ended() ? std::string() : states_->forced_bytes(state(), n_max);
}

bool Matcher::complete() const { return !is_free_ && (ended() || states_->complete(state())); }

int64_t Matcher::shortest_completion() const { return ended() ? 0 : states_->distance(state()); }

std::string Matcher::failure() const {
  if (!mask().empty()) return "";
  std::string cause = states_->failure();
  if (!cause.empty()) return cause;
  if (complete()) return "the text is complete, but the vocabulary has no end-of-text id";
  return "no token of the vocabulary continues the text under the constraint";
}

}  // namespace deepinfer::grammar
