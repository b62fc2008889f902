// Anthropic Messages: its blocks, tools and settings.
#include <algorithm>
#include <limits>

#include "protocol/conversation_fields.h"
#include "protocol/image_source.h"
#include "protocol/request_fields.h"
#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

constexpr Spelling<Role> kRoles[] = {{"user", Role::kUser}, {"assistant", Role::kAssistant}, {"system", Role::kSystem}};

enum class Block : uint8_t { kText, kImage, kThinking, kToolUse, kToolResult };
constexpr Spelling<Block> kBlockTypes[] = {
    {"text", Block::kText},
    {"image", Block::kImage},
    {"thinking", Block::kThinking},
    {"tool_use", Block::kToolUse},
    {"tool_result", Block::kToolResult},
};
constexpr Spelling<Block> kTextOnly[] = {{"text", Block::kText}};
constexpr Spelling<Block> kResultBlockTypes[] = {{"text", Block::kText}, {"image", Block::kImage}};

constexpr Spelling<ResponseFormat> kFormats[] = {{"json_schema", ResponseFormat::kJsonSchema}};

/// What some clients put before the system prompt for their provider's books. It carries no instruction.
bool is_billing_header(std::string_view text) {
  constexpr std::string_view kHeader = "x-anthropic-billing-header:";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return text.size() >= kHeader.size() &&
         std::equal(kHeader.begin(), kHeader.end(), text.begin(), [&](char header, char c) { return same(c, header); });
}

void append_paragraph(std::string_view text, std::string& out) {
  if (!out.empty()) out += "\n\n";
  out += text;
}

class MessagesReader {
 public:
  MessagesReader(const Field& body, const RequestLimits& limits, ApiRequest& out)
      : body_(body), limits_(limits), out_(out), conversation_(out.conversation) {}

  void read() {
    read_settings();
    read_tools(body_["tools"]);
    read_tool_choice(body_["tool_choice"]);
    read_system(body_["system"]);
    const Field messages = body_["messages"];
    if (!messages.needs(Kind::kArray)) return;
    if (messages.size() == 0) return messages.refuse("empty, needs at least one message");
    for (size_t idx = 0; idx < messages.size() && messages.ok(); ++idx) read_message(messages.item(idx));
    calls_.close(messages);
  }

 private:
  void read_settings() {
    // This API clamps what the others refuse.
    const auto limit = body_["max_tokens"].integer(1, std::numeric_limits<int64_t>::max());
    if (limit) out_.max_tokens = std::min(*limit, limits_.max_tokens_max);
    read_stop(body_["stop_sequences"], false, limits_, out_.stop);
    const Field config = body_["output_config"];
    const bool has_config = config.may_be(Kind::kObject);
    read_thinking(body_["thinking"], config["effort"], conversation_);
    if (has_config) read_format(config["format"], {.types = kFormats}, conversation_);
    body_["metadata"].may_be(Kind::kObject);
  }

  void read_tools(const Field& tools) {
    ToolReader reader(limits_, conversation_.tools);
    if (!reader.may_read(tools)) return;
    for (size_t idx = 0; idx < tools.size() && tools.ok(); ++idx) {
      const Field tool = tools.item(idx);
      if (!tool.needs(Kind::kObject)) return;
      const Field type = tool["type"];
      const auto name = type.text();
      if (name && *name != "custom")
        return type.refuse_value("is a server tool, which is not supported: only custom tools are");
      reader.add(tool, {.schema_key = "input_schema", .needs_schema = true});
    }
  }

