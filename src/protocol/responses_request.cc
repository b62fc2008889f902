// OpenAI Responses: its items, tools and settings, and what of them a response repeats.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "protocol/conversation_fields.h"
#include "protocol/request_fields.h"
#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

enum class Item : uint8_t { kMessage, kReasoning, kFunctionCall, kCustomCall, kResult };
constexpr Spelling<Item> kItemTypes[] = {
    {"message", Item::kMessage},
    {"reasoning", Item::kReasoning},
    {"function_call", Item::kFunctionCall},
    {"function_call_output", Item::kResult},
    {"custom_tool_call", Item::kCustomCall},
    {"custom_tool_call_output", Item::kResult},
};

constexpr Spelling<Role> kRoles[] = {
    {"user", Role::kUser}, {"assistant", Role::kAssistant}, {"system", Role::kSystem}, {"developer", Role::kSystem}};

enum class Part : uint8_t { kText, kImage };
constexpr Spelling<Part> kPartTypes[] = {
    {"input_text", Part::kText}, {"output_text", Part::kText}, {"input_image", Part::kImage}};
constexpr Spelling<Part> kReasoningTypes[] = {{"reasoning_text", Part::kText}, {"text", Part::kText}};

enum class ToolType : uint8_t { kFunction, kNamespace };
constexpr Spelling<ToolType> kToolTypes[] = {{"function", ToolType::kFunction}, {"namespace", ToolType::kNamespace}};
// What a namespace may hold and a tool choice may name.
constexpr Spelling<ToolType> kFunctionOnly[] = {{"function", ToolType::kFunction}};

constexpr Spelling<ResponseFormat> kFormats[] = {
    {"text", ResponseFormat::kText},
    {"json_object", ResponseFormat::kJsonObject},
    {"json_schema", ResponseFormat::kJsonSchema},
};

/// Joins what is not empty.
void append_unless_empty(std::string_view text, std::string_view separator, std::string& out) {
  if (!out.empty() && !text.empty()) out += separator;
  out += text;
}

/// A string, or parts. Leaves one part at least.
void read_content(const Field& content, bool may_be_images, std::vector<ContentPart>& out) {
  if (content.is(Kind::kString)) return add_text(content.value().text, out);
  if (!content.is(Kind::kArray)) {
    if (content.is_missing()) return content.refuse("missing, needs a string or an array of parts");
    return content.refuse_value("is neither a string nor an array of parts");
  }
  for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) {
    const Field part = content.item(idx);
    if (!part.needs(Kind::kObject)) return;
    const auto type = part["type"].needed_one_of(kPartTypes);
    if (!type) return;
    if (type == Part::kText) {
      add_text(part["text"].needed_text(), out);
      continue;
    }
    const Field url = part["image_url"];
    const Field file = part["file_id"];
    if (!may_be_images) return part.refuse("an image in a message of the assistant is not supported");
    if (file.is_given()) return file.refuse("not supported, files are not stored: use image_url");
    if (!url.is_given()) return url.refuse("missing, an input_image needs an image_url");
    add_image(url, part["detail"], out);
  }
  if (content.size() == 0) add_text("", out);
}

class ItemsReader {
 public:
  explicit ItemsReader(Conversation& out) : out_(out) {}

  void read(const Field& items) {
    if (items.size() == 0) return items.refuse("empty, needs at least one item");
    for (size_t idx = 0; idx < items.size() && items.ok(); ++idx) read_item(items.item(idx));
    end_turn();
    calls_.close(items);
  }

 private:
  void read_item(const Field& item) {
    if (!item.is(Kind::kObject)) return item.refuse_value("is not an input item, which is an object");
    const Field type = item["type"];
    if (!type.is_given() && !item["role"].is_given()) return item.refuse("an input item needs a type or a role");
    switch (type.is_given() ? type.one_of(kItemTypes).value_or(Item::kMessage) : Item::kMessage) {
      case Item::kMessage:
        return read_message(item);
      case Item::kReasoning:
        return read_reasoning(item);
      case Item::kFunctionCall:
        return read_function_call(item);
      case Item::kCustomCall:
        return read_custom_call(item);
      case Item::kResult:
        return read_result(item);
    }
  }

