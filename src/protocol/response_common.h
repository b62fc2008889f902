// What the responses of the three APIs share: writing JSON without a DOM, finish reasons, call ids, the order of calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/output_parser.h"
#include "protocol/response.h"

namespace deepinfer::protocol {

/// Writes one JSON object to the end of a string, member by member. Keys are plain ASCII. An inner object is written to
/// the string that member() returns and closed before the outer one goes on.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }

  ObjectWriter& text(std::string_view key, std::string_view value);
  /// `value` is escaped already and lacks only its quotes.
  ObjectWriter& escaped(std::string_view key, std::string_view value);
  ObjectWriter& number(std::string_view key, int64_t value);
  /// `value` is JSON.
  ObjectWriter& json(std::string_view key, std::string_view value);
  /// Writes the key; the caller appends the value to what is returned.
  std::string& member(std::string_view key);
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  bool is_empty_ = true;
};

/// `text` in quotes.
std::string in_quotes(std::string_view text);

/// Appends `text` to `all`, escaped, and returns what was appended, so that a stream and its fold share one escaping.
/// The view lives until `all` changes.
std::string_view append_piece(std::string_view text, std::string& all);

enum class FinishReason : uint8_t { kStop, kStopString, kCalls, kLength, kContentFilter };

/// A stop string ended the answer whatever the backend says of the tokens behind it; calls are the reason only if the
/// backend chose to stop.
FinishReason finish_reason_of(BackendFinish finish, bool has_stop_string, bool has_calls);

/// "call_07_" and 20 letters and digits: different for each (choice, call) of a response, the same in each run.
std::string make_call_id(std::string_view response_id, int32_t choice, int32_t call);

/// Checks that the owner of a Response keeps the call order it asks for.
class CallOrder {
 public:
  explicit CallOrder(int32_t n_choices);

  void begin();
  void check_choice(int32_t index) const;  // begun, and the choice is not over
  void finish_choice(int32_t index);
  void end();
  void fail();
  void check_body() const;
  [[nodiscard]] bool all_finished() const { return n_open_ == 0; }

 private:
  enum class Stage : uint8_t { kNew, kBegun, kEnded, kFailed };

  Stage stage_ = Stage::kNew;
  std::vector<bool> is_finished_;
  int32_t n_open_;
};

}  // namespace deepinfer::protocol
