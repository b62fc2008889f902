// Messages (Anthropic): a message of blocks, one open at a time, counted from 0. A block opens with its first text, so
// that none is empty; a call's block opens with its name.
#include "protocol/messages_response.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "protocol/response_common.h"
#include "text/json.h"

namespace deepinfer::protocol {

namespace {

enum class BlockType : uint8_t { kThinking, kText, kToolUse };

struct Block {
  BlockType type;
  std::string text;  // kThinking, kText: escaped · kToolUse: the arguments as they came
  std::string id;    // kToolUse
  std::string name;  // kToolUse
};

std::string_view wire_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "end_turn";
    case FinishReason::kStopString:
      return "stop_sequence";
    case FinishReason::kCalls:
      return "tool_use";
    case FinishReason::kLength:
      return "max_tokens";
    case FinishReason::kContentFilter:
      return "refusal";
  }
  DI_CHECK(false);
}

/// The three input counts are a partition of the prompt.
void append_usage(const ResponseUsage& usage, std::string& out) {
  ObjectWriter(out)
      .number("input_tokens", usage.n_prompt_tokens - usage.n_cached_tokens)
      .number("cache_creation_input_tokens", 0)
      .number("cache_read_input_tokens", usage.n_cached_tokens)
      .number("output_tokens", usage.n_completion_tokens)
      .text("service_tier", "standard")
      .close();
}

/// Arguments that are no JSON object (the model wrote nonsense, or was cut) become an empty one: `input` has to be an
/// object, and who wants the fragments has the stream.
void append_input(std::string_view arguments, std::string& out) {
  const Result<json::Value> value = json::parse(arguments);
  if (value && value->is(json::Kind::kObject))
    json::append(*value, json::Style::kCompact, out);
  else
    out += "{}";
}

/// What opens the delta of a block of this type; its text and `"}}` follow.
std::string_view delta_head(BlockType type) {
  switch (type) {
    case BlockType::kThinking:
      return R"({"type":"thinking_delta","thinking":")";
    case BlockType::kText:
      return R"({"type":"text_delta","text":")";
    case BlockType::kToolUse:
      return R"({"type":"input_json_delta","partial_json":")";
  }
  DI_CHECK(false);
}

class MessagesResponse final : public Response, private OutputEvents {
 public:
  MessagesResponse(const ApiRequest& request, ResponseIdentity identity, bool want_events)
      : identity_(std::move(identity)), stop_(request.stop), want_events_(want_events), order_(1) {}

  void begin(const ResponseUsage& usage) override {
    order_.begin();
    if (!want_events_) return;
    std::string data;
    ObjectWriter writer(data);
    writer.text("type", "message_start");
    append_message("[]", usage, writer.member("message"));
    writer.close();
    send("message_start", std::move(data));
  }

  OutputEvents& choice(int32_t index) override {
    order_.check_choice(index);
    return *this;
  }

  void finish_choice(int32_t index, BackendFinish finish, std::optional<int32_t> stop_index) override {
    order_.finish_choice(index);
    close_block();
    finish_reason_ = finish_reason_of(finish, stop_index.has_value(), n_calls_ > 0);
    if (!stop_index) return;
    DI_CHECK(*stop_index >= 0);
    DI_CHECK(static_cast<size_t>(*stop_index) < stop_.size());
    stop_sequence_ = in_quotes(stop_[static_cast<size_t>(*stop_index)]);
  }

  void end(const ResponseUsage& usage) override {
    order_.end();
    usage_ = usage;
    if (!want_events_) return;
    std::string data;
    ObjectWriter writer(data);
    writer.text("type", "message_delta");
    ObjectWriter(writer.member("delta"))
        .text("stop_reason", wire_name(*finish_reason_))
        .json("stop_sequence", stop_sequence_)
        .close();
    append_usage(usage, writer.member("usage"));
    writer.close();
    send("message_delta", std::move(data));
    send("message_stop", R"({"type":"message_stop"})");
  }

  void fail(const ApiError& error) override {
    order_.fail();
    if (want_events_) send("error", error_body(Api::kMessages, error));
  }

  std::vector<StreamEvent> take_events() override { return std::exchange(events_, {}); }

  [[nodiscard]] std::string body() const override {
    order_.check_body();
    std::string content = "[";
    for (const Block& block : blocks_) {
      if (&block != &blocks_.front()) content += ',';
      append_block(block, content);
    }
    content += ']';
    std::string out;
    append_message(content, usage_, out);
    return out;
  }

 private:
  void on_reasoning(std::string_view text) override { add_text(BlockType::kThinking, text); }
  void on_answer(std::string_view text) override { add_text(BlockType::kText, text); }

