// The grammar of the output as one table: what text is in each state, and which markers lead where. Internal to the
// output parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deepinfer::protocol {

/// What text is while no marker is seen in it.
enum class State : uint8_t {
  kReasoning,  // reasoning
  kAnswer,     // answer; JSON mode: nothing, the JSON has not begun
  kJson,       // answer
  kAfterJson,  // nothing
  kCalls,      // nothing
  kName,       // a call's name
  kArguments,  // nothing
  kKeyStart,   // nothing; only the next byte counts
  kKey,        // a parameter's name
  kType,       // nothing
  kValue,      // a parameter's value
  kFinished,   // nothing, for ever
};
inline constexpr size_t kNumStates = 12;

/// What a marker does. The marker itself is never shown, but for kBeginJson's.
enum class Action : uint8_t {
  kEndReasoning,
  kDropStrayClose,
  kOpenFence,
  kBeginJson,
  kCloseFence,
  kOpenCalls,
  kCloseCalls,
  kBeginCall,
  kEndName,
  kBeginParameter,
  kBeginKey,
  kEndKey,
  kStringValue,
  kJsonValue,
  kEndValue,
  kEndCall,
};

enum class When : uint8_t { kAlways, kJson, kTools };
enum class Newlines : uint8_t { kText, kBelong };  // directly before the marker

struct Rule {
  State state;
  std::string_view marker;  // \xFE: think-close, \xFF: DSML
  Action action;
  When when = When::kAlways;
  Newlines newlines = Newlines::kText;
};

// The marker that is complete first wins; of those complete at the same byte, the first here. Before all of these come
// the stop strings, where they count: kAnswer outside JSON mode, and kJson.
inline constexpr Rule kRules[] = {
    {State::kReasoning, "<\xFF", Action::kOpenCalls, When::kTools, Newlines::kBelong},
    {State::kReasoning, "\xFE", Action::kEndReasoning, When::kAlways, Newlines::kBelong},
    {State::kAnswer, "```json\n", Action::kOpenFence, When::kJson},
    {State::kAnswer, "```\n", Action::kOpenFence, When::kJson},
    {State::kAnswer, "{", Action::kBeginJson, When::kJson},
    {State::kAnswer, "[", Action::kBeginJson, When::kJson},
    {State::kAnswer, "<\xFF", Action::kOpenCalls, When::kTools, Newlines::kBelong},
    {State::kAnswer, "\xFE", Action::kDropStrayClose},
    {State::kJson, "\n```", Action::kCloseFence},
    {State::kAfterJson, "<\xFF", Action::kOpenCalls, When::kTools, Newlines::kBelong},
    {State::kCalls, "invoke name=\"", Action::kBeginCall},
    {State::kCalls, "</\xFFtool_calls>", Action::kCloseCalls},  // V4's tags
    {State::kCalls, "</\xFF calls>", Action::kCloseCalls},
    {State::kName, "\"", Action::kEndName},
    {State::kArguments, "parameter name=", Action::kBeginParameter},
    {State::kArguments, "</\xFF", Action::kEndCall},
    {State::kKeyStart, "\"", Action::kBeginKey},
    {State::kKey, "\"", Action::kEndKey},
    {State::kType, "true\">", Action::kStringValue},
    {State::kType, "false\">", Action::kJsonValue},
    {State::kValue, "</\xFF", Action::kEndValue},
};

}  // namespace deepinfer::protocol
