// Streams as a strict client reads them: a state machine for each API that accepts no event out of place (failures are
// GoogleTest's), and the body that the events fold into.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "protocol/response.h"

namespace deepinfer::protocol {

using Json = nlohmann::json;

/// One event's data; its name and `type` agree.
Json parse_event(const StreamEvent& event);

/// The body without `object` and `logprobs`.
Json fold_chat(std::vector<StreamEvent> events, const ApiRequest& request);

Json fold_messages(const std::vector<StreamEvent>& events);

/// The response of the terminal event, whose output must be the items that were streamed.
Json fold_responses(const std::vector<StreamEvent>& events);

}  // namespace deepinfer::protocol
