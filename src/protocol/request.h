// A request body of one of the three APIs, read and checked: the conversation and what else was asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deepinfer/status.h"
#include "protocol/api_error.h"
#include "protocol/conversation.h"
#include "text/json.h"

namespace deepinfer::protocol {

/// Bounds of one request, so that no client makes the server keep or do an unlimited amount of anything.
struct RequestLimits {
  json::Limits json;
  int64_t n_tools_max = 1024;
  int64_t n_stop_max = 64;
  int64_t stop_bytes_max = 4096;
  int64_t max_tokens_max = 393216;
  int32_t n_choices_max = 128;
};

/// Sampling as asked; what is absent takes the server's default.
struct SamplingFields {
  std::optional<double> temperature;                   // 0 to 2
  std::optional<double> top_p;                         // above 0, up to 1
  std::optional<int64_t> top_k;                        // -1 or 0: off
  std::optional<double> min_p;                         // 0 to 1
  std::optional<double> presence_penalty;              // -2 to 2
  std::optional<double> frequency_penalty;             // -2 to 2
  std::optional<uint64_t> seed;                        // below 2^63
  std::vector<std::pair<int32_t, double>> logit_bias;  // token id, -100 to 100
};

/// One request, independent of the API it came by.
struct ApiRequest {
  Api api = Api::kChat;
  std::string model;
  Conversation conversation;
  SamplingFields sampling;
  std::optional<int64_t> max_tokens;
  std::vector<std::string> stop;  // none empty
  int32_t n_choices = 1;          // Chat Completions
  bool logprobs = false;
  std::optional<int32_t> n_top_logprobs;  // 0 to 20
  bool stream = false;
  bool include_usage = false;  // Chat Completions: a last chunk with the usage
  json::Value echo;            // Responses: an object of the settings that responses repeat; else null
};

/// Reads a body. Unknown fields are ignored; what is known is honoured or refused (docs/PROTOCOL.md has the lists).
/// Errors   status 400; the message names the field
/// Cost     linear in the body
Result<ApiRequest, ApiError> read_request(Api api, std::string_view body, const RequestLimits& limits = {});

/// Same from a parsed body.
Result<ApiRequest, ApiError> read_request(Api api, const json::Value& body, const RequestLimits& limits = {});

/// `tools` of Chat Completions alone (the command line's --tools file holds one).
Result<std::vector<ToolDefinition>, ApiError> read_tools(const json::Value& tools, const RequestLimits& limits = {});

/// What a grammar must enforce on the answer, or nothing: the tools when any are offered, else the response format.
struct Constraint {
  std::string_view kind;  // json, regex, tool_call (calls that are made are valid), tool_call_required
  std::string schema;  // compact JSON Schema, the regular expression, or a compact array of the tools; empty: any JSON
};
std::optional<Constraint> constraint_of(const Conversation& conversation);

/// The limit on the answer when the request names none: 8192 without thinking, 65536 with, 131072 at full effort.
int64_t default_max_tokens(const Conversation& conversation);

}  // namespace deepinfer::protocol
