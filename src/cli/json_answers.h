// Answers as JSON lines, without the line end. What is no number in JSON (an infinite log-probability, the perplexity
// of a single token) is null. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "deepinfer/engine.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

struct AnswerOptions {
  std::string id_json;  // JSON text, empty: none
  bool logprobs = false;
  bool stats = false;
};

/// {"id"?, "text", "token_ids", "finish_reason", "usage", "logprobs"?, "stats"?}
std::string completion_line(const Completion& completion, const AnswerOptions& options);

/// {"id"?, "error": {"kind", "message"}}
std::string error_line(const Error& error, const std::string& id_json);

/// {"name"?, "tokens", "logprobs": [null, ...], "nll", "ppl"}
std::string score_line(const std::optional<std::string>& name, std::span<const int32_t> tokens, const Score& score);

}  // namespace deepinfer::cli
