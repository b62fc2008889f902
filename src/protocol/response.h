// Output events → what a client receives: the stream events of its API, and the body, which is their fold. One response
// object per request; its owner's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/api_error.h"
#include "protocol/output_parser.h"
#include "protocol/request.h"

namespace deepinfer::protocol {

/// Token counts as the engine knows them.
struct ResponseUsage {
  int64_t n_prompt_tokens = 0;
  int64_t n_cached_tokens = 0;  // of the prompt tokens
  int64_t n_completion_tokens = 0;
  int64_t n_reasoning_tokens = 0;  // of the completion tokens
};

/// Why the engine stopped. What a client is told depends on what was parsed, too.
enum class BackendFinish : uint8_t { kStop, kLength, kContentFilter, kNone };

struct ResponseIdentity {
  std::string id;
  std::string model;
  int64_t created_s = 0;  // seconds since 1970
  std::optional<std::string> system_fingerprint = std::nullopt;
};

/// One server-sent event. `name` is empty where the API sends bare data lines.
struct StreamEvent {
  std::string_view name;  // lives for ever
  std::string data;       // one line of JSON, or [DONE]
};

/// Appends the event as it goes over the wire ("event: ...\ndata: ...\n\n").
void append_sse(const StreamEvent& event, std::string& out);

/// Media type of the stream.
inline constexpr std::string_view kSseMediaType = "text/event-stream";

/// Call order: begin(); then for each choice its output events, then finish_choice(); then end(). Events to send collect
/// in take_events(). body() is for after end(). A broken order is a bug of the caller (checked).
class Response {
 public:
  virtual ~Response() = default;

  /// `usage` needs the prompt's counts only.
  virtual void begin(const ResponseUsage& usage) = 0;
  /// Where choice `index` (below ApiRequest::n_choices) reports what it says.
  virtual OutputEvents& choice(int32_t index) = 0;
  /// The choice is over. `stop_index`: OutputParser::stop_index().
  virtual void finish_choice(int32_t index, BackendFinish finish, std::optional<int32_t> stop_index) = 0;
  /// All choices are over; `usage` is the sum over them.
  virtual void end(const ResponseUsage& usage) = 0;
  /// Something failed after begin(): the stream ends with the API's error event, and no finish is made up.
  virtual void fail(const ApiError& error) = 0;

  /// What is to be sent since the last call.
  [[nodiscard]] virtual std::vector<StreamEvent> take_events() = 0;
  /// The whole answer, one line of JSON. Precondition: after end()
  [[nodiscard]] virtual std::string body() const = 0;
};

/// The response that goes with `request`. Without `want_events` only body() is made.
std::unique_ptr<Response> make_response(const ApiRequest& request, ResponseIdentity identity, bool want_events);

}  // namespace deepinfer::protocol
