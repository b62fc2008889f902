#include "protocol/conversation_fields.h"

#include <algorithm>

#include "protocol/image_source.h"
#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

bool holds_json_word(std::string_view text) {
  constexpr std::string_view kWord = "json";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), kWord.begin(), kWord.end(), same) != text.end();
}

constexpr size_t kNameBytesMax = 128;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

// --- content ---

void add_text(std::string_view text, std::vector<ContentPart>& out) {
  out.emplace_back();
  out.back().text = text;
}

void add_image(const Field& url, const Field& detail, std::vector<ContentPart>& out) {
  static constexpr Spelling<std::string_view> kDetails[] = {
      {"low", "low"}, {"high", "high"}, {"original", "original"}, {"auto", "auto"}};
  const std::string_view text = url.needed_text();
  const auto level = detail.one_of(kDetails);
  if (!url.ok()) return;
  if (const auto problem = find_image_url_problem(text)) return url.refuse(*problem);
  out.emplace_back();
  out.back().image = ImageSource{std::string(text), std::string(level.value_or("high")), url.path()};
}

std::string joined(const std::vector<ContentPart>& parts) {
  std::string text;
  for (size_t idx = 0; idx < parts.size(); ++idx) {
    if (idx > 0) text += "\n\n";
    text += parts[idx].text;
  }
  return text;
}

// --- tools ---

bool ToolReader::may_read(const Field& tools) {
  if (!tools.may_be(Kind::kArray)) return false;
  const size_t n_tools = out_.size() + tools.size();
  if (static_cast<int64_t>(n_tools) <= limits_.n_tools_max) return true;
  tools.refuse(std::to_string(n_tools) + " tools, at most " + std::to_string(limits_.n_tools_max));
  return false;
}

std::string_view ToolReader::read_name(const Field& name) {
  const std::string_view text = name.needed_text();
  if (!name.ok()) return "";
  if (!text.empty() && text.size() <= kNameBytesMax && std::all_of(text.begin(), text.end(), is_name_character))
    return text;
  name.refuse_value("does not match the pattern ^[a-zA-Z0-9_-]{1,128}$");
  return "";
}

void ToolReader::add(const Field& function, const Shape& shape) {
  add_named(function, shape, std::string(read_name(function["name"])));
}

void ToolReader::add_in_namespace(const Field& function, std::string_view ns, std::string_view ns_description) {
  std::string name(ns);
  name += "::";
  name += read_name(function["name"]);
  add_named(function, {}, std::move(name));
  if (function.ok() && !ns_description.empty()) out_.back().description.insert(0, std::string(ns_description) + '\n');
}

void ToolReader::add_named(const Field& function, const Shape& shape, std::string name) {
  const Field description = function["description"];
  const Field schema = function[shape.schema_key];
  const Field defer = function["defer_loading"];
  ToolDefinition tool;
  tool.description = description.text().value_or("");
  tool.strict = function["strict"].boolean().value_or(false);
  if (defer.boolean().value_or(false)) defer.refuse("true is not supported: every tool is in the prompt");
  if (shape.needs_schema && schema.is_missing()) schema.refuse("missing, needs a JSON Schema");
  if (schema.is_given() || (shape.needs_schema && !schema.is_missing())) {
    check_schema(schema);
    const Field type = schema["type"];
    if (!type.is(Kind::kString) || type.value().text != "object")
      schema.refuse("is no JSON Schema with \"type\": \"object\"");
    if (schema.ok()) tool.parameters = schema.value();
  }
  if (!function.ok()) return;
  if (!names_.insert(name).second)
    return function.refuse("the name " + quoted_for_message(name) + " is not unique among the tools");
  tool.name = std::move(name);
  out_.push_back(std::move(tool));
}

// --- calls and results ---

void CallTracker::add_call(const Field& field, std::string_view id) {
  if (!field.ok()) return;
  if (id.empty()) return field.refuse("\"\" is too short, an id has at least 1 byte");
  has_calls_ = true;
  if (!is_open_) {
    is_open_ = true;
    n_answered_ = 0;
    turn_.clear();
    if (!words_.are_ids_unique) calls_.clear();
  }
  if (!calls_.try_emplace(std::string(id), false).second)
    return field.refuse("duplicate id " + quoted_for_message(id) + ", ids must be unique among the " +
                        std::string(words_.call) + 's');
  turn_.emplace_back(id);
}

void CallTracker::add_result(const Field& field, std::string_view id) {
  if (!field.ok()) return;
  const auto call = calls_.find(std::string(id));
  if (call != calls_.end() && call->second)
    return field.refuse("duplicate " + std::string(words_.result) + " for " + quoted_for_message(id));
  if (call == calls_.end() || !is_open_)
    return field.refuse("no " + std::string(words_.call) + ' ' + quoted_for_message(id) + " right before this " +
                        std::string(words_.result));
  call->second = true;
  ++n_answered_;
}

void CallTracker::close(const Field& place) {
  if (!is_open_) return;
  is_open_ = false;
  if (n_answered_ == turn_.size()) return;
  const auto missing = std::find_if(turn_.begin(), turn_.end(), [this](const auto& id) { return !calls_.at(id); });
  place.refuse("the " + std::string(words_.call) + ' ' + quoted_for_message(*missing) + " before it has no " +
               std::string(words_.result));
}

// --- checks of the whole ---

void check_tool_choice(const Field& choice, const Conversation& conversation) {
  const std::vector<ToolDefinition>& tools = conversation.tools;
  if (conversation.tool_choice == ToolChoice::kRequired && tools.empty())
    choice.refuse("a call is required, but there are no tools");
  if (conversation.tool_choice == ToolChoice::kNamed &&
      std::none_of(tools.begin(), tools.end(), [&](const auto& tool) { return tool.name == conversation.named_tool; }))
    choice.refuse("no tool is called " + quoted_for_message(conversation.named_tool));
}

void check_json_mode(const Field& format, const Conversation& conversation) {
  if (conversation.response_format != ResponseFormat::kJsonObject) return;
  for (const Message& message : conversation.messages)
    for (const ContentPart& part : message.content)
      if (holds_json_word(part.text)) return;
  format.refuse("json_object needs the word \"json\" in some message");
}

}  // namespace deepinfer::protocol
