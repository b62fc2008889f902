// The tokens that go on with some of a list of texts inside a JSON string: names of members, values of an enumeration. A walk
// of the texts and the token trie together; no machine is asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/string_tokens.h"
#include "grammar/text_visitor.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Reusable. Not thread-safe.
class TextTokens final : public TextVisitor {
 public:
  /// Borrowed.
  explicit TextTokens(const Vocabulary& vocabulary);

  /// Forgets all. `only_needed_escapes`: characters that could stand for themselves are never escaped.
  void begin(bool only_needed_escapes);

  bool enter(uint8_t byte) override;
  void leave(int32_t n_bytes) override;
  void end() override;

  /// Tokens that stay inside of some text and are a part of it, ascending. Those of tokens_to_ask() may be, too.
  std::vector<int32_t> take_tokens();
  /// Texts behind which the closing quote may be in the token of some closing: keys of ClosingTables::of_text.
  [[nodiscard]] const std::vector<std::string_view>& ended() const { return ended_; }
  /// Tokens and closings with escapes that are to be asked by their bytes; some twice.
  [[nodiscard]] const std::vector<int32_t>& tokens_to_ask() const { return tokens_to_ask_; }
  [[nodiscard]] const std::vector<int32_t>& closings_to_ask() const { return closings_to_ask_; }

 private:
  /// Where the texts stand in the trie of tokens (raw characters) and in the one of decoded escapes.
  struct Place {
    uint32_t raw, decoded;
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;

  void take_token(int32_t first);
  void take_decoded(uint32_t node);
  void take_cut(uint32_t node, uint8_t byte);
  [[nodiscard]] std::span<const EscapedToken> escaped_at(uint32_t node) const;

  const Vocabulary& vocabulary_;
  const StringTokens& strings_;
  bool only_needed_ = true;
  std::vector<Place> path_;
  std::string text_;  // read so far
  std::vector<int32_t> tokens_, tokens_to_ask_, closings_to_ask_;
  std::vector<std::string_view> ended_;
};

}  // namespace deepinfer::grammar
