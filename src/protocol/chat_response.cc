// Chat Completions: bare data lines, each a chunk that says what one choice adds; [DONE] last. Which chunk carries the
// usage: the last finish as DeepSeek does it, or, when the client asked, one more chunk without choices as OpenAI does.
#include "protocol/chat_response.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "protocol/response_common.h"

namespace deepinfer::protocol {

namespace {

constexpr std::string_view kReasoningDelta = R"("content":null,"reasoning_content":")";
constexpr std::string_view kContentDelta = R"("content":")";

std::string_view wire_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kCalls:
      return "tool_calls";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContentFilter:
      return "content_filter";
  }
  DI_CHECK(false);
}

/// The first reasoning_content says that this answer has reasoning, so it depends on where the model's text begins: a
/// prefix that already holds answer text has left reasoning behind.
bool starts_in_reasoning(const Conversation& conversation) {
  if (!conversation.thinking) return false;
  if (conversation.messages.empty() || !conversation.messages.back().is_prefix) return true;
  for (const ContentPart& part : conversation.messages.back().content)
    if (!part.text.empty()) return false;
  return true;
}

std::string usage_json(const ResponseUsage& usage) {
  std::string out;
  ObjectWriter writer(out);
  writer.number("prompt_tokens", usage.n_prompt_tokens)
      .number("completion_tokens", usage.n_completion_tokens)
      .number("total_tokens", usage.n_prompt_tokens + usage.n_completion_tokens);
  ObjectWriter(writer.member("prompt_tokens_details")).number("cached_tokens", usage.n_cached_tokens).close();
  ObjectWriter(writer.member("completion_tokens_details")).number("reasoning_tokens", usage.n_reasoning_tokens).close();
  writer.number("prompt_cache_hit_tokens", usage.n_cached_tokens)
      .number("prompt_cache_miss_tokens", usage.n_prompt_tokens - usage.n_cached_tokens)
      .close();
  return out;
}

/// What chunks and bodies begin with, up to the inside of `choices`.
std::string open_object(const ResponseIdentity& identity, std::string_view object) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("id", identity.id)
      .text("object", object)
      .number("created", identity.created_s)
      .text("model", identity.model)
      .json("system_fingerprint", identity.system_fingerprint ? in_quotes(*identity.system_fingerprint) : "null");
  writer.member("choices") += '[';
  return out;
}

/// What the chunks of one response have in common, and the events they become.
class ChunkStream {
 public:
  ChunkStream(const ApiRequest& request, const ResponseIdentity& identity, bool want_events)
      : want_events_(want_events), thinking_(request.conversation.thinking), include_usage_(request.include_usage) {
    if (!want_events) return;
    head_ = open_object(identity, "chat.completion.chunk");
  }

  [[nodiscard]] bool want_events() const { return want_events_; }
  [[nodiscard]] bool thinking() const { return thinking_; }
  [[nodiscard]] bool include_usage() const { return include_usage_; }

  /// A chunk of choice `index`, up to the inside of its delta.
  [[nodiscard]] std::string open(int32_t index, size_t delta_bytes) const {
    constexpr size_t kRestBytes = 128;  // what open() and close() add to the head, with room to spare
    std::string chunk;
    chunk.reserve(head_.size() + delta_bytes + kRestBytes);
    chunk += head_;
    chunk += R"({"index":)";
    chunk += std::to_string(index);
    chunk += R"(,"delta":{)";
    return chunk;
  }

  /// Sends a chunk. `finish_reason` is JSON; an empty `usage` stands for what a chunk without usage shows.
  void close(std::string chunk, std::string_view finish_reason, std::string_view usage) {
    chunk += R"(},"logprobs":null,"finish_reason":)";
    chunk += finish_reason;
    chunk += "}]";
    if (usage.empty() && include_usage_) usage = "null";
    if (!usage.empty()) {
      chunk += R"(,"usage":)";
      chunk += usage;
    }
    chunk += '}';
    send(std::move(chunk));
  }

