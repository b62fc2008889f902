// Byte-level BPE tokenizer read from a model folder's tokenizer.json, and the streaming way back from ids to text.
// A Tokenizer is immutable once made: every const member may be called from any number of threads at the same time.
// Whatever tokenizer.json asks for and this code does not do is refused by name when it is read, never ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

/// Text ↔ token ids. Move-only; a moved-from Tokenizer may only be destroyed or assigned to.
class Tokenizer {
 public:
  /// Reads `dir`/tokenizer.json.
  /// Errors   kBadModelFile: file missing, damaged, or asking for something that is not implemented
  static Result<Tokenizer> open(const std::filesystem::path& dir);

  /// Same from the text of a tokenizer.json. Cost: about 0.15 s for 128 000 tokens.
  static Result<Tokenizer> from_json(std::string_view json);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of `text`; nothing is put in front or behind. `special`: added tokens (<｜User｜>, <think>, ...) are found in
  /// the raw text first, leftmost-longest; false treats all of the text as ordinary characters.
  /// Errors   kInvalidArgument: ill-formed UTF-8 (the message names the byte offset), or more than kTextBytesMax bytes
  /// Cost     linear in the text
  Result<std::vector<int32_t>> encode(std::string_view text, bool special = true) const;

  /// Text of `ids`: their bytes joined, each maximal subpart of ill-formed UTF-8 replaced by U+FFFD.
  /// `skip_special`: tokens marked special in tokenizer.json give no bytes.
  /// Errors   kInvalidArgument: an id outside [0, vocab_size())
  Result<std::string> decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The bytes of `ids` joined, which need not be UTF-8. Errors as decode().
  Result<std::string> decode_bytes(std::span<const int32_t> ids, bool skip_special = false) const;

  /// Highest id + 1, over the model's vocabulary and the added tokens. Every id below it has a token.
  [[nodiscard]] int32_t vocab_size() const;

  /// Precondition of the next four: contains(id); anything else is a bug of the caller.
  [[nodiscard]] bool contains(int32_t id) const { return id >= 0 && id < vocab_size(); }
  /// What the token adds to the decoded text: raw bytes, not always UTF-8. Lives as long as the Tokenizer.
  [[nodiscard]] std::string_view token_bytes(int32_t id) const;
  /// The string tokenizer.json has for it: byte-level form ("Ġthe") for ordinary tokens, plain text for added ones.
  [[nodiscard]] std::string_view token_string(int32_t id) const;
  /// Listed under added_tokens (<think> is added but not special).
  [[nodiscard]] bool is_added(int32_t id) const;
  /// Listed under added_tokens with "special": true.
  [[nodiscard]] bool is_special(int32_t id) const;

  /// The id whose token_string() is `token`, if there is one.
  [[nodiscard]] std::optional<int32_t> token_to_id(std::string_view token) const;

  /// Largest text encode() takes.
  static constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);

  std::unique_ptr<const Impl> impl_;
};

/// Bytes in, whole characters out. Ill-formed UTF-8 gives U+FFFD per maximal subpart, as soon as it is certain; what is
/// still an unfinished but possible character waits. A plain value: copying it saves the state. Owner's thread only.
class Utf8Stream {
 public:
  /// Appends to `out` the text that may be shown after `bytes`: complete characters only.
  void push(std::string_view bytes, std::string& out);

  /// Appends U+FFFD if a character is unfinished, and starts anew.
  void finish(std::string& out);

  /// Starts from the unfinished character at the end of `text`, if any: later bytes can complete it. If they do not,
  /// nothing is shown for it, since none of it came through push().
  void prime(std::string_view text);

  /// Bytes held back, 0 to 3.
  [[nodiscard]] std::size_t n_pending() const { return n_pending_; }

 private:
  char pending_[4] = {};
  uint8_t n_pending_ = 0;
  bool pending_is_primed_ = false;  // every pending byte came from prime()
};

/// Streaming decode: for any ids, the pieces of push() and finish() joined equal Tokenizer::decode() of all of them.
/// Borrows the Tokenizer, which must outlive it (moving the Tokenizer is not allowed meanwhile). Owner's thread only.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  /// Tells what stands before the first pushed id. No text of it is ever shown, except that a character which begins at
  /// its end and is completed by the pushed ids is shown whole. Call before the first push().
  /// Errors   kInvalidArgument: an id outside the vocabulary
  Status prime(std::span<const int32_t> prompt_ids);

  /// Text that may be shown after this id; often empty, never part of a character.
  /// Errors   kInvalidArgument: id outside the vocabulary (the state is unchanged)
  Result<std::string> push(int32_t id);

  /// The last piece: U+FFFD if a character is unfinished, else empty. Afterwards the Detokenizer is as new.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;  // borrowed
  Utf8Stream stream_;
  bool skip_special_;
};

}  // namespace deepinfer