  void read_message(const Field& item) {
    const auto role = item["role"].needed_one_of(kRoles);
    if (!role) return;
    Message message;
    message.role = *role;
    read_content(item["content"], role != Role::kAssistant, message.content);
    if (role != Role::kAssistant) {
      end_turn();
      calls_.close(item);
      out_.messages.push_back(std::move(message));
      return;
    }
    if (!turn_.tool_calls.empty()) end_turn();
    begin_turn(item);
    append_unless_empty(joined(message.content), "\n\n", text_);
  }

  void read_reasoning(const Field& item) {
    const Field content = item["content"];
    const Field encrypted = item["encrypted_content"];
    std::string text;
    if (content.may_be(Kind::kArray)) {
      for (size_t idx = 0; idx < content.size() && content.ok(); ++idx) {
        const Field part = content.item(idx);
        if (!part.needs(Kind::kObject) || (part["type"].is_given() && !part["type"].one_of(kReasoningTypes))) return;
        if (idx > 0) text += '\n';
        text += part["text"].needed_text();
      }
    }
    if (encrypted.text().value_or("") != "" && text.empty())
      return encrypted.refuse("not supported, only whoever encrypted the reasoning can read it");
    if (!turn_.tool_calls.empty()) {
      end_turn();
      calls_.close(item);
    }
    if (text.empty()) return;
    if (!text_.empty()) end_turn();
    begin_turn(item);
    if (!turn_.reasoning) turn_.reasoning.emplace();
    append_unless_empty(text, "\n", *turn_.reasoning);
  }

  void read_function_call(const Field& item) {
    const Field ns = item["namespace"];
    std::string name;
    if (const auto prefix = ns.text()) name.append(*prefix).append("::");
    name += item["name"].needed_text();
    add_call(item, std::move(name), std::string(item["arguments"].needed_text()));
  }

  void read_custom_call(const Field& item) {
    std::string arguments = "{\"input\":";
    json::append_quoted(item["input"].needed_text(), arguments);
    add_call(item, std::string(item["name"].needed_text()), arguments + '}');
  }

  void add_call(const Field& item, std::string name, std::string arguments) {
    begin_turn(item);
    const Field id = item["call_id"];
    turn_.tool_calls.push_back(
        {.id = std::string(id.needed_text()), .name = std::move(name), .arguments = std::move(arguments)});
    calls_.add_call(id, turn_.tool_calls.back().id);
  }

  void read_result(const Field& item) {
    end_turn();
    const Field id = item["call_id"];
    Message message;
    message.role = Role::kTool;
    if (!id.is_given()) {
      calls_.close(item);  // it answers nothing
    } else {
      message.tool_call_id = id.needed_text();
      if (id.ok() && message.tool_call_id.empty()) return id.refuse("\"\" is too short, an id has at least 1 byte");
      calls_.add_result(id, message.tool_call_id);
    }
    read_content(item["output"], true, message.content);
    out_.messages.push_back(std::move(message));
  }

  void begin_turn(const Field& item) {
    if (is_in_turn_) return;
    calls_.close(item);
    is_in_turn_ = true;
    turn_.role = Role::kAssistant;
  }

  void end_turn() {
    if (!is_in_turn_) return;
    is_in_turn_ = false;
    add_text(std::exchange(text_, {}), turn_.content);
    std::stable_sort(turn_.tool_calls.begin(), turn_.tool_calls.end(),
                     [](const ToolCall& a, const ToolCall& b) { return a.id < b.id; });
    out_.messages.push_back(std::exchange(turn_, {}));
  }

  Conversation& out_;  // borrowed
  bool is_in_turn_ = false;
  Message turn_;      // of the assistant, growing
  std::string text_;  // its content
  CallTracker calls_{{.call = "function_call", .result = "function_call_output", .are_ids_unique = true}};
};

