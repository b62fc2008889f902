// The prompt format, in two passes: messages are grouped into turns (tool results and users that follow each other share
// one), then turns are written in order. Client text goes through text() and is never searched for special tokens; only
// literals of this file go through own(), and the model's own earlier words through words_of_the_model().
#include "protocol/prompt.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "text/json.h"

namespace deepinfer::protocol {
namespace {

constexpr std::string_view kBlankLine = "\n\n";

/// The tools block around the schemas. <think>, </think> and ｜DSML｜ in it are the real tokens.
constexpr std::string_view kToolsHead =
    "## Tools\n"
    "\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "
    "\"<｜DSML｜ calls>\" block like the following:\n"
    "\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n"
    "\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types (numbers, booleans, "
    "arrays, objects), pass the value in JSON format and set `string=\"false\"`.\n"
    "\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside "
    "<think>...</think> BEFORE any tool calls or final response.\n"
    "\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n"
    "\n"
    "### Available Tool Schemas\n"
    "\n";
constexpr std::string_view kToolsTail =
    "\n"
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";
constexpr std::string_view kFormatHead =
    "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

/// What one <｜System｜>, <｜User｜>, <｜Assistant｜> or reminder token is followed by.
struct Turn {
  Role role = Role::kUser;
  std::vector<const Message*> messages;  // more than one only for kUser: users and tool results. Borrowed.
};

/// Orders the tool results among `messages` as the calls were made; users keep their places. Results of unknown calls
/// count as the first call's.
void order_results(std::vector<const Message*>& messages, const std::unordered_map<std::string_view, size_t>& rank) {
  std::vector<const Message*> results;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(results),
               [](const Message* message) { return message->role == Role::kTool; });
  const auto rank_of = [&rank](const Message* result) {
    const auto found = rank.find(result->tool_call_id);
    return found == rank.end() ? 0 : found->second;
  };
  std::stable_sort(results.begin(), results.end(),
                   [&](const Message* a, const Message* b) { return rank_of(a) < rank_of(b); });
  auto next = results.begin();
  for (const Message*& message : messages) {
    if (message->role == Role::kTool) message = *next++;
  }
}

std::vector<Turn> group_turns(std::span<const Message> messages) {
  std::vector<Turn> turns;
  for (const Message& message : messages) {
    const bool is_user = message.role == Role::kUser || message.role == Role::kTool;
    const Role role = is_user ? Role::kUser : message.role;
    const bool joins = !turns.empty() && turns.back().role == role && is_user;
    const bool repeats_reminder = !turns.empty() && turns.back().role == role && role == Role::kLatestReminder;
    if (repeats_reminder) continue;  // the first of several counts
    if (!joins) turns.push_back({role, {}});
    turns.back().messages.push_back(&message);
  }
  std::unordered_map<std::string_view, size_t> rank;  // of the latest turn that had calls
  for (Turn& turn : turns) {
    if (turn.role == Role::kUser) order_results(turn.messages, rank);
    if (turn.role != Role::kAssistant || turn.messages[0]->tool_calls.empty()) continue;
    rank.clear();
    for (const ToolCall& call : turn.messages[0]->tool_calls) rank.emplace(call.id, rank.size());
  }
  return turns;
}

class Writer {
 public:
  explicit Writer(const Conversation& conversation)
      : conversation_(conversation),
        offers_tools_(!conversation.tools.empty() && conversation.tool_choice != ToolChoice::kNone),
        says_format_(conversation.response_format == ResponseFormat::kJsonObject ||
                     conversation.response_format == ResponseFormat::kJsonSchema) {}

  Prompt write() {
    const std::vector<Turn> turns = group_turns(conversation_.messages);
    special(Special::kBos);
    const bool has_system = !turns.empty() && turns[0].role == Role::kSystem;
    write_opening(has_system ? turns[0].messages[0] : nullptr);
    for (size_t i = has_system ? 1 : 0; i < turns.size(); ++i) write_turn(turns[i], i);
    prompt_.output.tools = offers_tools_;
    prompt_.output.one_call = !conversation_.parallel_tool_calls;
    prompt_.output.json = conversation_.response_format == ResponseFormat::kJsonObject;
    const bool goes_on = !turns.empty() && turns.back().role == Role::kAssistant && turns.back().messages[0]->is_prefix;
    if (!goes_on) open_answer();
    return std::move(prompt_);
  }

