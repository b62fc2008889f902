// From sampled ids to the answer's text: detokenised, cut at stop strings, and the tokens that belong to what is left.
// One sequence's state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deepinfer/tokenizer.h"
#include "engine/stop_strings.h"

namespace deepinfer {

class AnswerText {
 public:
  /// tokenizer outlives it. `prompt` is what the answer continues: a character that begins there is completed here.
  AnswerText(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt, std::vector<std::string> stop_strings);

  /// Adds a token; returns text that is now certain. An id the tokenizer does not know adds no text (a model's head may
  /// be wider than its tokenizer).
  std::string push(int32_t id);
  /// The answer is over; returns the rest of the text.
  std::string finish();

  [[nodiscard]] bool stopped() const { return stops_.matched(); }
  [[nodiscard]] std::optional<std::string> stop_string() const;
  [[nodiscard]] const std::string& text() const { return text_; }
  /// How many of the pushed tokens lie wholly in text(); all of them unless a stop string cut the text. After finish().
  [[nodiscard]] int64_t n_kept() const;

 private:
  std::string release(std::string_view decoded);

  const Tokenizer& tokenizer_;
  Utf8Stream utf8_;
  StopStrings stops_;
  std::string text_;                // released so far
  int64_t n_decoded_bytes_ = 0;     // of text before the search for stop strings
  std::vector<int64_t> token_end_;  // decoded bytes up to the end of each token, -1 while a character is unfinished
};

}  // namespace deepinfer