void read_tools(const Field& tools, ToolReader& reader) {
  if (!reader.may_read(tools)) return;
  for (size_t idx = 0; idx < tools.size() && tools.ok(); ++idx) {
    const Field tool = tools.item(idx);
    if (!tool.needs(Kind::kObject)) return;
    const Field type = tool["type"];
    if (type.is(Kind::kString) && type.value().text == "custom")
      return tool.refuse("the custom tool " + quoted_for_message(tool["name"].needed_text()) +
                         " is not supported: use a function");
    const auto kind = type.needed_one_of(kToolTypes);
    if (!kind) return;
    if (kind == ToolType::kFunction) {
      reader.add(tool, {});
      continue;
    }
    const Field members = tool["tools"];
    const std::string_view ns = ToolReader::read_name(tool["name"]);
    const std::string_view description = tool["description"].text().value_or("");
    if (!members.needs(Kind::kArray) || !reader.may_read(members)) return;
    for (size_t i = 0; i < members.size() && members.ok(); ++i) {
      const Field member = members.item(i);
      if (!member.needs(Kind::kObject) || !member["type"].needed_one_of(kFunctionOnly)) return;
      reader.add_in_namespace(member, ns, description);
    }
  }
}

void read_tool_choice(const Field& choice, Conversation& out) {
  static constexpr Spelling<ToolChoice> kChoices[] = {
      {"none", ToolChoice::kNone}, {"auto", ToolChoice::kAuto}, {"required", ToolChoice::kRequired}};
  if (!choice.is_given()) return;
  if (choice.is(Kind::kString)) {
    out.tool_choice = choice.one_of(kChoices).value_or(ToolChoice::kAuto);
  } else if (choice.is(Kind::kObject)) {
    choice["type"].needed_one_of(kFunctionOnly);
    out.named_tool = choice["name"].needed_text();
    out.tool_choice = ToolChoice::kNamed;
  } else {
    choice.refuse_value("is neither none, auto or required nor the object that names a function");
  }
  check_tool_choice(choice, out);
}

// --- what a response repeats ---

json::Value number_of(std::string_view spelling) {
  json::Value value;
  value.kind = Kind::kNumber;
  value.text = spelling;
  return value;
}

json::Value object_of(std::initializer_list<json::Member> members) {
  json::Value value;
  value.kind = Kind::kObject;
  value.members = members;
  return value;
}

json::Value given_or(const Field& field, json::Value fallback = {}) {
  return field.is_given() ? field.value() : std::move(fallback);
}

json::Value echo_of_function(const Field& tool) {
  return object_of({{"type", json::Value::of(std::string_view("function"))},
                    {"name", given_or(tool["name"])},
                    {"description", given_or(tool["description"])},
                    {"parameters", given_or(tool["parameters"])},
                    {"strict", given_or(tool["strict"])}});
}

json::Value echo_of_tools(const Field& tools) {
  json::Value out;
  out.kind = Kind::kArray;
  for (size_t idx = 0; idx < tools.size(); ++idx) {
    const Field tool = tools.item(idx);
    const Field members = tool["tools"];
    if (tool["type"].value().text == "function") {
      out.items.push_back(echo_of_function(tool));
      continue;
    }
    out.items.push_back(object_of({{"type", json::Value::of(std::string_view("namespace"))},
                                   {"name", given_or(tool["name"])},
                                   {"description", given_or(tool["description"])},
                                   {"tools", echo_of_tools(members)}}));
  }
  return out;
}

json::Value echo_of_format(const Field& format) {
  const Field type = format["type"];
  if (!type.is_given()) return object_of({{"type", json::Value::of(std::string_view("text"))}});
  if (type.value().text != "json_schema") return object_of({{"type", type.value()}});
  return object_of({{"type", type.value()},
                    {"name", given_or(format["name"])},
                    {"schema", given_or(format["schema"])},
                    {"description", given_or(format["description"])},
                    {"strict", given_or(format["strict"])}});
}