 private:
  /// The effort line, the leading system message, the tools and the response format share one <｜System｜>.
  void write_opening(const Message* system) {
    const bool says_effort = conversation_.thinking && !conversation_.messages.empty();
    if (system == nullptr && !says_effort && !offers_tools_ && !says_format_) return;
    special(Special::kSystem);
    if (conversation_.thinking) {
      text("Reasoning Effort: " + std::to_string(conversation_.effort) +
           " (range 1-100, the higher the value, the more thorough the reasoning)\n\n");
    }
    if (system != nullptr) content(*system);
    if (offers_tools_) write_tools();
    if (says_format_) write_format();
  }

  void write_tools() {
    text(kBlankLine);
    own(kToolsHead);
    for (const ToolDefinition& tool : conversation_.tools) {
      if (conversation_.tool_choice == ToolChoice::kNamed && tool.name != conversation_.named_tool) continue;
      std::string& out = prompt_.text;
      out += "{\"name\": ";
      json::append_quoted(tool.name, out);
      out += ", \"description\": ";
      json::append_quoted(tool.description, out);
      out += ", \"parameters\": ";
      if (tool.parameters) {
        json::append(*tool.parameters, json::Style::kPython, out);
      } else {
        out += "{}";
      }
      out += "}\n";
    }
    text(kToolsTail);
  }

  void write_format() {
    text(kFormatHead);
    if (conversation_.response_format == ResponseFormat::kJsonObject) {
      text("{\"type\": \"json_object\"}");
    } else {
      json::append(conversation_.response_schema, json::Style::kPython, prompt_.text);
    }
  }

  void write_turn(const Turn& turn, size_t index) {
    switch (turn.role) {
      case Role::kSystem:
        special(Special::kSystem);
        content(*turn.messages[0]);
        return;
      case Role::kLatestReminder:
        special(Special::kLatestReminder);
        content(*turn.messages[0]);
        return;
      case Role::kAssistant:
        write_assistant(*turn.messages[0], index);
        return;
      case Role::kUser:
      case Role::kTool:
        write_user(turn.messages);
        return;
    }
  }

  void write_user(std::span<const Message* const> messages) {
    special(Special::kUser);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (i > 0) text(kBlankLine);
      const bool is_result = messages[i]->role == Role::kTool;
      if (is_result) text("<tool_result>");
      content(*messages[i]);
      if (is_result) text("</tool_result>");
    }
  }

  /// `index` of the turn. Earlier reasoning is shown only beside tools, never that of a first turn; what a prefix brings
  /// is shown always, since the answer goes on from it.
  void write_assistant(const Message& message, size_t index) {
    const bool has_content =
        message.content.size() > 1 || (message.content.size() == 1 && !message.content[0].text.empty());
    const bool has_reasoning = message.reasoning && !message.reasoning->empty();
    const bool is_first = index == 0 && !offers_tools_ && !says_format_;  // those put a system turn in front
    const bool shows_reasoning =
        conversation_.thinking &&
        (message.is_prefix ? !is_first || (has_reasoning && !has_content) : offers_tools_ && !is_first);
    special(Special::kAssistant);
    if (shows_reasoning) {
      special(Special::kThinkOpen);
      if (has_reasoning) words_of_the_model(*message.reasoning);
    }
    const bool leaves_reasoning_open = shows_reasoning && message.is_prefix && !has_content;
    if (!leaves_reasoning_open) {
      special(Special::kThinkClose);
      write_answer(message);
    }
    if (!message.is_prefix) {
      special(Special::kEos);
    } else if (!conversation_.thinking) {
      prompt_.output.start = OutputStart::kAnswer;
    } else if (!leaves_reasoning_open) {
      prompt_.output.start = OutputStart::kAnswerContinued;
    } else {
      prompt_.output.start = has_reasoning ? OutputStart::kReasoningContinued : OutputStart::kReasoning;
    }
  }

  void write_answer(const Message& message) {
    for (size_t i = 0; i < message.content.size(); ++i) {
      if (i > 0) text(kBlankLine);
      words_of_the_model(message.content[i].text);
    }
    if (message.tool_calls.empty()) return;
    own("\n\n<｜DSML｜ calls>\n");
    for (const ToolCall& call : message.tool_calls) write_call(call);
    own("</｜DSML｜ calls>");
  }

  void write_call(const ToolCall& call) {
    own("<｜DSML｜ invoke name=\"");
    text(call.name);
    text("\">\n");
    const Result<json::Value> arguments = json::parse(call.arguments);
    if (!arguments.ok() || !arguments->is(json::Kind::kObject)) {
      write_parameter("arguments", json::Value::of(call.arguments));
    } else if (arguments->members.empty()) {
      text("\n");
    } else {
      write_parameters(arguments->members);
    }
    own("</｜DSML｜ invoke>\n");
  }

