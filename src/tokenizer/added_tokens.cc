#include "tokenizer/added_tokens.h"

#include <algorithm>

namespace deepinfer {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (const AddedToken& token : tokens_) starts_token_[static_cast<unsigned char>(token.content[0])] = true;
}

/// Narrows the sorted tokens to those that agree with the text, byte by byte; a token that ends is the first of them.
const AddedToken* AddedTokens::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  const AddedToken* first = tokens_.data();
  const AddedToken* last = first + tokens_.size();
  for (size_t depth = 0; depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[depth]);
    const auto byte_of = [depth](const AddedToken& token) { return static_cast<unsigned char>(token.content[depth]); };
    first = std::partition_point(first, last, [&](const AddedToken& token) { return byte_of(token) < byte; });
    last = std::partition_point(first, last, [&](const AddedToken& token) { return byte_of(token) == byte; });
    if (first == last) break;
    if (first->content.size() == depth + 1) longest = first++;
    if (first == last) break;
  }
  return longest;
}

std::optional<AddedTokenMatch> AddedTokens::find(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!starts_token_[static_cast<unsigned char>(text[at])]) continue;
    if (const AddedToken* token = longest_at(text.substr(at)))
      return AddedTokenMatch{at, at + token->content.size(), token->id};
  }
  return std::nullopt;
}

}  // namespace deepinfer
