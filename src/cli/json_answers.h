// Answers as JSON lines, without the line end. What is no number in JSON (an infinite log-probability, the perplexity
// of a single token) is null. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/chat.h"
#include "deepinfer/engine.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

struct AnswerOptions {
  std::string id_json;  // JSON text, empty: none
  bool logprobs = false;
  bool stats = false;
  const ChatAnswer* chat = nullptr;  // borrowed; adds what a conversation's answer has besides its text
};

/// {"id"?, "text", "token_ids", "finish_reason", "usage", "logprobs"?, "stats"?, "reasoning"?, "tool_calls"?}
std::string completion_line(const Completion& completion, const AnswerOptions& options);

/// {"name", "arguments"}: arguments as the model wrote them when they are a JSON object, else as a string.
std::string tool_call_json(const protocol::ToolCall& call);

/// {"id"?, "error": {"kind", "message"}}
std::string error_line(const Error& error, const std::string& id_json);

/// {"name"?, "tokens", "logprobs": [null, ...], "nll", "ppl"}
std::string score_line(const std::optional<std::string>& name, std::span<const int32_t> tokens, const Score& score);

}  // namespace deepinfer::cli
