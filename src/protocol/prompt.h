// Conversation → prompt. Only what this file writes itself becomes special tokens; whatever a client sent is text, also
// where it is spelt like one. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"
#include "protocol/conversation.h"
#include "protocol/output_settings.h"
#include "protocol/special_tokens.h"

namespace deepinfer::protocol {

/// A special token inside Prompt::text.
struct PromptMark {
  size_t offset = 0;  // bytes; the token's spelling() stands there
  Special special = Special::kBos;
};

struct Prompt {
  std::string text;                 // special tokens spelt out
  std::vector<PromptMark> marks;    // ascending; what lies between them is ordinary text
  std::vector<ImageSource> images;  // one a kImage mark, in the same order
  OutputSettings output;            // how to read what the model answers; stop strings are the caller's to add
};

/// The V4.1 prompt format. Precondition: what read_request() checks (a prefix is last, effort is 1 to 100).
/// Cost     linear in the conversation
Prompt render(const Conversation& conversation);

/// Calls `on_special(Special)` and `on_text(std::string_view)` in order; no text is empty.
template <typename OnSpecial, typename OnText>
void for_each_part(const Prompt& prompt, OnSpecial on_special, OnText on_text) {
  const std::string_view text = prompt.text;
  size_t at = 0;
  for (const PromptMark& mark : prompt.marks) {
    if (mark.offset > at) on_text(text.substr(at, mark.offset - at));
    on_special(mark.special);
    at = mark.offset + spelling(mark.special).size();
  }
  if (at < text.size()) on_text(text.substr(at));
}

/// Token ids: each run of text is encoded with the added vocabulary off. Grounding tokens that the tokenizer lacks are
/// text like the rest.
/// Errors   kInvalidArgument: a text that Tokenizer::encode() refuses
Result<std::vector<int32_t>> encode(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials);

}  // namespace deepinfer::protocol
