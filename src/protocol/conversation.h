// What the three APIs have in common: an ordered conversation with its tools and its wishes for the answer. Plain data;
// who reads a wire format makes one, who writes the prompt reads it. Nothing here knows about wire formats or tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/json.h"

namespace deepinfer::protocol {

enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool, kLatestReminder };

/// Where the pixels of an image come from. Nothing is fetched or decoded here.
struct ImageSource {
  std::string url;     // http(s)://... or data:image/...;base64,...
  std::string detail;  // low, high, original or auto; "high" when the request does not say
  std::string field;   // where the request names it, for errors
};

/// Text, or an image when there is a source.
struct ContentPart {
  std::string text;
  std::optional<ImageSource> image;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // meant to be a JSON object; whatever text the client sent
};

struct ToolDefinition {
  std::string name;
  std::string description;
  std::optional<json::Value> parameters;  // a JSON Schema of an object
  bool strict = false;
};

struct Message {
  Role role = Role::kUser;
  std::vector<ContentPart> content;      // rendered joined by blank lines
  std::optional<std::string> reasoning;  // assistant
  std::vector<ToolCall> tool_calls;      // assistant
  bool is_prefix = false;                // assistant, last message: the answer goes on from here
  std::string tool_call_id;              // tool; empty: a result nobody asked for
};

enum class ToolChoice : uint8_t {
  kAuto,
  kNone,      // tools are neither offered nor parsed
  kRequired,  // at least one call
  kNamed,     // a call of Conversation::named_tool, and no other tool is offered
};

enum class ResponseFormat : uint8_t { kText, kJsonObject, kJsonSchema, kRegex };

inline constexpr int32_t kEffortLow = 50;
inline constexpr int32_t kEffortHigh = 75;
inline constexpr int32_t kEffortMax = 100;

struct Conversation {
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string named_tool;
  bool parallel_tool_calls = true;  // false: at most one call
  bool thinking = true;
  int32_t effort = kEffortHigh;  // 1 to 100; only said while thinking
  ResponseFormat response_format = ResponseFormat::kText;
  json::Value response_schema;  // kJsonSchema
  std::string response_regex;   // kRegex
};

}  // namespace deepinfer::protocol