  void send_usage(std::string_view usage) { send(head_ + R"(],"usage":)" + std::string(usage) + '}'); }
  void send(std::string data) { events_.push_back({"", std::move(data)}); }
  std::vector<StreamEvent> take() { return std::exchange(events_, {}); }

 private:
  bool want_events_;
  bool thinking_;
  bool include_usage_;
  std::string head_;
  std::vector<StreamEvent> events_;
};

/// One choice: its chunks, and its message as the fold of them.
class ChatChoice final : public OutputEvents {
 public:
  ChatChoice(ChunkStream& stream, const CallOrder& order, const std::string& response_id, int32_t index, bool reasons)
      : stream_(stream), order_(order), response_id_(response_id), index_(index), reasons_(reasons) {}

  void send_role() {
    if (!stream_.want_events()) return;
    std::string chunk = stream_.open(index_, 0);
    chunk += R"("role":"assistant",)";
    chunk += reasons_ ? R"("content":null,"reasoning_content":"")" : R"("content":"")";
    if (stream_.thinking() && !reasons_) chunk += kNoReasoning;
    stream_.close(std::move(chunk), "null", "");
  }

  void on_reasoning(std::string_view text) override {
    order_.check_choice(index_);
    reasons_ = true;
    send_text(kReasoningDelta, append_piece(text, reasoning_), "");
  }

  void on_answer(std::string_view text) override {
    order_.check_choice(index_);
    send_text(kContentDelta, append_piece(text, answer_), stream_.thinking() ? kNoReasoning : "");
  }

  void finish(BackendFinish finish, bool has_stop_string) {
    finish_reason_ = finish_reason_of(finish, has_stop_string, !calls_.empty());
  }

  /// The chunk with the finish reason. `usage` is JSON or empty.
  void send_finish(std::string_view usage) {
    if (!stream_.want_events()) return;
    std::string chunk = stream_.open(index_, usage.size());
    chunk += R"("content":"")";
    if (stream_.thinking()) chunk += kNoReasoning;
    stream_.close(std::move(chunk), in_quotes(wire_name(finish_reason_)), usage);
  }

  void append_to_body(std::string& out) const {
    ObjectWriter choice(out);
    choice.number("index", index_);
    ObjectWriter message(choice.member("message"));
    message.text("role", "assistant").escaped("content", answer_);
    if (reasons_) message.escaped("reasoning_content", reasoning_);
    if (!calls_.empty()) append_calls(message.member("tool_calls"));
    message.close();
    choice.json("logprobs", "null").text("finish_reason", wire_name(finish_reason_)).close();
  }

 private:
  static constexpr std::string_view kNoReasoning = R"(,"reasoning_content":null)";

  struct Call {
    std::string id;
    std::string name;
    std::string arguments;  // escaped
  };

  void on_call_begin(std::string_view name) override {
    order_.check_choice(index_);
    const auto call_index = static_cast<int32_t>(calls_.size());
    calls_.push_back({make_call_id(response_id_, index_, call_index), std::string(name), {}});
    if (!stream_.want_events()) return;
    std::string chunk = open_call_chunk(name.size());
    chunk += R"(,"id":)" + in_quotes(calls_.back().id) + R"(,"type":"function","function":)";
    ObjectWriter(chunk).text("name", name).text("arguments", "").close();
    chunk += "}]";
    stream_.close(std::move(chunk), "null", "");
  }

  void on_call_arguments(std::string_view json) override {
    order_.check_choice(index_);
    DI_CHECK(!calls_.empty());
    const std::string_view piece = append_piece(json, calls_.back().arguments);
    if (!stream_.want_events()) return;
    std::string chunk = open_call_chunk(piece.size());
    chunk += R"(,"function":)";
    ObjectWriter(chunk).escaped("arguments", piece).close();
    chunk += "}]";
    stream_.close(std::move(chunk), "null", "");
  }

  void on_call_end() override {}

  void send_text(std::string_view delta, std::string_view piece, std::string_view delta_end) {
    if (!stream_.want_events()) return;
    std::string chunk = stream_.open(index_, piece.size());
    chunk += delta;
    chunk += piece;
    chunk += '"';
    chunk += delta_end;
    stream_.close(std::move(chunk), "null", "");
  }

