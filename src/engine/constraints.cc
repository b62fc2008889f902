#include "engine/constraints.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace deepinfer {

Result<std::shared_ptr<const grammar::Vocabulary>> grammar_vocabulary(const Tokenizer& tokenizer,
                                                                      std::span<const int32_t> end_ids,
                                                                      int32_t vocab_size) {
  std::vector<std::string_view> tokens(static_cast<size_t>(std::min(tokenizer.vocab_size(), vocab_size)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!tokenizer.is_added(id)) tokens[i] = tokenizer.token_bytes(id);
  }
  return grammar::Vocabulary::build(tokens, end_ids, vocab_size);
}

Constraints::Constraints(const Tokenizer& tokenizer, std::vector<int32_t> end_ids, int32_t vocab_size)
    : tokenizer_(tokenizer), end_ids_(std::move(end_ids)), vocab_size_(vocab_size) {}

Result<grammar::GrammarCache*> Constraints::cache() {
  const std::lock_guard lock(mutex_);
  if (!cache_) {
    DI_ASSIGN_OR_RETURN(std::shared_ptr<const grammar::Vocabulary> vocabulary,
                        grammar_vocabulary(tokenizer_, end_ids_, vocab_size_));
    cache_ = std::make_unique<grammar::GrammarCache>(std::move(vocabulary));
  }
  return cache_.get();
}

Result<std::shared_ptr<grammar::CompiledGrammar>> Constraints::compile(const grammar::Constraint& constraint) {
  DI_ASSIGN_OR_RETURN(grammar::GrammarCache* const compiler, cache());
  grammar::Compiled compiled = compiler->compile(constraint);
  if (!compiled.refusal) return std::move(compiled.grammar);
  const grammar::Refusal& refusal = *compiled.refusal;
  std::string where = refusal.pointer;
  if (!refusal.keyword.empty()) where += (where.empty() ? "" : ", ") + refusal.keyword;
  return Error{Code::kInvalidArgument,
               "the constraint is refused" + (where.empty() ? "" : " at " + where) + ": " + refusal.reason};
}

}  // namespace deepinfer