  void on_call_begin(std::string_view name) override {
    order_.check_choice(0);
    const std::string id = make_call_id(identity_.id, 0, n_calls_++);
    open_block({BlockType::kToolUse, {}, id, std::string(name)});
  }

  void on_call_arguments(std::string_view json) override {
    order_.check_choice(0);
    DI_CHECK(is_open_ && blocks_.back().type == BlockType::kToolUse);
    blocks_.back().text += json;
    if (!want_events_) return;
    std::string piece;
    send_delta(append_piece(json, piece));
  }

  void on_call_end() override { close_block(); }

  void add_text(BlockType type, std::string_view text) {
    order_.check_choice(0);
    if (!is_open_ || blocks_.back().type != type) open_block({type, {}, {}, {}});
    const std::string_view piece = append_piece(text, blocks_.back().text);
    if (want_events_) send_delta(piece);
  }

  void open_block(Block block) {
    close_block();
    blocks_.push_back(std::move(block));
    is_open_ = true;
    if (!want_events_) return;
    delta_head_ = head_of("content_block_delta") + R"(,"delta":)";
    delta_head_ += delta_head(blocks_.back().type);
    std::string data = head_of("content_block_start") + R"(,"content_block":)";
    append_block_start(blocks_.back(), data);
    data += '}';
    send("content_block_start", std::move(data));
    if (blocks_.size() == 1) send("ping", R"({"type":"ping"})");
  }

  void close_block() {
    if (!std::exchange(is_open_, false) || !want_events_) return;
    if (blocks_.back().type == BlockType::kThinking) {
      std::string data = head_of("content_block_delta") + R"(,"delta":)";
      ObjectWriter(data).text("type", "signature_delta").text("signature", identity_.id).close();
      data += '}';
      send("content_block_delta", std::move(data));
    }
    send("content_block_stop", head_of("content_block_stop") + '}');
  }

  void send_delta(std::string_view piece) {
    constexpr std::string_view kEnd = R"("}})";
    std::string data;
    data.reserve(delta_head_.size() + piece.size() + kEnd.size());
    data += delta_head_;
    data += piece;
    data += kEnd;
    send("content_block_delta", std::move(data));
  }

  /// An event of the last block, left open.
  [[nodiscard]] std::string head_of(std::string_view type) const {
    std::string data;
    ObjectWriter(data).text("type", type).number("index", static_cast<int64_t>(blocks_.size()) - 1);
    return data;
  }

  static void append_block_start(const Block& block, std::string& out) {
    ObjectWriter writer(out);
    switch (block.type) {
      case BlockType::kThinking:
        return writer.text("type", "thinking").text("thinking", "").text("signature", "").close();
      case BlockType::kText:
        return writer.text("type", "text").text("text", "").close();
      case BlockType::kToolUse:
        return writer.text("type", "tool_use")
            .text("id", block.id)
            .text("name", block.name)
            .json("input", "{}")
            .close();
    }
  }

  void append_block(const Block& block, std::string& out) const {
    ObjectWriter writer(out);
    switch (block.type) {
      case BlockType::kThinking:
        writer.text("type", "thinking").escaped("thinking", block.text).text("signature", identity_.id);
        break;
      case BlockType::kText:
        writer.text("type", "text").escaped("text", block.text);
        break;
      case BlockType::kToolUse:
        writer.text("type", "tool_use").text("id", block.id).text("name", block.name);
        append_input(block.text, writer.member("input"));
        break;
    }
    writer.close();
  }

  /// The message, of which message_start shows the part that is known at the beginning.
  void append_message(std::string_view content, const ResponseUsage& usage, std::string& out) const {
    ObjectWriter writer(out);
    writer.text("id", identity_.id)
        .text("type", "message")
        .text("role", "assistant")
        .text("model", identity_.model)
        .json("content", content)
        .json("stop_reason", finish_reason_ ? in_quotes(wire_name(*finish_reason_)) : "null")
        .json("stop_sequence", stop_sequence_);
    append_usage(usage, writer.member("usage"));
    writer.close();
  }

  void send(std::string_view name, std::string data) { events_.push_back({name, std::move(data)}); }

  ResponseIdentity identity_;
  std::vector<std::string> stop_;
  bool want_events_;
  CallOrder order_;
  std::vector<StreamEvent> events_;
  std::vector<Block> blocks_;
  bool is_open_ = false;    // the last block is
  std::string delta_head_;  // of the last block
  int32_t n_calls_ = 0;
  std::optional<FinishReason> finish_reason_;
  std::string stop_sequence_ = "null";  // JSON
  ResponseUsage usage_;
};

}  // namespace

std::unique_ptr<Response> make_messages_response(const ApiRequest& request, ResponseIdentity identity,
                                                 bool want_events) {
  return std::make_unique<MessagesResponse>(request, std::move(identity), want_events);
}

}  // namespace deepinfer::protocol
