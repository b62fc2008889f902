// What is asked of an engine and what it answers. Plain data, no file or wire format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deepinfer/constraint.h"

namespace deepinfer {

struct SamplingOptions {
  float temperature = 0;  // 0: greedy
  int64_t top_k = 0;      // 0 or -1: off
  float top_p = 1;        // 1: off
  float min_p = 0;        // 0: off
  uint64_t seed = 0;
};

struct Request {
  std::vector<int32_t> prompt;  // token ids as they are; at least one
  SamplingOptions sampling;
  int64_t max_tokens = 256;               // of the answer
  int32_t n_sequences = 1;                // sequence j draws with a seed derived from (seed, j); j = 0 from seed itself
  std::vector<int32_t> stop_ids;          // besides ids 1, 2 and the model's end token, which always stop
  std::vector<std::string> stop_strings;  // non-empty UTF-8
  std::optional<grammar::Constraint> constraint;  // every answer is a text of it, or the request is refused
  int32_t constraint_starts_after = -1;           // tokens up to and including this one are free; -1: none are
  std::optional<int32_t> n_logprobs;              // log-probabilities of chosen tokens and of this many best ones
};

/// Bounds of a request, so that nobody can make the engine keep an unlimited amount of anything.
inline constexpr int32_t kSequencesPerRequestMax = 128;
inline constexpr int32_t kLogprobsMax = 1024;
inline constexpr int64_t kStopStringsMax = 64;
inline constexpr int64_t kStopStringBytesMax = 4096;
inline constexpr int64_t kStopIdsMax = 1024;

enum class FinishReason : uint8_t {
  kStop,       // a stop id or stop string
  kLength,     // max_tokens, or the context is full
  kToolCalls,  // a stop after calls of tools; only conversations have them, the engine itself never says so
};

struct TokenAlternative {
  int32_t token_id = 0;
  double logprob = 0;
};

/// Of the raw distribution, before temperature and truncation.
struct TokenLogprobs {
  int32_t token_id = 0;
  double logprob = 0;
  std::vector<TokenAlternative> top;  // most probable first
};

struct Usage {
  int64_t n_prompt_tokens = 0;
  int64_t n_completion_tokens = 0;  // token_ids.size()
};

struct Timing {
  double prefill_seconds = 0;
  double decode_seconds = 0;
  int64_t n_decode_steps = 0;
};

/// One sequence's answer. Neither a stop id nor any part of a stop string appears in it.
struct Completion {
  std::vector<int32_t> token_ids;
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  std::optional<std::string> stop_string;  // the one that ended it
  std::vector<TokenLogprobs> logprobs;     // one a token when asked for
  Usage usage;
  Timing timing;
};

}  // namespace deepinfer
