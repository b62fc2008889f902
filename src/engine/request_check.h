// Whether a request can be served at all, decided before any work. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "deepinfer/request.h"
#include "deepinfer/status.h"
#include "sampling/params.h"

namespace deepinfer {

SamplingParams sampling_params(const SamplingOptions& options);

/// Ids of a prompt or text: at least one, inside the vocabulary, at most n_context.
/// kInvalidArgument names the position, the id and the limit.
Status check_token_ids(std::span<const int32_t> ids, int32_t vocab_size, int64_t n_context);

/// kInvalidArgument names the field, its value and the limit.
Status check_request(const Request& request, int32_t vocab_size, int64_t n_context);

}  // namespace deepinfer
