#include "protocol/request.h"

#include "protocol/conversation_fields.h"
#include "protocol/request_fields.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

/// The tool as the grammar gets it, in Chat Completions' form.
void append_tool(const ToolDefinition& tool, std::string& out) {
  out += R"({"type":"function","function":{"name":)";
  json::append_quoted(tool.name, out);
  out += ",\"description\":";
  json::append_quoted(tool.description, out);
  out += ",\"parameters\":";
  if (tool.parameters)
    json::append(*tool.parameters, json::Style::kCompact, out);
  else
    out += "{}";
  out += ",\"strict\":";
  out += tool.strict ? "true}}" : "false}}";
}

std::string offered_tools(const Conversation& conversation) {
  const bool is_named = conversation.tool_choice == ToolChoice::kNamed;
  std::string out = "[";
  for (const ToolDefinition& tool : conversation.tools) {
    if (is_named && tool.name != conversation.named_tool) continue;
    if (out.size() > 1) out += ',';
    append_tool(tool, out);
  }
  return out += ']';
}

}  // namespace

Result<ApiRequest, ApiError> read_request(Api api, std::string_view body, const RequestLimits& limits) {
  const auto parsed = json::parse(body, limits.json);
  if (!parsed) return ApiError{.message = "body: " + parsed.error().message, .param = {}};
  return read_request(api, *parsed, limits);
}

Result<ApiRequest, ApiError> read_request(Api api, const json::Value& body, const RequestLimits& limits) {
  FirstError errors;
  const Field root(errors, body);
  ApiRequest request;
  request.api = api;
  if (root.needs(Kind::kObject)) {
    read_model_and_stream(root, request);
    read_sampling(root, request.sampling);
    check_unread_fields(root, api);
  }
  if (errors.ok()) {
    if (api == Api::kChat) read_chat(root, limits, request);
    if (api == Api::kMessages) read_messages(root, limits, request);
    if (api == Api::kResponses) read_responses(root, limits, request);
  }
  if (!errors.ok()) return errors.take();
  return request;
}

Result<std::vector<ToolDefinition>, ApiError> read_tools(const json::Value& tools, const RequestLimits& limits) {
  FirstError errors;
  std::vector<ToolDefinition> out;
  ToolReader reader(limits, out);
  const Field root(errors, tools);
  if (root.needs(Kind::kArray)) read_chat_tools(root, reader);
  if (!errors.ok()) return errors.take();
  return out;
}

std::optional<Constraint> constraint_of(const Conversation& conversation) {
  if (conversation.tool_choice != ToolChoice::kNone && !conversation.tools.empty()) {
    const bool is_free = conversation.tool_choice == ToolChoice::kAuto;
    return Constraint{is_free ? "tool_call" : "tool_call_required", offered_tools(conversation)};
  }
  switch (conversation.response_format) {
    case ResponseFormat::kText:
      return std::nullopt;
    case ResponseFormat::kJsonObject:
      return Constraint{"json", ""};
    case ResponseFormat::kJsonSchema:
      return Constraint{"json", json::to_string(conversation.response_schema, json::Style::kCompact)};
    case ResponseFormat::kRegex:
      return Constraint{"regex", conversation.response_regex};
  }
  return std::nullopt;
}

int64_t default_max_tokens(const Conversation& conversation) {
  constexpr int64_t kWithoutThinking = 8192;
  constexpr int64_t kThinking = 65536;
  constexpr int64_t kAtFullEffort = 131072;
  if (!conversation.thinking) return kWithoutThinking;
  return conversation.effort == kEffortMax ? kAtFullEffort : kThinking;
}

}  // namespace deepinfer::protocol
