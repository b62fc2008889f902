// Responses (OpenAI): a response of items, one open at a time. Every event is numbered; what an item's deltas say is said
// again, whole, by the events that close it and by the last event.
#include "protocol/responses_response.h"

#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "protocol/response_common.h"
#include "text/json.h"

namespace deepinfer::protocol {

namespace {

constexpr std::string_view kInProgress = "in_progress";
constexpr std::string_view kCompleted = "completed";
constexpr std::string_view kIncomplete = "incomplete";
constexpr std::string_view kFailed = "failed";

enum class ItemType : uint8_t { kReasoning, kMessage, kCall };

struct Item {
  ItemType type = ItemType::kMessage;
  std::string id;
  std::string text;            // escaped: the reasoning, the answer, the arguments
  std::string call_id;         // kCall
  std::string name;            // kCall
  std::string tool_namespace;  // kCall: empty for a tool outside of namespaces
  std::string encrypted;       // kReasoning: what stands where OpenAI has encrypted reasoning; nobody reads it back
  std::string_view status = kInProgress;
  bool is_commentary = false;  // kMessage: calls follow it. Known when it closes; until then it may be the answer
};

/// What differs between the texts of reasoning and answer: event names, the type of their part, and its further members.
struct TextNames {
  std::string_view delta;
  std::string_view done;
  std::string_view part_head;
  std::string_view logprobs;
};

const TextNames& text_names(ItemType type) {
  static constexpr TextNames kReasoning{"response.reasoning_text.delta", "response.reasoning_text.done",
                                        R"("type":"reasoning_text")", ""};
  static constexpr TextNames kMessage{"response.output_text.delta", "response.output_text.done",
                                      R"("type":"output_text","annotations":[],"logprobs":[])", R"(,"logprobs":[])"};
  return type == ItemType::kReasoning ? kReasoning : kMessage;
}

std::string part_json(ItemType type, std::string_view text) {
  std::string out = "{";
  out += text_names(type).part_head;
  out += R"(,"text":")";
  out += text;
  out += R"("})";
  return out;
}

constexpr std::string_view kNamespaceSeparator = "::";

/// "space::tool" is how the prompt calls a tool that was declared in a namespace. No other name holds the separator.
std::unordered_set<std::string> namespaced_tools(const Conversation& conversation) {
  std::unordered_set<std::string> names;
  for (const ToolDefinition& tool : conversation.tools) {
    if (tool.name.find(kNamespaceSeparator) != std::string::npos) names.insert(tool.name);
  }
  return names;
}

/// What a response says of its settings when the request did not.
struct Setting {
  std::string_view key;
  std::string_view value;
};
constexpr std::array<Setting, 23> kSettings{{
    {"background", "false"},
    {"frequency_penalty", "0"},
    {"instructions", "null"},
    {"max_output_tokens", "null"},
    {"max_tool_calls", "null"},
    {"metadata", "{}"},
    {"parallel_tool_calls", "true"},
    {"presence_penalty", "0"},
    {"previous_response_id", "null"},
    {"prompt_cache_key", "null"},
    {"prompt_cache_retention", "null"},
    {"reasoning", R"({"effort":null,"summary":null})"},
    {"safety_identifier", "null"},
    {"service_tier", R"("default")"},
    {"store", "false"},
    {"temperature", "1"},
    {"text", R"({"format":{"type":"text"}})"},
    {"tool_choice", R"("auto")"},
    {"tools", "[]"},
    {"top_logprobs", "0"},
    {"top_p", "1"},
    {"truncation", R"("disabled")"},
    {"user", "null"},
}};

/// The settings as members, each with a comma in front.
std::string settings_json(const json::Value& echo) {
  std::string out;
  for (const Setting& setting : kSettings) {
    out += ",\"";
    out += setting.key;
    out += "\":";
    const json::Value* echoed = echo.is(json::Kind::kObject) ? echo.find(setting.key) : nullptr;
    if (echoed != nullptr)
      json::append(*echoed, json::Style::kCompact, out);
    else
      out += setting.value;
  }
  return out;
}

std::string usage_json(const ResponseUsage& usage) {
  std::string out;
  ObjectWriter writer(out);
  writer.number("input_tokens", usage.n_prompt_tokens);
  ObjectWriter(writer.member("input_tokens_details")).number("cached_tokens", usage.n_cached_tokens).close();
  writer.number("output_tokens", usage.n_completion_tokens);
  ObjectWriter(writer.member("output_tokens_details")).number("reasoning_tokens", usage.n_reasoning_tokens).close();
  writer.number("total_tokens", usage.n_prompt_tokens + usage.n_completion_tokens).close();
  return out;
}

