// The response of Messages (Anthropic).
#pragma once

#include <memory>

#include "protocol/response.h"

namespace deepinfer::protocol {

std::unique_ptr<Response> make_messages_response(const ApiRequest& request, ResponseIdentity identity,
                                                 bool want_events);

}  // namespace deepinfer::protocol
