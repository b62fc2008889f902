// Finds added tokens in raw text, leftmost-longest. Immutable once made; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer {

struct AddedToken {
  std::string content;  // not empty, at most kAddedTokenBytesMax
  int32_t id;
};

struct AddedTokenMatch {
  size_t begin;
  size_t end;
  int32_t id;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// The first match at or after `from`; of those that begin there, the longest.
  /// Cost: linear in the text, times the length of the longest token where tokens keep almost matching.
  [[nodiscard]] std::optional<AddedTokenMatch> find(std::string_view text, size_t from) const;

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

 private:
  [[nodiscard]] const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;        // sorted by content
  std::array<bool, 256> starts_token_{};  // by first byte
};

}  // namespace deepinfer