/// The item as its current status shows it: content is there when it is over.
void append_item(const Item& item, std::string& out) {
  const bool is_over = item.status != kInProgress;
  ObjectWriter writer(out);
  switch (item.type) {
    case ItemType::kReasoning:
      writer.text("type", "reasoning").text("id", item.id).text("status", item.status);
      break;
    case ItemType::kMessage:
      writer.text("type", "message").text("id", item.id).text("status", item.status).text("role", "assistant");
      writer.text("phase", item.is_commentary ? "commentary" : "final_answer");
      break;
    case ItemType::kCall:
      writer.text("type", "function_call").text("id", item.id).text("status", item.status);
      writer.text("call_id", item.call_id).text("name", item.name);
      if (!item.tool_namespace.empty()) writer.text("namespace", item.tool_namespace);
      return writer.escaped("arguments", is_over ? item.text : std::string_view()).close();
  }
  writer.json("content", is_over ? '[' + part_json(item.type, item.text) + ']' : "[]");
  if (item.type == ItemType::kReasoning) writer.json("summary", "[]").text("encrypted_content", item.encrypted);
  writer.close();
}

class ResponsesResponse final : public Response, private OutputEvents {
 public:
  ResponsesResponse(const ApiRequest& request, ResponseIdentity identity, bool want_events)
      : identity_(std::move(identity)),
        want_events_(want_events),
        settings_(settings_json(request.echo)),
        namespaced_tools_(namespaced_tools(request.conversation)),
        order_(1) {}

  void begin(const ResponseUsage& /*usage*/) override {
    order_.begin();
    send_response("response.created");
    send_response("response.in_progress");
  }

  OutputEvents& choice(int32_t index) override {
    order_.check_choice(index);
    return *this;
  }

  void finish_choice(int32_t index, BackendFinish finish, std::optional<int32_t> stop_index) override {
    order_.finish_choice(index);
    finish_reason_ = finish_reason_of(finish, stop_index.has_value(), n_calls_ > 0);
    close_item(is_cut() ? kIncomplete : kCompleted);
  }

  void end(const ResponseUsage& usage) override {
    order_.end();
    usage_ = usage_json(usage);
    status_ = is_cut() ? kIncomplete : kCompleted;
    send_response(is_cut() ? "response.incomplete" : "response.completed");
  }

  void fail(const ApiError& error) override {
    order_.fail();
    close_item(kIncomplete);  // so that each added item is done once
    status_ = kFailed;
    error_.clear();
    ObjectWriter(error_)
        .text("code", error.status < 500 ? "invalid_prompt" : "server_error")
        .text("message", error.message)
        .close();
    send_response("response.failed");
  }

  std::vector<StreamEvent> take_events() override { return std::exchange(events_, {}); }

  [[nodiscard]] std::string body() const override {
    order_.check_body();
    return response_json();
  }

 private:
  void on_reasoning(std::string_view text) override { add_text(ItemType::kReasoning, text); }
  void on_answer(std::string_view text) override { add_text(ItemType::kMessage, text); }

  void on_call_begin(std::string_view name) override {
    order_.check_choice(0);
    Item call = new_item(ItemType::kCall, "fc_");
    call.call_id = make_call_id(identity_.id, 0, n_calls_++);
    call.name = name;
    if (namespaced_tools_.contains(call.name)) {
      const size_t at = name.find(kNamespaceSeparator);
      call.tool_namespace = name.substr(0, at);
      call.name = name.substr(at + kNamespaceSeparator.size());
    }
    open_item(std::move(call));
  }

  void on_call_arguments(std::string_view json) override {
    order_.check_choice(0);
    DI_CHECK(is_open_ && items_.back().type == ItemType::kCall);
    send_delta(append_piece(json, items_.back().text));
  }

  /// The item stays open: if it is the last one, its status depends on how the response finishes.
  void on_call_end() override {}

  void add_text(ItemType type, std::string_view text) {
    order_.check_choice(0);
    if (!is_open_ || items_.back().type != type)
      open_item(new_item(type, type == ItemType::kReasoning ? "rs_" : "msg_"));
    send_delta(append_piece(text, items_.back().text));
  }

  [[nodiscard]] Item new_item(ItemType type, std::string_view prefix) const {
    Item item;
    item.type = type;
    const std::string index = std::to_string(items_.size());
    item.id = std::string(prefix) + identity_.id + '_' + index;
    if (type == ItemType::kReasoning) item.encrypted = identity_.id + '-' + index;
    return item;
  }

  void open_item(Item item) {
    if (is_open_) {
      items_.back().is_commentary = item.type == ItemType::kCall;
      close_item(kCompleted);
    }
    items_.push_back(std::move(item));
    is_open_ = true;
    if (!want_events_) return;
    send_item("response.output_item.added");
    if (items_.back().type != ItemType::kCall) send_part("response.content_part.added", "");
    set_delta_frame();
  }

