// JSON lines that people give: requests of `batch`, inputs of `score`, and answers of an earlier `batch` run. Strict:
// a member that is unknown, given twice or of the wrong type is an error by name. No JSON type leaves. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

struct BatchRequest {
  Request request;                  // its prompt is set when the line has "tokens"
  std::optional<std::string> text;  // "prompt"
  std::optional<ChatMembers> chat;  // "messages" and what goes with them
  bool special = true;
};

struct BatchLine {
  std::string id_json;  // the id as JSON text; empty: none
  Result<BatchRequest> request;
};

/// An id that can be read is there even when the rest cannot.
BatchLine read_batch_line(std::string_view line);

struct ScoreLine {
  std::optional<std::string> name;
  std::optional<std::string> text;  // else `tokens`, at least one
  std::vector<int32_t> tokens;
};

Result<ScoreLine> read_score_line(std::string_view line);

/// What tells to which request a line of answers belongs.
struct AnswerHead {
  std::string id_json;
  std::optional<std::string> error_message;
  int64_t n_prompt_tokens = 0;  // without an error
};

Result<AnswerHead> read_answer_head(std::string_view line);

}  // namespace deepinfer::cli