  /// A repeated key is written once, at its first place with its last value, as in every JSON of the prompt.
  void write_parameters(std::span<const json::Member> members) {
    std::unordered_map<std::string_view, const json::Value*> last;
    for (const json::Member& member : members) last[member.key] = &member.value;
    for (const json::Member& member : members) {
      if (const json::Value* value = std::exchange(last[member.key], nullptr)) write_parameter(member.key, *value);
    }
  }

  void write_parameter(std::string_view name, const json::Value& value) {
    own("<｜DSML｜ parameter name=\"");
    text(name);
    if (value.is(json::Kind::kString)) {
      text("\" string=\"true\">");
      text(value.text);
    } else {
      text("\" string=\"false\">");
      json::append(value, json::Style::kPython, prompt_.text);
    }
    own("</｜DSML｜ parameter>\n");
  }

  /// Where the model takes over.
  void open_answer() {
    special(Special::kAssistant);
    if (conversation_.thinking) {
      // A required call comes after the reasoning, so here only a grammar can see to it: constraint_of().
      special(Special::kThinkOpen);
      prompt_.output.start = OutputStart::kReasoning;
      return;
    }
    special(Special::kThinkClose);
    prompt_.output.start = OutputStart::kAnswer;
    if (conversation_.tool_choice == ToolChoice::kRequired || conversation_.tool_choice == ToolChoice::kNamed) {
      own("\n\n<｜DSML｜ calls>\n");
      prompt_.output.start = OutputStart::kCalls;
    }
  }

  void content(const Message& message) {
    for (size_t i = 0; i < message.content.size(); ++i) {
      if (i > 0) text(kBlankLine);
      const ContentPart& part = message.content[i];
      if (part.image) {
        special(Special::kImage);
        prompt_.images.push_back(*part.image);
      } else {
        text(part.text);
      }
    }
  }

  void special(Special token) {
    prompt_.marks.push_back({prompt_.text.size(), token});
    prompt_.text += spelling(token);
  }

  void text(std::string_view client_text) { prompt_.text += client_text; }

  /// A literal of this file: its think and DSML tokens are meant.
  void own(std::string_view literal) {
    mark_all(literal, {Special::kThinkOpen, Special::kThinkClose, Special::kDsml},
             [literal](size_t from) { return literal.find_first_of("<\xEF", from); });
  }

  /// What the model said in an earlier turn: its grounding tokens are content, everything else is text.
  void words_of_the_model(std::string_view words) {
    mark_all(words,
             {Special::kPolygonClose, Special::kPolygonOpen, Special::kPointClose, Special::kPointOpen,
              Special::kBoxClose, Special::kBoxOpen, Special::kRefClose, Special::kRefOpen},
             [words](size_t from) { return words.find("<｜", from); });
  }

  /// Appends `words` with `tokens` marked where they are spelt in it. `next(from)`: where one may start.
  template <typename Next>
  void mark_all(std::string_view words, std::initializer_list<Special> tokens, Next next) {
    const size_t base = prompt_.text.size();
    prompt_.text += words;
    for (size_t at = next(0); at < words.size(); at = next(at)) {
      const auto found = std::find_if(tokens.begin(), tokens.end(),
                                      [&](Special token) { return words.substr(at).starts_with(spelling(token)); });
      if (found == tokens.end()) {
        ++at;
        continue;
      }
      prompt_.marks.push_back({base + at, *found});
      at += spelling(*found).size();
    }
  }

  const Conversation& conversation_;
  const bool offers_tools_;
  const bool says_format_;
  Prompt prompt_;
};

}  // namespace

Prompt render(const Conversation& conversation) { return Writer(conversation).write(); }

Result<std::vector<int32_t>> encode(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials) {
  std::vector<int32_t> ids;
  std::string run;  // ordinary text since the last special token
  std::optional<Error> failure;
  const auto flush = [&] {
    if (run.empty() || failure) return;
    Result<std::vector<int32_t>> encoded = tokenizer.encode(run, false);
    if (!encoded.ok()) {
      failure = std::move(encoded).error();
      return;
    }
    ids.insert(ids.end(), encoded->begin(), encoded->end());
    run.clear();
  };
  for_each_part(
      prompt,
      [&](Special special) {
        const std::optional<int32_t> id = specials.id(special);
        DI_CHECK(id || is_grounding(special));  // SpecialTokens::of() sees to the others
        if (!id) {
          run += spelling(special);  // a model without grounding tokens reads the letters
          return;
        }
        flush();
        ids.push_back(*id);
      },
      [&](std::string_view text) { run += text; });
  flush();
  if (failure) return *std::move(failure);
  return ids;
}

}  // namespace deepinfer::protocol