  /// Closes the open item, if any.
  void close_item(std::string_view status) {
    if (!std::exchange(is_open_, false)) return;
    Item& item = items_.back();
    item.status = status;
    if (!want_events_) return;
    if (item.type == ItemType::kCall) {
      std::string data = head_of("response.function_call_arguments.done");
      append_place(data);
      data += R"(,"name":)" + in_quotes(item.name);
      data += R"(,"arguments":")" + item.text + '"';
      send("response.function_call_arguments.done", std::move(data));
    } else {
      const TextNames& names = text_names(item.type);
      std::string data = head_of(names.done);
      append_place(data);
      data += R"(,"content_index":0)";
      data += names.logprobs;
      data += R"(,"text":")" + item.text + '"';
      send(names.done, std::move(data));
      send_part("response.content_part.done", item.text);
    }
    send_item("response.output_item.done");
  }

  void set_delta_frame() {
    const Item& item = items_.back();
    const bool is_call = item.type == ItemType::kCall;
    delta_name_ = is_call ? "response.function_call_arguments.delta" : text_names(item.type).delta;
    delta_head_ = head_of(delta_name_);
    append_place(delta_head_);
    if (!is_call) {
      delta_head_ += R"(,"content_index":0)";
      delta_head_ += text_names(item.type).logprobs;
    }
    delta_head_ += R"(,"delta":")";
  }

  void send_delta(std::string_view piece) {
    if (!want_events_) return;
    constexpr size_t kEndBytes = 48;  // the closing quote and the sequence number
    std::string data;
    data.reserve(delta_head_.size() + piece.size() + kEndBytes);
    data += delta_head_;
    data += piece;
    data += '"';
    send(delta_name_, std::move(data));
  }

  /// The last item as it stands.
  void send_item(std::string_view name) {
    std::string data = head_of(name);
    data += R"(,"output_index":)" + std::to_string(items_.size() - 1);
    data += R"(,"item":)";
    append_item(items_.back(), data);
    send(name, std::move(data));
  }

  void send_part(std::string_view name, std::string_view text) {
    std::string data = head_of(name);
    append_place(data);
    data += R"(,"content_index":0,"part":)";
    data += part_json(items_.back().type, text);
    send(name, std::move(data));
  }

  void send_response(std::string_view name) {
    if (!want_events_) return;
    std::string data = head_of(name);
    data += R"(,"response":)";
    data += response_json();
    send(name, std::move(data));
  }

  /// An event, left open.
  static std::string head_of(std::string_view name) {
    std::string data;
    ObjectWriter(data).text("type", name);
    return data;
  }

  /// Which item an event is about: the last one.
  void append_place(std::string& data) const {
    data += R"(,"item_id":)";
    json::append_quoted(items_.back().id, data);
    data += R"(,"output_index":)" + std::to_string(items_.size() - 1);
  }

  /// Numbers the event, closes it and queues it.
  void send(std::string_view name, std::string data) {
    data += R"(,"sequence_number":)";
    data += std::to_string(n_events_++);
    data += '}';
    events_.push_back({name, std::move(data)});
  }

  [[nodiscard]] std::string response_json() const {
    std::string out;
    ObjectWriter writer(out);
    writer.text("id", identity_.id)
        .text("object", "response")
        .number("created_at", identity_.created_s)
        .text("status", status_)
        .json("error", error_);
    if (status_ == kIncomplete)
      ObjectWriter(writer.member("incomplete_details"))
          .text("reason", finish_reason_ == FinishReason::kLength ? "max_output_tokens" : "content_filter")
          .close();
    else
      writer.json("incomplete_details", "null");
    writer.text("model", identity_.model).member("output") += '[';
    for (const Item& item : items_) {
      if (&item != &items_.front()) out += ',';
      append_item(item, out);
    }
    out += ']';
    writer.json("usage", usage_);
    out += settings_;
    writer.close();
    return out;
  }

  [[nodiscard]] bool is_cut() const {
    return finish_reason_ == FinishReason::kLength || finish_reason_ == FinishReason::kContentFilter;
  }

  ResponseIdentity identity_;
  bool want_events_;
  std::string settings_;  // members of the response object
  const std::unordered_set<std::string> namespaced_tools_;
  CallOrder order_;
  std::vector<StreamEvent> events_;
  int64_t n_events_ = 0;
  std::vector<Item> items_;
  bool is_open_ = false;         // the last item is
  std::string_view delta_name_;  // of the last item, like the next
  std::string delta_head_;
  int32_t n_calls_ = 0;
  FinishReason finish_reason_ = FinishReason::kStop;
  std::string_view status_ = kInProgress;
  std::string error_ = "null";  // JSON
  std::string usage_ = "null";  // JSON
};

}  // namespace

std::unique_ptr<Response> make_responses_response(const ApiRequest& request, ResponseIdentity identity,
                                                  bool want_events) {
  return std::make_unique<ResponsesResponse>(request, std::move(identity), want_events);
}

}  // namespace deepinfer::protocol
