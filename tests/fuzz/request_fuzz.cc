// Request bodies of all three APIs, from the first byte to the prompt: a refusal is one line and names a status; an
// accepted body renders, and no text of it becomes a special token: the prompt's control tokens are those of the same
// conversation with all texts emptied of '<' and '｜'.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "protocol/prompt.h"
#include "protocol/request.h"
#include "text/utf8.h"

namespace protocol = deepinfer::protocol;

namespace {

/// The same text without any letter that a special token begins with.
void defuse(std::string& text) {
  std::string harmless;
  for (const char c : text) harmless += c == '<' || static_cast<unsigned char>(c) == 0xEF ? '.' : c;
  text = deepinfer::replace_ill_formed(harmless);
}

void defuse(protocol::Conversation& conversation) {
  for (protocol::Message& message : conversation.messages) {
    for (protocol::ContentPart& part : message.content) {
      if (!part.text.empty()) defuse(part.text);
    }
    if (message.reasoning && !message.reasoning->empty()) defuse(*message.reasoning);
    for (protocol::ToolCall& call : message.tool_calls) {
      defuse(call.name);
    }
  }
}

std::vector<protocol::Special> control_marks(const protocol::Conversation& conversation) {
  std::vector<protocol::Special> marks;
  const protocol::Prompt prompt = protocol::render(conversation);
  size_t last = 0;
  for (const protocol::PromptMark& mark : prompt.marks) {
    DI_CHECK(mark.offset >= last);
    const std::string_view spelt = protocol::spelling(mark.special);
    DI_CHECK(std::string_view(prompt.text).substr(mark.offset, spelt.size()) == spelt);
    last = mark.offset + spelt.size();
    if (!protocol::is_grounding(mark.special)) marks.push_back(mark.special);
  }
  DI_CHECK(!deepinfer::find_ill_formed(prompt.text));
  return marks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const protocol::Api api : {protocol::Api::kChat, protocol::Api::kMessages, protocol::Api::kResponses}) {
    auto request = protocol::read_request(api, body);
    if (!request.ok()) {
      DI_CHECK(request.error().status == 400);
      DI_CHECK(!request.error().message.empty());
      DI_CHECK(request.error().message.find('\n') == std::string::npos);
      DI_CHECK(!deepinfer::find_ill_formed(request.error().message));
      continue;
    }
    protocol::Conversation harmless = request->conversation;
    defuse(harmless);
    DI_CHECK(control_marks(request->conversation) == control_marks(harmless));
    static_cast<void>(protocol::constraint_of(request->conversation));
    static_cast<void>(protocol::default_max_tokens(request->conversation));
  }
  return 0;
}
