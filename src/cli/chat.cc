#include "cli/chat.h"

#include <memory>
#include <utility>

#include "cli/line_io.h"
#include "cli/values.h"
#include "protocol/request.h"
#include "protocol/token_output.h"

namespace deepinfer::cli {

namespace {

constexpr int64_t kToolsFileBytesMax = int64_t{64} << 20;

Result<std::vector<protocol::ToolDefinition>> read_tools_file(const std::string& path) {
  const Result<std::string> text = read_file("--tools", path, kToolsFileBytesMax);
  if (!text.ok()) return text.error();
  const std::string where = "--tools " + shown(path) + ": ";
  const Result<json::Value> value = json::parse(*text);
  if (!value.ok()) return Error{Code::kInvalidArgument, where + value.error().message};
  Result<std::vector<protocol::ToolDefinition>, protocol::ApiError> tools = protocol::read_tools(*value);
  if (!tools.ok()) return Error{Code::kInvalidArgument, where + tools.error().message};
  return *std::move(tools);
}

protocol::Message text_message(protocol::Role role, std::string text) {
  protocol::Message message;
  message.role = role;
  message.content.push_back({std::move(text), std::nullopt});
  return message;
}

/// Follows one sequence, token by token. Borrows tokenizer and specials.
class ChatReader : private protocol::OutputEvents {
 public:
  using OnText = std::function<void(protocol::Section section, std::string_view text)>;

  ChatReader(const Tokenizer& tokenizer, const protocol::SpecialTokens& specials, protocol::OutputSettings settings,
             OnText on_text)
      : tokenizer_(tokenizer),
        stop_(settings.stop),
        output_(tokenizer, specials, std::move(settings)),
        on_text_(std::move(on_text)) {}

  /// False once the answer is complete: generation may end.
  bool push(int32_t token_id) {
    // A model's head may be wider than its tokenizer; an id without a token adds no text.
    if (tokenizer_.contains(token_id)) static_cast<void>(output_.push(token_id, *this));
    return output_.parser().section() != protocol::Section::kFinished;
  }

  /// The sequence is over. Sets the completion's text and how it ended, and drops the tokens that hold a part of the
  /// stop string, with their log-probabilities.
  ChatAnswer finish(Completion& completion);

 private:
  void on_reasoning(std::string_view text) override {
    answer_.reasoning += text;
    on_text_(protocol::Section::kReasoning, text);
  }
  void on_answer(std::string_view text) override {
    answer_.text += text;
    on_text_(protocol::Section::kAnswer, text);
  }
  void on_call_begin(std::string_view name) override { answer_.tool_calls.push_back({"", std::string(name), ""}); }
  void on_call_arguments(std::string_view json) override { answer_.tool_calls.back().arguments += json; }
  void on_call_end() override {}

