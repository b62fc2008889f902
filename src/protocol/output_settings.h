// Where the model's answer begins and what may occur in it: written by the prompt, read by the output parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::protocol {

enum class OutputStart : uint8_t {
  kReasoning,           // after <think>
  kReasoningContinued,  // inside reasoning that a prefix began: leading newlines count
  kAnswer,              // after </think>
  kAnswerContinued,     // inside an answer that a prefix began: leading newlines count
  kCalls,               // inside a calls block that the prompt opened
};

/// "reasoning", "reasoning_continued", "answer", "answer_continued", "calls".
std::string_view name_of(OutputStart start);

struct OutputSettings {
  OutputStart start = OutputStart::kAnswer;
  bool tools = false;             // calls blocks are calls, else text
  bool one_call = false;          // the answer is complete with its first call
  bool json = false;              // JSON mode: what surrounds the JSON value becomes one blank
  std::vector<std::string> stop;  // non-empty UTF-8; matched in the answer only
};

}  // namespace deepinfer::protocol
