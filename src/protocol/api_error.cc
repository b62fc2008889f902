#include "protocol/api_error.h"

#include "text/json.h"

namespace deepinfer::protocol {

std::string error_body(Api api, const ApiError& error) {
  const bool is_messages = api == Api::kMessages;
  std::string out = is_messages ? R"({"type":"error","error":{)" : R"({"error":{)";
  if (is_messages) {
    out += "\"type\":";
    // Anthropic's clients know the two kinds by these names.
    json::append_quoted(error.status < 500 ? error.type() : "api_error", out);
    out += ',';
  }
  out += "\"message\":";
  json::append_quoted(error.message, out);
  if (!is_messages) {
    out += ",\"type\":";
    json::append_quoted(error.type(), out);
    out += ",\"param\":";
    if (error.param.empty())
      out += "null";
    else
      json::append_quoted(error.param, out);
    out += ",\"code\":";
    json::append_quoted(error.type(), out);
  }
  out += "}}";
  return out;
}

}  // namespace deepinfer::protocol
