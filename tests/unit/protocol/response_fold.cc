#include "tests/unit/protocol/response_fold.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace deepinfer::protocol {

Json parse_event(const StreamEvent& event) {
  EXPECT_EQ(event.data.find('\n'), std::string::npos);
  Json json = Json::parse(event.data);
  EXPECT_EQ(json.value("type", ""), event.name);
  return json;
}

namespace {

void fold_delta(const Json& delta, Json& message) {
  for (const char* key : {"role", "content", "reasoning_content"}) {
    if (!delta.contains(key) || delta[key].is_null()) continue;
    message[key] = message.value(key, "") + delta[key].get<std::string>();
  }
  for (Json entry : delta.value("tool_calls", Json::array())) {
    const size_t index = entry["index"];
    entry.erase("index");
    Json& calls = message["tool_calls"];
    if (entry.contains("id")) {
      EXPECT_EQ(index, calls.size());
      EXPECT_EQ(entry["function"]["arguments"], "");
      calls.push_back(std::move(entry));
    } else {
      ASSERT_EQ(index + 1, calls.size()) << "one call at a time";
      Json& all = calls.back()["function"]["arguments"];
      all = all.get<std::string>() + entry["function"]["arguments"].get<std::string>();
    }
  }
}

/// Reads a chunk's choice into `choices`, which are those of the body.
void fold_choice(const Json& choice, Json& choices) {
  const size_t index = choice["index"];
  ASSERT_LT(index, choices.size());
  Json& folded = choices[index];
  EXPECT_TRUE(folded["finish_reason"].is_null()) << "a delta after the finish";
  EXPECT_EQ(choice["delta"].contains("role"), folded["message"].empty()) << "the role comes once, first";
  fold_delta(choice["delta"], folded["message"]);
  folded["finish_reason"] = choice["finish_reason"];
}

}  // namespace

Json fold_chat(std::vector<StreamEvent> events, const ApiRequest& request) {
  Json body;
  for (int32_t i = 0; i < request.n_choices; ++i)
    body["choices"].push_back({{"index", i}, {"message", Json::object()}, {"finish_reason", nullptr}});
  EXPECT_EQ(events.back().data, "[DONE]");
  events.pop_back();
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].name, "");
    const Json chunk = parse_event(events[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    for (const char* key : {"id", "created", "model", "system_fingerprint"}) {
      if (i == 0) body[key] = chunk[key];
      EXPECT_EQ(chunk[key], body[key]);
    }
    const bool is_last = i + 1 == events.size();
    EXPECT_EQ(chunk.contains("usage"), is_last || request.include_usage);
    EXPECT_EQ(chunk.value("usage", Json()).is_object(), is_last) << "null or absent before the end";
    if (is_last) body["usage"] = chunk["usage"];
    EXPECT_EQ(chunk["choices"].size(), is_last && request.include_usage ? 0U : 1U);
    for (const Json& choice : chunk["choices"]) fold_choice(choice, body["choices"]);
  }
  return body;
}

namespace {

/// Reads the events of one open block into `block`; the delta's type must fit.
void fold_block_delta(const Json& delta, Json& block, std::string& input) {
  const std::string type = delta["type"];
  if (type == "input_json_delta") {
    EXPECT_EQ(block["type"], "tool_use");
    input += delta["partial_json"];
    return;
  }
  const std::string key = type.substr(0, type.rfind("_delta"));
  EXPECT_EQ(block["type"], key == "signature" ? "thinking" : key);
  EXPECT_EQ(block.value("signature", ""), "") << "the signature is the last of a block";
  block[key] = block[key].get<std::string>() + delta[key].get<std::string>();
}

}  // namespace

Json fold_messages(const std::vector<StreamEvent>& events) {
  EXPECT_EQ(events.front().name, "message_start");
  Json body = parse_event(events.front())["message"];
  EXPECT_EQ(body["content"], Json::array());
  EXPECT_EQ(body["usage"]["output_tokens"], 0);
  bool is_open = false;
  std::string input;
  for (size_t i = 1; i < events.size(); ++i) {
    const Json event = parse_event(events[i]);
    const std::string_view name = events[i].name;
    Json& blocks = body["content"];
    if (name == "ping") continue;
    if (name == "content_block_start") {
      EXPECT_FALSE(std::exchange(is_open, true)) << "one block at a time";
      EXPECT_EQ(event["index"], blocks.size());
      blocks.push_back(event["content_block"]);
      input.clear();
    } else if (name == "content_block_delta") {
      EXPECT_TRUE(is_open);
      EXPECT_EQ(event["index"], blocks.size() - 1);
      fold_block_delta(event["delta"], blocks.back(), input);
    } else if (name == "content_block_stop") {
      EXPECT_TRUE(std::exchange(is_open, false));
      EXPECT_EQ(event["index"], blocks.size() - 1);
      EXPECT_NE(blocks.back().value("signature", "none"), "") << "a thinking block ends with its signature";
      const Json value = Json::parse(input, nullptr, false);
      if (value.is_object()) blocks.back()["input"] = value;
    } else if (name == "message_delta") {
      EXPECT_FALSE(is_open);
      body.update(event["delta"]);
      body["usage"] = event["usage"];
    } else {
      EXPECT_EQ(name, "message_stop");
      EXPECT_EQ(i + 1, events.size());
    }
  }
  EXPECT_EQ(events.back().name, "message_stop");
  for (const Json& block : body["content"]) EXPECT_NE(block.value("text", block.value("thinking", "x")), "") << "empty";
  return body;
}