/// Precondition: the body was read without an error
json::Value echo_of(const Field& body, bool parallel_tool_calls) {
  const Field reasoning = body["reasoning"];
  const Field text = body["text"];
  json::Value echo = object_of({
      {"instructions", given_or(body["instructions"])},
      {"max_output_tokens", given_or(body["max_output_tokens"])},
      {"temperature", given_or(body["temperature"], number_of("1.0"))},
      {"top_p", given_or(body["top_p"], number_of("1.0"))},
      {"top_logprobs", given_or(body["top_logprobs"], number_of("0"))},
      {"user", given_or(body["user"])},
      {"reasoning",
       object_of({{"effort", given_or(reasoning["effort"])}, {"summary", given_or(reasoning["summary"])}})},
      {"text", object_of({{"format", echo_of_format(text["format"])}, {"verbosity", given_or(text["verbosity"])}})},
      {"tool_choice", given_or(body["tool_choice"], json::Value::of(std::string_view("auto")))},
      {"tools", echo_of_tools(body["tools"])},
      {"parallel_tool_calls", json::Value::of(parallel_tool_calls)},
      {"metadata", given_or(body["metadata"], object_of({}))},
  });
  // Not of this API, but honoured: then the response's zeros would be wrong.
  for (const std::string_view key : {"frequency_penalty", "presence_penalty"}) {
    const Field penalty = body[key];
    if (penalty.is_given()) echo.members.push_back({std::string(key), penalty.value()});
  }
  return echo;
}

void add_message(Role role, std::string_view text, Conversation& out) {
  Message message;
  message.role = role;
  add_text(text, message.content);
  out.messages.push_back(std::move(message));
}

void read_settings(const Field& body, const RequestLimits& limits, ApiRequest& out) {
  constexpr int64_t kTopMax = 20;
  enum class Level : uint8_t { kAny };  // checked, then only repeated
  static constexpr Spelling<Level> kSummaries[] = {
      {"auto", Level::kAny}, {"concise", Level::kAny}, {"detailed", Level::kAny}};
  static constexpr Spelling<Level> kVerbosities[] = {
      {"low", Level::kAny}, {"medium", Level::kAny}, {"high", Level::kAny}};
  out.max_tokens = body["max_output_tokens"].integer(1, limits.max_tokens_max);
  out.conversation.parallel_tool_calls = body["parallel_tool_calls"].boolean().value_or(true);
  const auto n_top = body["top_logprobs"].integer(0, kTopMax);
  out.logprobs = n_top.value_or(0) > 0;
  if (out.logprobs) out.n_top_logprobs = static_cast<int32_t>(*n_top);
  const Field reasoning = body["reasoning"];
  if (reasoning.may_be(Kind::kObject)) reasoning["summary"].one_of(kSummaries);
  read_effort_field(reasoning["effort"], out.conversation);
  const Field text = body["text"];
  if (text.may_be(Kind::kObject)) {
    text["verbosity"].one_of(kVerbosities);
    read_format(text["format"], {.types = kFormats, .needs_name = true}, out.conversation);
  }
  body["user"].text();
  body["metadata"].may_be(Kind::kObject);
}

}  // namespace

void read_responses(const Field& body, const RequestLimits& limits, ApiRequest& out) {
  Conversation& conversation = out.conversation;
  read_settings(body, limits, out);
  ToolReader tools(limits, conversation.tools);
  read_tools(body["tools"], tools);
  read_tool_choice(body["tool_choice"], conversation);

  const Field input = body["input"];
  const Field instructions = body["instructions"];
  const std::string_view system = instructions.text().value_or("");
  if (!system.empty()) add_message(Role::kSystem, system, conversation);
  if (input.is(Kind::kString)) {
    add_message(Role::kUser, input.value().text, conversation);
  } else if (input.is(Kind::kArray)) {
    ItemsReader(conversation).read(input);
  } else if (input.is_given()) {
    input.refuse_value("is neither a string nor an array of input items");
  } else if (system.empty()) {
    input.refuse("missing, needs input or instructions");
  }
  const Field text = body["text"];
  check_json_mode(text["format"], conversation);
  if (body.ok()) out.echo = echo_of(body, out.conversation.parallel_tool_calls);
}

}  // namespace deepinfer::protocol
