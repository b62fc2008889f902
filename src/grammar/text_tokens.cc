#include "grammar/text_tokens.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kLastControl = 0x1F;

bool must_be_escaped(uint8_t byte) { return byte <= kLastControl || byte == '"' || byte == '\\'; }

}  // namespace

TextTokens::TextTokens(const Vocabulary& vocabulary) : vocabulary_(vocabulary), strings_(vocabulary.strings()) {}

void TextTokens::begin(bool only_needed_escapes) {
  only_needed_ = only_needed_escapes;
  text_.clear();
  tokens_.clear();
  tokens_to_ask_.clear();
  closings_to_ask_.clear();
  ended_.clear();
  path_.assign(1, {0, strings_.escaped_texts.size() > 1 || !strings_.escaped_tokens.empty() ? 0 : kNowhere});
}

void TextTokens::take_token(int32_t first) { vocabulary_.append_all(first, tokens_); }

std::span<const EscapedToken> TextTokens::escaped_at(uint32_t node) const {
  const int32_t list = strings_.escaped_texts[node].token;
  if (list < 0) return {};
  const auto i = static_cast<size_t>(list);
  return std::span(strings_.escaped_tokens)
      .subspan(strings_.escaped_from[i], strings_.escaped_from[i + 1] - strings_.escaped_from[i]);
}

/// The tokens whose whole text has been read.
void TextTokens::take_decoded(uint32_t node) {
  for (const EscapedToken& token : escaped_at(node))
    if (!token.closes && token.cut == EscapedToken::Cut::kNone && (token.is_needed || !only_needed_))
      take_token(token.token);
}

/// The tokens that end within an escape of the character that begins with `byte`.
void TextTokens::take_cut(uint32_t node, uint8_t byte) {
  for (const EscapedToken& token : escaped_at(node)) {
    if (token.closes || (only_needed_ && !token.is_needed)) continue;
    switch (token.cut) {
      case EscapedToken::Cut::kNone:
        break;
      case EscapedToken::Cut::kBackslash:
        if (!only_needed_ || must_be_escaped(byte)) take_token(token.token);
        break;
      case EscapedToken::Cut::kDigits:
        if (only_needed_ && byte > kLastControl) break;
        if (byte >= 0x80) {
          tokens_to_ask_.push_back(token.token);
        } else if (byte >> (4 * (4 - token.n_digits)) == token.digits) {
          take_token(token.token);
        }
        break;
      case EscapedToken::Cut::kPair:
        if (!only_needed_ && byte >= 0xF0) tokens_to_ask_.push_back(token.token);
        break;
    }
  }
}

bool TextTokens::enter(uint8_t byte) {
  const Place from = path_.back();
  Place to{kNowhere, kNowhere};
  if (from.decoded != kNowhere) {
    take_cut(from.decoded, byte);
    const std::vector<TrieNode>& trie = strings_.escaped_texts;
    for (uint32_t child = from.decoded + 1; child < trie[from.decoded].next; child = trie[child].next) {
      if (trie[child].byte != byte) continue;
      to.decoded = child;
      take_decoded(child);
      break;
    }
  }
  if (from.raw != kNowhere && !must_be_escaped(byte)) {
    to.raw = vocabulary_.child(from.raw, byte);
    if (to.raw == 0) {
      to.raw = kNowhere;
    } else if (vocabulary_.nodes()[to.raw].token >= 0) {
      take_token(vocabulary_.nodes()[to.raw].token);
    }
  }
  if (to.raw == kNowhere && to.decoded == kNowhere) return false;
  path_.push_back(to);
  text_ += static_cast<char>(byte);
  return true;
}

void TextTokens::leave(int32_t n_bytes) {
  path_.resize(path_.size() - static_cast<size_t>(n_bytes));
  text_.resize(text_.size() - static_cast<size_t>(n_bytes));
}

void TextTokens::end() {
  const Place at = path_.back();
  if (at.raw != kNowhere && text_.size() <= strings_.text_bytes_max) {
    const auto found = strings_.all_closings.of_text.find(text_);
    if (found != strings_.all_closings.of_text.end()) ended_.push_back(found->first);
  }
  if (at.decoded == kNowhere) return;
  for (const EscapedToken& token : escaped_at(at.decoded))
    if (token.closes && (token.is_needed || !only_needed_)) closings_to_ask_.push_back(token.token);
}

std::vector<int32_t> TextTokens::take_tokens() {
  std::sort(tokens_.begin(), tokens_.end());
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end()), tokens_.end());
  return std::move(tokens_);
}

}  // namespace deepinfer::grammar
