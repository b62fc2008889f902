// The response of Chat Completions.
#pragma once

#include <memory>

#include "protocol/response.h"

namespace deepinfer::protocol {

std::unique_ptr<Response> make_chat_response(const ApiRequest& request, ResponseIdentity identity, bool want_events);

}  // namespace deepinfer::protocol
