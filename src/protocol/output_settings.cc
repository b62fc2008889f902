#include "protocol/output_settings.h"

#include "base/check.h"

namespace deepinfer::protocol {

std::string_view name_of(OutputStart start) {
  switch (start) {
    case OutputStart::kReasoning:
      return "reasoning";
    case OutputStart::kReasoningContinued:
      return "reasoning_continued";
    case OutputStart::kAnswer:
      return "answer";
    case OutputStart::kAnswerContinued:
      return "answer_continued";
    case OutputStart::kCalls:
      return "calls";
  }
  DI_CHECK(false);
}

}  // namespace deepinfer::protocol
