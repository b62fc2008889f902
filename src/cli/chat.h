// Conversations on the command line: options or a batch line's messages → prompt ids, and token ids → answer, reasoning
// and calls. Goes through the same protocol code as a served request. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "deepinfer/engine.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"
#include "protocol/conversation.h"
#include "protocol/output_parser.h"
#include "protocol/prompt.h"
#include "protocol/special_tokens.h"
#include "text/json.h"

namespace deepinfer::cli {

/// What --chat and its options ask for; `user` is the prompt.
/// Errors   kInvalidArgument: the tools file, by name and place
Result<protocol::Conversation> chat_conversation(const ChatArguments& chat, std::string user);

/// A batch line's members in the form of Chat Completions, as they are spelt.
struct ChatMembers {
  json::Value messages;
  std::optional<json::Value> tools;
  bool thinking = true;
  std::optional<int32_t> effort;
};
Result<protocol::Conversation> chat_conversation(ChatMembers members);

struct ChatPrompt {
  std::vector<int32_t> ids;
  protocol::OutputSettings output;  // `stop` among it
};

/// `stop`: strings that end the answer.
/// Errors   kInvalidArgument: an image, which this engine does not see yet
Result<ChatPrompt> chat_prompt(const protocol::Conversation& conversation, std::vector<std::string> stop,
                               const Tokenizer& tokenizer, const protocol::SpecialTokens& specials);

/// What one sequence said.
struct ChatAnswer {
  std::string text;  // the answer alone
  std::string reasoning;
  std::vector<protocol::ToolCall> tool_calls;  // ids empty
};

struct ChatAnswers {
  std::vector<Completion>
      completions;                  // text: the answer alone; finish_reason and stop_string as the conversation ended
  std::vector<ChatAnswer> answers;  // of the same sequences
};

/// Reasoning and answer as they become certain. May be empty.
using OnChatText = std::function<void(int32_t sequence, protocol::Section section, std::string_view text)>;

/// Generates, ending each sequence when its answer is complete (a stop string of `output`, the end of the calls).
/// Precondition: request.stop_strings is empty. Errors as Engine::generate().
Result<ChatAnswers> generate_chat(Engine& engine, const Request& request, const protocol::OutputSettings& output,
                                  const protocol::SpecialTokens& specials, const OnChatText& on_text,
                                  const Progress& on_prefill);

}  // namespace deepinfer::cli
