// Chat Completions: its messages, tools and settings.
#include <algorithm>

#include "protocol/conversation_fields.h"
#include "protocol/request_fields.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

enum class ChatPart : uint8_t { kText, kImage };
constexpr Spelling<ChatPart> kPartTypes[] = {{"text", ChatPart::kText}, {"image_url", ChatPart::kImage}};

// A developer's instructions are what the model knows as system.
constexpr Spelling<Role> kRoles[] = {
    {"system", Role::kSystem},       {"developer", Role::kSystem}, {"user", Role::kUser},
    {"assistant", Role::kAssistant}, {"tool", Role::kTool},        {"latest_reminder", Role::kLatestReminder},
};

enum class CallType : uint8_t { kFunction };
constexpr Spelling<CallType> kCallTypes[] = {{"function", CallType::kFunction}};

constexpr Spelling<ResponseFormat> kFormats[] = {
    {"text", ResponseFormat::kText},
    {"json_object", ResponseFormat::kJsonObject},
    {"json_schema", ResponseFormat::kJsonSchema},
    {"regex", ResponseFormat::kRegex},
};

class ChatReader {
 public:
  ChatReader(const Field& body, const RequestLimits& limits, ApiRequest& out)
      : body_(body), limits_(limits), out_(out), conversation_(out.conversation) {}

  void read() {
    read_settings();
    ToolReader tools(limits_, conversation_.tools);
    read_chat_tools(body_["tools"], tools);
    read_tool_choice(body_["tool_choice"]);
    const Field messages = body_["messages"];
    if (!messages.needs(Kind::kArray)) return;
    if (messages.size() == 0) return messages.refuse("empty, needs at least one message");
    conversation_.messages.reserve(messages.size());
    for (size_t idx = 0; idx < messages.size() && messages.ok(); ++idx)
      read_message(messages.item(idx), idx + 1 == messages.size());
    calls_.close(messages);
    check_json_mode(body_["response_format"], conversation_);
  }

 private:
  void read_settings() {
    const Field n = body_["n"];
    out_.n_choices = static_cast<int32_t>(n.integer(1, limits_.n_choices_max).value_or(1));
    // Both limits hold where both are given.
    const auto older = body_["max_tokens"].integer(1, limits_.max_tokens_max);
    const auto newer = body_["max_completion_tokens"].integer(1, limits_.max_tokens_max);
    out_.max_tokens = older && newer ? std::min(*older, *newer) : (older ? older : newer);
    read_stop(body_["stop"], true, limits_, out_.stop);
    read_thinking(body_["thinking"], body_["reasoning_effort"], conversation_);
    read_format(body_["response_format"], {.types = kFormats, .is_schema_nested = true}, conversation_);
    out_.conversation.parallel_tool_calls = body_["parallel_tool_calls"].boolean().value_or(true);
    read_log_probabilities();
    const Field options = body_["stream_options"];
    if (!options.may_be(Kind::kObject)) return;
    if (!out_.stream) return options.refuse("allowed only with \"stream\": true");
    out_.include_usage = options["include_usage"].boolean().value_or(false);
  }

  void read_log_probabilities() {
    constexpr int64_t kTopMax = 20;
    const Field top = body_["top_logprobs"];
    out_.logprobs = body_["logprobs"].boolean().value_or(false);
    const auto n_top = top.integer(0, kTopMax);
    if (n_top && !out_.logprobs) return top.refuse("allowed only with \"logprobs\": true");
    if (n_top) out_.n_top_logprobs = static_cast<int32_t>(*n_top);
  }

  void read_tool_choice(const Field& choice) {
    static constexpr Spelling<ToolChoice> kChoices[] = {
        {"none", ToolChoice::kNone}, {"auto", ToolChoice::kAuto}, {"required", ToolChoice::kRequired}};
    if (!choice.is_given()) return;
    if (choice.is(Kind::kString)) {
      conversation_.tool_choice = choice.one_of(kChoices).value_or(ToolChoice::kAuto);
    } else if (choice.is(Kind::kObject)) {
      choice["type"].needed_one_of(kCallTypes);
      const Field function = choice["function"];
      if (!function.needs(Kind::kObject)) return;
      conversation_.named_tool = function["name"].needed_text();
      conversation_.tool_choice = ToolChoice::kNamed;
    } else {
      choice.refuse_value("is neither none, auto or required nor the object that names a function");
    }
    check_tool_choice(choice, conversation_);
  }