  [[nodiscard]] size_t n_tokens_before_stop(const Completion& completion) const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_;
  protocol::TokenOutput output_;
  OnText on_text_;
  ChatAnswer answer_;
};

ChatAnswer ChatReader::finish(Completion& completion) {
  output_.finish(*this);
  const protocol::OutputParser& parser = output_.parser();
  const bool ended_by_model = completion.finish_reason == FinishReason::kStop;
  if (const std::optional<int32_t> stop = parser.stop_index()) {
    completion.stop_string = stop_[static_cast<size_t>(*stop)];
    completion.token_ids.resize(n_tokens_before_stop(completion));
    if (!completion.logprobs.empty()) completion.logprobs.resize(completion.token_ids.size());
    completion.usage.n_completion_tokens = static_cast<int64_t>(completion.token_ids.size());
  } else if (ended_by_model && parser.n_calls() > 0) {
    completion.finish_reason = FinishReason::kToolCalls;
  }
  completion.text = answer_.text;
  return std::move(answer_);
}

size_t ChatReader::n_tokens_before_stop(const Completion& completion) const {
  // The match ended inside the last token: look for the first place there where the text ends with the stop string.
  std::string text;
  std::vector<size_t> ends;
  for (const int32_t id : completion.token_ids) {
    if (tokenizer_.contains(id)) text += tokenizer_.token_bytes(id);
    ends.push_back(text.size());
  }
  const std::string& stop = *completion.stop_string;
  size_t first = ends.size() > 1 ? ends[ends.size() - 2] + 1 : 1;
  if (first < stop.size()) first = stop.size();
  const size_t begin = text.find(stop, first - stop.size());
  size_t n_kept = ends.size();
  while (n_kept > 0 && ends[n_kept - 1] > begin) --n_kept;
  return n_kept;
}

}  // namespace

Result<protocol::Conversation> chat_conversation(const ChatArguments& chat, std::string user) {
  protocol::Conversation conversation;
  conversation.thinking = chat.thinking;
  conversation.effort = chat.effort.value_or(protocol::kEffortHigh);
  if (chat.tools_file) {
    Result<std::vector<protocol::ToolDefinition>> tools = read_tools_file(*chat.tools_file);
    if (!tools.ok()) return tools.error();
    conversation.tools = *std::move(tools);
  }
  if (chat.system && !chat.system->empty()) {
    conversation.messages.push_back(text_message(protocol::Role::kSystem, *chat.system));
  }
  conversation.messages.push_back(text_message(protocol::Role::kUser, std::move(user)));
  return conversation;
}

Result<protocol::Conversation> chat_conversation(ChatMembers members) {
  json::Value type;
  type.kind = json::Kind::kObject;
  type.members.push_back({"type", json::Value::of(std::string_view(members.thinking ? "enabled" : "disabled"))});
  json::Value body;
  body.kind = json::Kind::kObject;
  body.members.push_back({"model", json::Value::of(std::string_view())});
  body.members.push_back({"messages", std::move(members.messages)});
  if (members.tools) body.members.push_back({"tools", *std::move(members.tools)});
  body.members.push_back({"thinking", std::move(type)});
  if (members.effort) body.members.push_back({"reasoning_effort", json::Value::of(int64_t{*members.effort})});
  Result<protocol::ApiRequest, protocol::ApiError> request = protocol::read_request(protocol::Api::kChat, body);
  if (!request.ok()) return Error{Code::kInvalidArgument, request.error().message};
  return std::move(request->conversation);
}

Result<ChatPrompt> chat_prompt(const protocol::Conversation& conversation, std::vector<std::string> stop,
                               const Tokenizer& tokenizer, const protocol::SpecialTokens& specials) {
  protocol::Prompt prompt = protocol::render(conversation);
  if (!prompt.images.empty()) {
    return Error{Code::kInvalidArgument, prompt.images[0].field + ": this build does not read images"};
  }
  prompt.output.stop = std::move(stop);
  Result<std::vector<int32_t>> ids = protocol::encode(prompt, tokenizer, specials);
  if (!ids.ok()) return ids.error();
  return ChatPrompt{*std::move(ids), std::move(prompt.output)};
}

Result<ChatAnswers> generate_chat(Engine& engine, const Request& request, const protocol::OutputSettings& output,
                                  const protocol::SpecialTokens& specials, const OnChatText& on_text,
                                  const Progress& on_prefill) {
  std::vector<std::unique_ptr<ChatReader>> readers;
  for (int32_t sequence = 0; sequence < request.n_sequences; ++sequence) {
    readers.push_back(std::make_unique<ChatReader>(
        engine.tokenizer(), specials, output, [&on_text, sequence](protocol::Section section, std::string_view text) {
          if (on_text) on_text(sequence, section, text);
        }));
  }
  const GenerationEvents events{
      .on_token = [&](int32_t sequence, int32_t id) { return readers[static_cast<size_t>(sequence)]->push(id); },
      .on_prefill = on_prefill};
  Result<std::vector<Completion>> completions = engine.generate(request, events);
  if (!completions.ok()) return completions.error();
  ChatAnswers result{.completions = *std::move(completions)};
  for (size_t i = 0; i < result.completions.size(); ++i) {
    result.answers.push_back(readers[i]->finish(result.completions[i]));
  }
  return result;
}

}  // namespace deepinfer::cli