  void read_tool_choice(const Field& choice) {
    static constexpr Spelling<ToolChoice> kChoices[] = {{"auto", ToolChoice::kAuto},
                                                        {"any", ToolChoice::kRequired},
                                                        {"tool", ToolChoice::kNamed},
                                                        {"none", ToolChoice::kNone}};
    if (!choice.may_be(Kind::kObject)) return;
    conversation_.tool_choice = choice["type"].needed_one_of(kChoices).value_or(ToolChoice::kAuto);
    if (conversation_.tool_choice == ToolChoice::kNamed) conversation_.named_tool = choice["name"].needed_text();
    out_.conversation.parallel_tool_calls = !choice["disable_parallel_tool_use"].boolean().value_or(false);
    check_tool_choice(choice, conversation_);
  }

  void read_system(const Field& system) {
    if (!system.is_given()) return;
    Message message;
    message.role = Role::kSystem;
    if (system.is(Kind::kString)) {
      add_text(system.value().text, message.content);
    } else if (system.is(Kind::kArray)) {
      for (size_t idx = 0; idx < system.size() && system.ok(); ++idx) {
        const Field block = system.item(idx);
        if (!block.needs(Kind::kObject) || !block["type"].needed_one_of(kTextOnly)) return;
        const std::string_view text = block["text"].needed_text();
        if (idx > 0 || !is_billing_header(text)) add_text(text, message.content);
      }
      if (message.content.empty()) add_text("", message.content);
    } else {
      system.refuse_value("is neither a string nor an array of text blocks");
    }
    conversation_.messages.push_back(std::move(message));
  }

  void read_message(const Field& field) {
    if (!field.needs(Kind::kObject)) return;
    const auto role = field["role"].needed_one_of(kRoles);
    if (!role) return;
    const Field content = field["content"];
    Message message;
    message.role = *role;
    if (content.is(Kind::kString)) {
      calls_.close(field);
      add_text(content.value().text, message.content);
      conversation_.messages.push_back(std::move(message));
      return;
    }
    if (!content.is(Kind::kArray)) {
      if (content.is_missing()) return content.refuse("missing, needs a string or an array of blocks");
      return content.refuse_value("is neither a string nor an array of blocks");
    }
    if (content.size() == 0) return content.refuse("empty, needs at least one block");
    if (role == Role::kAssistant)
      read_assistant(field, content, message);
    else
      read_blocks(field, content, message);
  }

