#include "protocol/response.h"

#include <utility>

#include "base/check.h"
#include "protocol/chat_response.h"
#include "protocol/messages_response.h"
#include "protocol/responses_response.h"

namespace deepinfer::protocol {

std::unique_ptr<Response> make_response(const ApiRequest& request, ResponseIdentity identity, bool want_events) {
  switch (request.api) {
    case Api::kChat:
      return make_chat_response(request, std::move(identity), want_events);
    case Api::kMessages:
      return make_messages_response(request, std::move(identity), want_events);
    case Api::kResponses:
      return make_responses_response(request, std::move(identity), want_events);
  }
  DI_CHECK(false);
}

void append_sse(const StreamEvent& event, std::string& out) {
  if (!event.name.empty()) {
    out += "event: ";
    out += event.name;
    out += '\n';
  }
  out += "data: ";
  out += event.data;
  out += "\n\n";
}

}  // namespace deepinfer::protocol
