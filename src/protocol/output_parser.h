// What the model writes → reasoning, answer, calls. A state machine over a stream: the events are the same however the
// stream was cut, and nothing is held back that can no longer become a marker. One sequence's state; its owner's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "protocol/output_settings.h"
#include "protocol/special_tokens.h"

namespace deepinfer::protocol {

/// Receives what the parser recognises, in order. Text is UTF-8, whole characters, valid during the call, never empty.
class OutputEvents {
 public:
  virtual ~OutputEvents() = default;
  virtual void on_reasoning(std::string_view text) = 0;
  virtual void on_answer(std::string_view text) = 0;
  /// A call begins; its whole name is known, and may be empty. Its arguments follow, then its end; there is no end when
  /// the answer is cut.
  virtual void on_call_begin(std::string_view name) = 0;
  /// A piece of the arguments: joined they are a JSON object, as far as the model wrote JSON for its non-string values.
  virtual void on_call_arguments(std::string_view json) = 0;
  virtual void on_call_end() = 0;
};

enum class Section : uint8_t { kReasoning, kAnswer, kCalls, kFinished };

class OutputParser {
 public:
  /// How markers are told from text that looks like them.
  enum class Markers : uint8_t {
    kBySpelling,  // the stream is text: "</think>" is the marker
    kByToken,     // only push_special() brings markers; the same letters in text are text
  };

  OutputParser(OutputSettings settings, Markers markers);
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;

  /// Any bytes: a character may be cut between two calls; ill-formed UTF-8 becomes U+FFFD.
  /// Cost     1 to 5 ns a byte, plus some 30 ns a call; linear in all that was pushed, however it was cut
  void push_text(std::string_view bytes, OutputEvents& events);

  /// A special token the model chose (kByToken). Think-close and DSML are markers; where none is expected, and for the
  /// grounding tokens always, the spelling is content, in which stop strings are found, too. Every other one is no text
  /// and is dropped. An unfinished character before any of them is ill-formed.
  void push_special(Special special, OutputEvents& events);

  /// The stream is over: what was held back is released as what it would have been.
  void finish(OutputEvents& events);

  /// Where the stream stands. kFinished: a stop string or the end of the calls block was seen and nothing more will come.
  [[nodiscard]] Section section() const;
  /// Index in OutputSettings::stop of the stop string that ended the answer.
  [[nodiscard]] std::optional<int32_t> stop_index() const;
  /// Calls begun so far.
  [[nodiscard]] int32_t n_calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer::protocol
