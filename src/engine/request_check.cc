#include "engine/request_check.h"

#include <string>

#include "base/check.h"
#include "deepinfer/options.h"

namespace deepinfer {

namespace {

Error out_of_range(const std::string& field, int64_t value, int64_t min, int64_t max) {
  return Error{Code::kInvalidArgument, field + " is " + std::to_string(value) + ", must be between " +
                                           std::to_string(min) + " and " + std::to_string(max)};
}

Status check_range(const char* field, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max) return out_of_range(field, value, min, max);
  return {};
}

}  // namespace

SamplingParams sampling_params(const SamplingOptions& options) {
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .seed = options.seed};
}

Status check_token_ids(std::span<const int32_t> ids, int32_t vocab_size, int64_t n_context) {
  if (ids.empty()) return Error{Code::kInvalidArgument, "the prompt is empty; at least one token is needed"};
  if (static_cast<int64_t>(ids.size()) > n_context) {
    return Error{Code::kInvalidArgument, "the prompt has " + std::to_string(ids.size()) +
                                             " tokens, the context holds " + std::to_string(n_context)};
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return out_of_range("token id at position " + std::to_string(i), ids[i], 0, vocab_size - 1);
    }
  }
  return {};
}

Status check_request(const Request& request, int32_t vocab_size, int64_t n_context) {
  DI_RETURN_IF_ERROR(check_token_ids(request.prompt, vocab_size, n_context));
  DI_RETURN_IF_ERROR(validate(sampling_params(request.sampling)));
  DI_RETURN_IF_ERROR(check_range("max_tokens", request.max_tokens, 0, kContextMax));
  DI_RETURN_IF_ERROR(check_range("n", request.n_sequences, 1, kSequencesPerRequestMax));
  if (request.n_logprobs) DI_RETURN_IF_ERROR(check_range("logprobs", *request.n_logprobs, 0, kLogprobsMax));
  DI_RETURN_IF_ERROR(check_range("number of stop ids", static_cast<int64_t>(request.stop_ids.size()), 0, kStopIdsMax));
  for (const int32_t id : request.stop_ids) DI_RETURN_IF_ERROR(check_range("stop id", id, 0, vocab_size - 1));
  DI_RETURN_IF_ERROR(
      check_range("number of stop strings", static_cast<int64_t>(request.stop_strings.size()), 0, kStopStringsMax));
  for (const std::string& stop : request.stop_strings) {
    DI_RETURN_IF_ERROR(
        check_range("bytes of a stop string", static_cast<int64_t>(stop.size()), 1, kStopStringBytesMax));
  }
  return {};
}

}  // namespace deepinfer
