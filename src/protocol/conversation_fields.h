// What the readers of the three APIs share about conversations: content, tools, which result answers which call, and the
// checks of the finished conversation. One request's state; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "protocol/conversation.h"
#include "protocol/request.h"
#include "protocol/request_fields.h"

namespace deepinfer::protocol {

void add_text(std::string_view text, std::vector<ContentPart>& out);

/// An image URL with its detail, which may be absent.
void add_image(const Field& url, const Field& detail, std::vector<ContentPart>& out);

/// The parts' texts joined by blank lines. Precondition: no images
std::string joined(const std::vector<ContentPart>& parts);

/// The tools of one request: well-formed, different in name, not too many.
class ToolReader {
 public:
  ToolReader(const RequestLimits& limits, std::vector<ToolDefinition>& out) : limits_(limits), out_(out) {}

  struct Shape {
    std::string_view schema_key = "parameters";
    bool needs_schema = false;
  };
  /// Whether `tools` is given and an array of allowed size.
  bool may_read(const Field& tools);
  /// `function` holds name, description, the schema and strict.
  void add(const Field& function, const Shape& shape);
  /// Same for a tool of a namespace: it is called ns::name and described by both.
  void add_in_namespace(const Field& function, std::string_view ns, std::string_view ns_description);

  /// A name of 1 to 128 letters, digits, _ and -; "" after an error.
  static std::string_view read_name(const Field& name);

 private:
  void add_named(const Field& function, const Shape& shape, std::string name);

  const RequestLimits& limits_;       // borrowed
  std::vector<ToolDefinition>& out_;  // borrowed
  std::unordered_set<std::string> names_;
};

/// Sees to it that each call of a turn is answered once, right after the turn.
class CallTracker {
 public:
  struct Words {
    std::string_view call;    // "tool_use"
    std::string_view result;  // "tool_result"
    bool are_ids_unique;      // over the whole conversation; else within a turn
  };
  explicit CallTracker(const Words& words) : words_(words) {}

  /// A call of the current turn. `id` was read from the field.
  void add_call(const Field& field, std::string_view id);
  void add_result(const Field& field, std::string_view id);
  /// What comes next is no result: all calls must be answered. `place` is where it stands, for the error.
  void close(const Field& place);
  /// Whether any turn so far had calls.
  [[nodiscard]] bool has_calls() const { return has_calls_; }

 private:
  Words words_;
  bool is_open_ = false;
  bool has_calls_ = false;
  size_t n_answered_ = 0;
  std::vector<std::string> turn_;                // ids of its calls
  std::unordered_map<std::string, bool> calls_;  // id → answered
};

/// Whether the tool choice can be met by the tools. `choice` is where it stands.
void check_tool_choice(const Field& choice, const Conversation& conversation);

/// JSON mode needs the word in some message: the model was trained so. `format` is where the mode stands.
void check_json_mode(const Field& format, const Conversation& conversation);

/// One each: the whole of a body's conversation and settings. Precondition: `body` is an object
void read_chat(const Field& body, const RequestLimits& limits, ApiRequest& out);
void read_messages(const Field& body, const RequestLimits& limits, ApiRequest& out);
void read_responses(const Field& body, const RequestLimits& limits, ApiRequest& out);
/// Chat Completions' shape of tools.
void read_chat_tools(const Field& tools, ToolReader& reader);

}  // namespace deepinfer::protocol