  /// Of a user or system message. Results are messages of their own and stand before everything else.
  void read_blocks(const Field& field, const Field& content, Message& message) {
    for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) {
      const Field block = content.item(idx);
      if (!block.needs(Kind::kObject)) return;
      const Field type = block["type"];
      const auto kind = type.needed_one_of(kBlockTypes);
      if (!kind) return;
      if (kind == Block::kThinking || kind == Block::kToolUse)
        return type.refuse_value("blocks are allowed in messages of the assistant only");
      if (kind == Block::kToolResult) {
        if (message.role != Role::kUser) return type.refuse_value("blocks are allowed in messages of the user only");
        read_result(block);
        continue;
      }
      calls_.close(field);
      read_shown(block, *kind, message.content);
    }
    calls_.close(field);
    if (!message.content.empty()) conversation_.messages.push_back(std::move(message));
  }

  void read_shown(const Field& block, Block kind, std::vector<ContentPart>& out) {
    if (kind == Block::kText)
      add_text(block["text"].needed_text(), out);
    else
      read_image(block["source"], out);
  }

  void read_image(const Field& source, std::vector<ContentPart>& out) {
    enum class SourceType : uint8_t { kBase64, kUrl };
    static constexpr Spelling<SourceType> kSourceTypes[] = {{"base64", SourceType::kBase64}, {"url", SourceType::kUrl}};
    static constexpr Spelling<std::string_view> kMediaTypes[] = {{"image/jpeg", "image/jpeg"},
                                                                 {"image/jpg", "image/jpeg"},
                                                                 {"image/png", "image/png"},
                                                                 {"image/gif", "image/gif"},
                                                                 {"image/webp", "image/webp"}};
    if (!source.needs(Kind::kObject)) return;
    const auto type = source["type"].needed_one_of(kSourceTypes);
    if (!type) return;
    std::string url;
    if (type == SourceType::kUrl) {
      const Field field = source["url"];
      url = field.needed_text();
      if (const auto problem = find_web_url_problem(url)) return field.refuse(*problem);
    } else {
      const auto media_type = source["media_type"].needed_one_of(kMediaTypes);
      const Field data = source["data"];
      const std::string_view base64 = data.needed_text();
      if (!data.ok()) return;
      if (!is_base64(base64)) return data.refuse("no base64 (RFC 4648, with padding and without blanks)");
      url.append("data:").append(*media_type).append(";base64,").append(base64);
    }
    out.emplace_back();
    out.back().image = ImageSource{std::move(url), "high", source.path()};
  }

  void read_result(const Field& block) {
    const Field id = block["tool_use_id"];
    const Field content = block["content"];
    Message message;
    message.role = Role::kTool;
    message.tool_call_id = id.needed_text();
    calls_.add_result(id, message.tool_call_id);
    block["is_error"].boolean();
    if (content.is(Kind::kArray)) {
      for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) {
        const Field part = content.item(idx);
        if (!part.needs(Kind::kObject)) return;
        const auto kind = part["type"].needed_one_of(kResultBlockTypes);
        if (kind) read_shown(part, *kind, message.content);
      }
    } else if (content.is(Kind::kString)) {
      add_text(content.value().text, message.content);
    } else if (content.is_given()) {
      content.refuse_value("is neither a string nor an array of blocks");
    }
    if (message.content.empty()) add_text("", message.content);
    conversation_.messages.push_back(std::move(message));
  }

  void read_assistant(const Field& field, const Field& content, Message& message) {
    calls_.close(field);
    std::string text;
    for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) {
      const Field block = content.item(idx);
      if (!block.needs(Kind::kObject)) return;
      const Field type = block["type"];
      const auto kind = type.needed_one_of(kBlockTypes);
      if (!kind) return;
      const bool is_shown = kind == Block::kText || kind == Block::kImage;
      if (is_shown && !message.tool_calls.empty())
        return type.refuse_value("blocks may not come after tool_use blocks");
      switch (*kind) {
        case Block::kText:
          append_paragraph(block["text"].needed_text(), text);
          break;
        case Block::kThinking:
          read_reasoning(block, message);
          break;
        case Block::kToolUse:
          read_call(block, message);
          break;
        case Block::kImage:
          return type.refuse_value("blocks in a message of the assistant are not supported");
        case Block::kToolResult:
          return type.refuse_value("blocks are allowed in messages of the user only");
      }
    }
    add_text(text, message.content);
    conversation_.messages.push_back(std::move(message));
  }

  void read_reasoning(const Field& block, Message& message) {
    const std::string_view thinking = block["thinking"].needed_text();
    block["signature"].text();
    if (message.reasoning) {
      message.reasoning->append("\n\n").append(thinking);
    } else {
      message.reasoning = thinking;
    }
  }

  void read_call(const Field& block, Message& message) {
    const Field id = block["id"];
    const Field input = block["input"];
    if (input.is_missing()) return input.refuse("missing, needs the arguments of the call");
    message.tool_calls.push_back({.id = std::string(id.needed_text()),
                                  .name = std::string(block["name"].needed_text()),
                                  .arguments = json::to_string(input.value(), json::Style::kPython)});
    calls_.add_call(id, message.tool_calls.back().id);
  }

  const Field& body_;            // borrowed
  const RequestLimits& limits_;  // borrowed
  ApiRequest& out_;              // borrowed
  Conversation& conversation_;   // of out_
  CallTracker calls_{{.call = "tool_use", .result = "tool_result", .are_ids_unique = false}};
};

}  // namespace

void read_messages(const Field& body, const RequestLimits& limits, ApiRequest& out) {
  MessagesReader(body, limits, out).read();
}

}  // namespace deepinfer::protocol
