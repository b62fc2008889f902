// All tokens of a tokenizer: string, bytes and kind by id, and id by string. Immutable once made; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "tokenizer/tokenizer_file.h"

namespace deepinfer {

/// Strings joined end to end, found by index. Below 4 GiB in all.
class StringPool {
 public:
  void push_back(std::string_view text) {
    text_ += text;
    ends_.push_back(static_cast<uint32_t>(text_.size()));
  }
  [[nodiscard]] std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  [[nodiscard]] size_t size() const { return ends_.size(); }

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
};

class Vocabulary {
 public:
  /// Errors   kBadModelFile: an id or a string twice, an id without a token, a byte without a token, an added token
  ///          that would not decode to its own text
  static Result<Vocabulary> create(const TokenizerFile& file);

  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(strings_.size()); }

  // Precondition of all: 0 <= id < size().
  [[nodiscard]] std::string_view string(int32_t id) const { return strings_[static_cast<size_t>(id)]; }
  [[nodiscard]] std::string_view bytes(int32_t id) const { return bytes_[static_cast<size_t>(id)]; }
  [[nodiscard]] bool is_added(int32_t id) const { return has(id, kAdded); }
  [[nodiscard]] bool is_special(int32_t id) const { return has(id, kSpecial); }
  /// Listed in the model's vocabulary, so BPE can give it.
  [[nodiscard]] bool in_model(int32_t id) const { return has(id, kModel); }

  [[nodiscard]] std::optional<int32_t> find(std::string_view string) const;

  /// The token of one byte.
  [[nodiscard]] int32_t byte_token(uint8_t byte) const { return byte_tokens_[byte]; }

 private:
  enum Kind : uint8_t { kModel = 1, kAdded = 2, kSpecial = 4 };

  [[nodiscard]] bool has(int32_t id, Kind kind) const { return (kinds_[static_cast<size_t>(id)] & kind) != 0; }
  Status collect(const TokenizerFile& file, std::vector<std::string_view>& strings);
  Status index_strings();
  Status fill_bytes();
  Status find_byte_tokens();

  StringPool strings_;
  StringPool bytes_;
  std::vector<uint8_t> kinds_;  // Kind values joined by |
  std::vector<int32_t> slots_;  // open addressing by hash of the string; -1 is empty; at most half full
  std::array<int32_t, 256> byte_tokens_{};
};

}  // namespace deepinfer