  void read_message(const Field& field, bool is_last) {
    if (!field.needs(Kind::kObject)) return;
    const auto role = field["role"].needed_one_of(kRoles);
    if (!role) return;
    if (role != Role::kTool) calls_.close(field);
    field["name"].text();
    Message message;
    message.role = *role;
    if (role == Role::kAssistant)
      read_assistant(field, is_last, message);
    else if (role == Role::kLatestReminder)
      add_text(field["content"].needed_text(), message.content);
    else
      read_content(field["content"], message);
    if (role == Role::kTool) {
      const Field id = field["tool_call_id"];
      message.tool_call_id = id.needed_text();
      calls_.add_result(id, message.tool_call_id);
    }
    // An empty system message would still open a system turn.
    if (role == Role::kSystem && message.content.size() == 1 && message.content[0].text.empty() &&
        !message.content[0].image)
      return;
    conversation_.messages.push_back(std::move(message));
  }

  /// A string, or parts. Leaves one part at least.
  void read_content(const Field& content, Message& message) {
    if (content.is(Kind::kString)) return add_text(content.value().text, message.content);
    if (!content.is(Kind::kArray)) {
      if (content.is_missing()) return content.refuse("missing, needs a string or an array of parts");
      return content.refuse_value("is neither a string nor an array of parts");
    }
    for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) read_part(content.item(idx), message);
    if (content.size() == 0) add_text("", message.content);
  }

  void read_part(const Field& part, Message& message) {
    if (!part.needs(Kind::kObject)) return;
    const auto type = part["type"].needed_one_of(kPartTypes);
    if (!type) return;
    if (type == ChatPart::kText) return add_text(part["text"].needed_text(), message.content);
    if (message.role == Role::kAssistant) return part.refuse("an image in a message of the assistant is not supported");
    const Field image = part["image_url"];
    if (image.needs(Kind::kObject)) add_image(image["url"], image["detail"], message.content);
  }

  void read_assistant(const Field& field, bool is_last, Message& message) {
    const Field content = field["content"];
    const Field calls = field["tool_calls"];
    const Field function_call = field["function_call"];
    const Field audio = field["audio"];
    if (function_call.is_given()) function_call.refuse("not supported, use tool_calls instead");
    if (audio.is_given()) audio.refuse("not supported, the model hears nothing");
    if (content.is_given()) read_content(content, message);
    if (const auto reasoning = field["reasoning_content"].text()) message.reasoning = *reasoning;
    if (calls.may_be(Kind::kArray)) read_calls(calls, message);
    if (!content.is_given() && !calls.is_given())
      field.refuse("a message of the assistant needs content or tool_calls");
    const Field prefix = field["prefix"];
    message.is_prefix = prefix.boolean().value_or(false);
    if (!message.is_prefix) return;
    if (!is_last) prefix.refuse("true is allowed in the last message only");
    if (!conversation_.tools.empty()) prefix.refuse("true is not allowed together with tools");
    if (calls_.has_calls()) prefix.refuse("true is not allowed in a conversation with tool calls");
    if (conversation_.response_format == ResponseFormat::kJsonObject)
      prefix.refuse("true is not allowed together with the response format json_object");
  }

  void read_calls(const Field& calls, Message& message) {
    if (calls.size() == 0) return calls.refuse("empty, needs at least one call");
    for (size_t idx = 0; idx < calls.size() && calls.ok(); ++idx) {
      const Field call = calls.item(idx);
      if (!call.needs(Kind::kObject)) return;
      const Field id = call["id"];
      const Field function = call["function"];
      call["type"].needed_one_of(kCallTypes);
      if (!function.needs(Kind::kObject)) return;
      message.tool_calls.push_back({.id = std::string(id.needed_text()),
                                    .name = std::string(function["name"].needed_text()),
                                    .arguments = std::string(function["arguments"].needed_text())});
      calls_.add_call(id, message.tool_calls.back().id);
    }
  }

  const Field& body_;            // borrowed
  const RequestLimits& limits_;  // borrowed
  ApiRequest& out_;              // borrowed
  Conversation& conversation_;   // of out_
  CallTracker calls_{{.call = "tool call", .result = "tool message", .are_ids_unique = false}};
};

}  // namespace

void read_chat_tools(const Field& tools, ToolReader& reader) {
  if (!reader.may_read(tools)) return;
  for (size_t idx = 0; idx < tools.size() && tools.ok(); ++idx) {
    const Field tool = tools.item(idx);
    if (!tool.needs(Kind::kObject) || !tool["type"].needed_one_of(kCallTypes)) return;
    const Field function = tool["function"];
    if (function.needs(Kind::kObject)) reader.add(function, {});
  }
}

void read_chat(const Field& body, const RequestLimits& limits, ApiRequest& out) {
  ChatReader(body, limits, out).read();
}

}  // namespace deepinfer::protocol