namespace {

/// The item that is being streamed, with what its deltas said so far.
struct OpenItem {
  Json added;
  std::string text;
  bool has_part = false;
  bool text_done = false;
  bool part_done = false;
};

void check_item_event(const std::string& name, const Json& event, OpenItem& item, size_t output_index) {
  EXPECT_EQ(event["output_index"], output_index);
  EXPECT_EQ(event["item_id"], item.added["id"]);
  const bool is_call = item.added["type"] == "function_call";
  EXPECT_EQ(event.value("content_index", -1), is_call ? -1 : 0);
  const std::string text_type = item.added["type"] == "message" ? "output_text" : "reasoning_text";
  const std::string texts = "response." + (is_call ? "function_call_arguments" : text_type);
  if (name == "response.content_part.added") {
    EXPECT_FALSE(std::exchange(item.has_part, true));
    EXPECT_EQ(event["part"]["type"], text_type);
    EXPECT_EQ(event["part"]["text"], "");
  } else if (name == texts + ".delta") {
    EXPECT_EQ(item.has_part, !is_call);
    EXPECT_FALSE(item.text_done);
    item.text += event["delta"];
  } else if (name == texts + ".done") {
    EXPECT_FALSE(std::exchange(item.text_done, true));
    EXPECT_EQ(event[is_call ? "arguments" : "text"], item.text);
  } else {
    EXPECT_EQ(name, "response.content_part.done");
    EXPECT_TRUE(item.text_done);
    EXPECT_FALSE(std::exchange(item.part_done, true));
    EXPECT_EQ(event["part"]["text"], item.text);
  }
}

void check_done_item(const Json& done, const OpenItem& item) {
  EXPECT_TRUE(item.text_done);
  for (const char* key : {"type", "id", "call_id", "name", "namespace", "role", "encrypted_content"})
    EXPECT_EQ(done.contains(key) ? done[key] : Json(), item.added.contains(key) ? item.added[key] : Json());
  EXPECT_EQ(item.added["status"], "in_progress");
  EXPECT_NE(done["status"], "in_progress");
  if (done["type"] == "function_call") {
    EXPECT_EQ(item.added["arguments"], "");
    EXPECT_EQ(done["arguments"], item.text);
    return;
  }
  EXPECT_TRUE(item.part_done);
  EXPECT_EQ(item.added["content"], Json::array());
  EXPECT_EQ(done["content"].size(), 1U);
  EXPECT_EQ(done["content"][0]["text"], item.text);
}

}  // namespace

Json fold_responses(const std::vector<StreamEvent>& events) {
  const std::set<std::string> terminal = {"response.completed", "response.incomplete", "response.failed"};
  Json output = Json::array();
  std::optional<OpenItem> open;
  Json last;
  for (size_t i = 0; i < events.size(); ++i) {
    const Json event = parse_event(events[i]);
    const std::string name(events[i].name);
    EXPECT_EQ(event["sequence_number"], i);
    EXPECT_EQ(name == "response.created", i == 0);
    EXPECT_EQ(name == "response.in_progress", i == 1);
    EXPECT_EQ(terminal.contains(name), i + 1 == events.size()) << name;
    if (event.contains("response")) {
      last = event["response"];
      EXPECT_EQ("response." + last["status"].get<std::string>(), i == 0 ? "response.in_progress" : name);
    } else if (name == "response.output_item.added") {
      EXPECT_FALSE(open.has_value()) << "one item at a time";
      EXPECT_EQ(event["output_index"], output.size());
      open = OpenItem{.added = event["item"], .text = ""};
    } else if (!open) {
      ADD_FAILURE() << name << " outside of an item";
    } else if (name == "response.output_item.done") {
      EXPECT_EQ(event["output_index"], output.size());
      check_done_item(event["item"], *open);
      output.push_back(event["item"]);
      open.reset();
    } else {
      check_item_event(name, event, *open, output.size());
    }
  }
  EXPECT_FALSE(open.has_value());
  EXPECT_EQ(last["output"], output);
  return last;
}

}  // namespace deepinfer::protocol