  /// A chunk up to the members of the last call.
  [[nodiscard]] std::string open_call_chunk(size_t text_bytes) const {
    std::string chunk = stream_.open(index_, text_bytes);
    chunk += R"("tool_calls":[{"index":)";
    chunk += std::to_string(calls_.size() - 1);
    return chunk;
  }

  void append_calls(std::string& out) const {
    out += '[';
    for (const Call& call : calls_) {
      if (&call != &calls_.front()) out += ',';
      ObjectWriter writer(out);
      writer.text("id", call.id).text("type", "function");
      ObjectWriter(writer.member("function")).text("name", call.name).escaped("arguments", call.arguments).close();
      writer.close();
    }
    out += ']';
  }

  ChunkStream& stream_;  // of the response that owns this choice, like the next two
  const CallOrder& order_;
  const std::string& response_id_;
  int32_t index_;
  bool reasons_;           // reasoning_content is said, if only to be empty
  std::string reasoning_;  // escaped
  std::string answer_;     // escaped
  std::vector<Call> calls_;
  FinishReason finish_reason_ = FinishReason::kStop;
};

class ChatResponse final : public Response {
 public:
  ChatResponse(const ApiRequest& request, ResponseIdentity identity, bool want_events)
      : identity_(std::move(identity)), stream_(request, identity_, want_events), order_(request.n_choices) {
    const bool reasons = starts_in_reasoning(request.conversation);
    choices_.reserve(static_cast<size_t>(request.n_choices));
    for (int32_t i = 0; i < request.n_choices; ++i) choices_.emplace_back(stream_, order_, identity_.id, i, reasons);
  }

  void begin(const ResponseUsage& /*usage*/) override {
    order_.begin();
    for (ChatChoice& choice : choices_) choice.send_role();
  }

  OutputEvents& choice(int32_t index) override {
    order_.check_choice(index);
    return choices_[static_cast<size_t>(index)];
  }

  void finish_choice(int32_t index, BackendFinish finish, std::optional<int32_t> stop_index) override {
    order_.check_choice(index);
    ChatChoice& choice = choices_[static_cast<size_t>(index)];
    choice.finish(finish, stop_index.has_value());
    order_.finish_choice(index);
    if (order_.all_finished() && !stream_.include_usage())
      last_to_finish_ = &choice;  // end() knows the usage that goes with it
    else
      choice.send_finish("");
  }

  void end(const ResponseUsage& usage) override {
    order_.end();
    usage_ = usage_json(usage);
    if (!stream_.want_events()) return;
    if (last_to_finish_ != nullptr)
      last_to_finish_->send_finish(usage_);
    else
      stream_.send_usage(usage_);
    stream_.send("[DONE]");
  }

  void fail(const ApiError& error) override {
    order_.fail();
    if (stream_.want_events()) stream_.send(error_body(Api::kChat, error));
  }

  std::vector<StreamEvent> take_events() override { return stream_.take(); }

  [[nodiscard]] std::string body() const override {
    order_.check_body();
    std::string out = open_object(identity_, "chat.completion");
    for (const ChatChoice& choice : choices_) {
      if (&choice != &choices_.front()) out += ',';
      choice.append_to_body(out);
    }
    out += R"(],"usage":)";
    out += usage_;
    out += '}';
    return out;
  }

 private:
  ResponseIdentity identity_;
  ChunkStream stream_;
  CallOrder order_;
  std::vector<ChatChoice> choices_;       // never grows: callers hold references into it
  ChatChoice* last_to_finish_ = nullptr;  // its finish waits for the usage
  std::string usage_;                     // JSON, from end()
};

}  // namespace

std::unique_ptr<Response> make_chat_response(const ApiRequest& request, ResponseIdentity identity, bool want_events) {
  return std::make_unique<ChatResponse>(request, std::move(identity), want_events);
}

}  // namespace deepinfer::protocol
