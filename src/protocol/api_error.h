// What a client is told when its request cannot be served: the third kind of error of this layer, beside Error and bugs.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer::protocol {

/// The wire formats this layer speaks.
enum class Api { kChat, kMessages, kResponses };

/// A refusal. `message` is one line and names the field, its value and what is allowed.
struct ApiError {
  std::string message;
  std::string param;  // path of the field, as in messages[0].content[1].image_url; empty: the body as a whole
  int status = 400;

  /// "invalid_request_error" below 500, else "internal_error".
  [[nodiscard]] std::string_view type() const { return status < 500 ? "invalid_request_error" : "internal_error"; }
};

/// The body of the HTTP answer: {"error":{"message","type","param","code"}} for Chat Completions and Responses,
/// {"type":"error","error":{"type","message"}} for Messages.
std::string error_body(Api api, const ApiError& error);

}  // namespace deepinfer::protocol
