#include "protocol/response.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/protocol/response_fold.h"
#include "text/json.h"

namespace deepinfer::protocol {
namespace {

/// One report of the parser.
struct Say {
  enum class What { kReasoning, kAnswer, kCall, kArguments, kCallEnd };
  What what;
  std::string text;
};
using Script = std::vector<Say>;

Say reasoning(std::string text) { return {Say::What::kReasoning, std::move(text)}; }
Say answer(std::string text) { return {Say::What::kAnswer, std::move(text)}; }
Say call(std::string name) { return {Say::What::kCall, std::move(name)}; }
Say arguments(std::string json) { return {Say::What::kArguments, std::move(json)}; }
Say call_end() { return {Say::What::kCallEnd, ""}; }

void say(const Say& what, OutputEvents& events) {
  switch (what.what) {
    case Say::What::kReasoning:
      return events.on_reasoning(what.text);
    case Say::What::kAnswer:
      return events.on_answer(what.text);
    case Say::What::kCall:
      events.on_call_begin(what.text);
      return;
    case Say::What::kArguments:
      return events.on_call_arguments(what.text);
    case Say::What::kCallEnd:
      return events.on_call_end();
  }
}

struct Outcome {
  BackendFinish finish = BackendFinish::kStop;
  std::optional<int32_t> stop_index;
};

constexpr ResponseUsage kPromptUsage{.n_prompt_tokens = 100, .n_cached_tokens = 40};
constexpr ResponseUsage kUsage{
    .n_prompt_tokens = 100, .n_cached_tokens = 40, .n_completion_tokens = 7, .n_reasoning_tokens = 3};

ApiRequest request_of(Api api) {
  ApiRequest request;
  request.api = api;
  request.model = "m";
  request.stop = {"first", "EN\"D"};
  request.stream = true;
  return request;
}

std::unique_ptr<Response> response_to(const ApiRequest& request, bool want_events = true) {
  return make_response(request, {.id = "id\"7", .model = "model-1", .created_s = 1234, .system_fingerprint = "fp"},
                       want_events);
}

struct Answered {
  std::vector<StreamEvent> events;
  Json body;
};

/// The whole of a response of one choice.
Answered run(const ApiRequest& request, const Script& script, const Outcome& outcome = {}, bool want_events = true) {
  const auto response = response_to(request, want_events);
  response->begin(kPromptUsage);
  for (const Say& what : script) say(what, response->choice(0));
  response->finish_choice(0, outcome.finish, outcome.stop_index);
  response->end(kUsage);
  return {response->take_events(), Json::parse(response->body())};
}

/// A body as fold_chat() makes it.
Json comparable_chat(Json body) {
  EXPECT_EQ(body["object"], "chat.completion");
  body.erase("object");
  for (Json& choice : body["choices"]) choice.erase("logprobs");
  return body;
}

/// The body that the events fold into, and the one that they must fold into.
std::pair<Json, Json> folded_and_own_body(const ApiRequest& request, const Answered& answered) {
  switch (request.api) {
    case Api::kChat:
      return {fold_chat(answered.events, request), comparable_chat(answered.body)};
    case Api::kMessages:
      return {fold_messages(answered.events), answered.body};
    case Api::kResponses:
      return {fold_responses(answered.events), answered.body};
  }
  return {};
}

const std::vector<Script>& scripts() {
  static const std::vector<Script> all = {
      {},
      {answer("Hello "), answer("world!")},
      {reasoning("still "), reasoning("thinking")},
      {reasoning("why"), answer("so")},
      {answer("\n\"q\"\\ \t\x01 é😀"), call("f"), arguments(R"({"k": )"), arguments(R"("a\nb", "n": 1.50})"),
       call_end()},
      {reasoning("need"), call("f"), arguments("{}"), call_end()},
      {call("a"), arguments("{"), arguments("}"), call_end(), call("b"), arguments(R"({"x": {bad})"), call_end(),
       call("c"), arguments("[1]"), call_end()},
      {answer("w"), call("cut"), arguments(R"({"k": "v)")},
      {call("cut")},
      {call(""), arguments("{}"), call_end(), call("")},
  };
  return all;
}

TEST(Response, FoldOfTheStreamIsTheBody) {
  const std::vector<Outcome> outcomes = {{BackendFinish::kStop, {}},
                                         {BackendFinish::kLength, {}},
                                         {BackendFinish::kContentFilter, {}},
                                         {BackendFinish::kNone, {}},
                                         {BackendFinish::kStop, 1}};
  for (const Api api : {Api::kChat, Api::kMessages, Api::kResponses}) {
    for (const bool flag : {false, true}) {
      ApiRequest request = request_of(api);
      request.conversation.thinking = flag;
      request.include_usage = flag;
      for (const Script& script : scripts()) {
        for (const Outcome& outcome : outcomes) {
          const Answered streamed = run(request, script, outcome);
          const auto [folded, body] = folded_and_own_body(request, streamed);
          EXPECT_EQ(folded, body);
          const Answered silent = run(request, script, outcome, false);
          EXPECT_TRUE(silent.events.empty());
          EXPECT_EQ(silent.body, streamed.body);
        }
      }
    }
  }
}

/// The events' names, without what repeats itself: runs of one name are one.
std::vector<std::string_view> outline(const std::vector<StreamEvent>& events) {
  std::vector<std::string_view> names;
  for (const StreamEvent& event : events)
    if (names.empty() || names.back() != event.name) names.push_back(event.name);
  return names;
}

TEST(Response, SseNamesAnEventOnlyIfItHasAName) {
  std::string out;
  append_sse({"ping", R"({"type":"ping"})"}, out);
  append_sse({"", "[DONE]"}, out);
  EXPECT_EQ(out, "event: ping\ndata: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n");
}

TEST(Response, FinishReasons) {
  struct Case {
    Outcome outcome;
    bool calls;
    std::string chat, messages, responses;
  };
  const std::vector<Case> cases = {
      {{BackendFinish::kStop, {}}, false, "stop", "end_turn", "completed"},
      {{BackendFinish::kStop, {}}, true, "tool_calls", "tool_use", "completed"},
      {{BackendFinish::kNone, {}}, true, "stop", "end_turn", "completed"},
      {{BackendFinish::kNone, 0}, false, "stop", "stop_sequence", "completed"},
      {{BackendFinish::kLength, 0}, false, "stop", "stop_sequence", "completed"},
      {{BackendFinish::kLength, {}}, true, "length", "max_tokens", "incomplete"},
      {{BackendFinish::kContentFilter, {}}, true, "content_filter", "refusal", "incomplete"}};
  for (const Case& c : cases) {
    const Script script = c.calls ? Script{call("f"), arguments("{}"), call_end()} : Script{answer("x")};
    EXPECT_EQ(run(request_of(Api::kChat), script, c.outcome).body["choices"][0]["finish_reason"], c.chat);
    const Json message = run(request_of(Api::kMessages), script, c.outcome).body;
    EXPECT_EQ(message["stop_reason"], c.messages);
    EXPECT_EQ(message["stop_sequence"], c.outcome.stop_index ? Json("first") : Json());
    const Json response = run(request_of(Api::kResponses), script, c.outcome).body;
    EXPECT_EQ(response["status"], c.responses);
    EXPECT_EQ(response["output"][0]["status"], c.responses);
  }
}

TEST(Response, CallWithAnEmptyNameIsACall) {
  for (const Script& script : {Script{call("")}, Script{call(""), call_end()}, Script{call(""), arguments("{}")}}) {
    const Json choice = run(request_of(Api::kChat), script).body["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "");
  }
}

TEST(Response, CallIdsAreUniqueAndRepeatable) {
  ApiRequest request = request_of(Api::kChat);
  request.n_choices = 3;
  const auto ids_of = [&] {
    const auto response = response_to(request);
    response->begin(kPromptUsage);
    for (int32_t i = 0; i < request.n_choices; ++i) {
      for (int n = 0; n < 120; ++n)
        for (const Say& what : {call("f"), call_end()}) say(what, response->choice(i));
      response->finish_choice(i, BackendFinish::kStop, {});
    }
    response->end(kUsage);
    std::vector<std::string> ids;
    const Json body = Json::parse(response->body());
    for (const Json& choice : body["choices"])
      for (const Json& entry : choice["message"]["tool_calls"]) ids.push_back(entry["id"]);
    return ids;
  };
  const std::vector<std::string> ids = ids_of();
  EXPECT_EQ(ids, ids_of());
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 360U);
  EXPECT_EQ(ids[7].substr(0, 8), "call_07_");
  EXPECT_EQ(ids[7].size(), 28U);
}

TEST(Response, ManySmallDeltasCostLinearBytes) {
  constexpr size_t kDeltas = 100'000;
  for (const Api api : {Api::kChat, Api::kMessages, Api::kResponses}) {
    const auto response = response_to(request_of(api));
    response->begin(kPromptUsage);
    size_t bytes = 0;
    const auto take = [&] {
      for (const StreamEvent& event : response->take_events()) bytes += event.data.size();
    };
    for (size_t i = 0; i < kDeltas; ++i) response->choice(0).on_answer("x");
    take();
    response->choice(0).on_call_begin("f");
    for (size_t i = 0; i < kDeltas; ++i) response->choice(0).on_call_arguments("1");
    response->finish_choice(0, BackendFinish::kLength, {});
    response->end(kUsage);
    take();
    EXPECT_LT(bytes, 2 * kDeltas * 256);
    EXPECT_GT(response->body().size(), kDeltas);
  }
}

TEST(ResponseDeathTest, BrokenCallOrder) {
  const auto response = response_to(request_of(Api::kMessages));
  EXPECT_DEATH(response->choice(0), "check failed");
  response->begin(kPromptUsage);
  EXPECT_DEATH(response->choice(1), "check failed");
  EXPECT_DEATH(response->choice(0).on_call_arguments("{}"), "check failed");
  EXPECT_DEATH(response->end(kUsage), "check failed");
  EXPECT_DEATH((void)response->body(), "check failed");
  OutputEvents& events = response->choice(0);
  response->finish_choice(0, BackendFinish::kStop, {});
  EXPECT_DEATH(events.on_answer("late"), "check failed");
}

// ---- Chat Completions (DC-37: which chunks there are, and their shape. fold_chat() checks the shape of each).

TEST(ChatResponse, UsageChunkOnlyOnRequest) {
  ApiRequest request = request_of(Api::kChat);
  for (const bool include_usage : {false, true}) {
    request.include_usage = include_usage;
    const Answered one_token = run(request, {answer("x")}, {BackendFinish::kLength, {}});
    EXPECT_EQ(fold_chat(one_token.events, request)["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(one_token.events.size(), include_usage ? 5U : 4U);  // role, text, finish, [usage], [DONE]
    const Json usage = {{"prompt_tokens", 100},
                        {"completion_tokens", 7},
                        {"total_tokens", 107},
                        {"prompt_tokens_details", {{"cached_tokens", 40}}},
                        {"completion_tokens_details", {{"reasoning_tokens", 3}}},
                        {"prompt_cache_hit_tokens", 40},
                        {"prompt_cache_miss_tokens", 60}};
    EXPECT_EQ(one_token.body["usage"], usage);
  }
}

TEST(ChatResponse, ChoicesInterleave) {
  for (const bool include_usage : {false, true}) {
    ApiRequest request = request_of(Api::kChat);
    request.n_choices = 2;
    request.include_usage = include_usage;
    const auto response = response_to(request);
    response->begin(kPromptUsage);
    say(answer("a"), response->choice(1));
    say(reasoning("r"), response->choice(0));
    for (int32_t i : {0, 1}) {
      say(call("f" + std::to_string(i)), response->choice(i));
      say(arguments("{"), response->choice(i));
    }
    say(arguments("}"), response->choice(0));
    response->finish_choice(1, BackendFinish::kLength, {});
    say(call_end(), response->choice(0));
    response->finish_choice(0, BackendFinish::kStop, {});
    response->end(kUsage);
    const Json body = Json::parse(response->body());
    EXPECT_EQ(fold_chat(response->take_events(), request), comparable_chat(body));
    EXPECT_EQ(body["choices"][0]["message"]["tool_calls"][0]["function"], Json({{"name", "f0"}, {"arguments", "{}"}}));
    EXPECT_EQ(body["choices"][0]["finish_reason"], "tool_calls");
    EXPECT_EQ(body["choices"][1]["message"]["tool_calls"][0]["function"], Json({{"name", "f1"}, {"arguments", "{"}}));
    EXPECT_EQ(body["choices"][1]["finish_reason"], "length");
  }
}

TEST(ChatResponse, FailureIsOneErrorFrameWithoutFinish) {
  const auto response = response_to(request_of(Api::kChat));
  response->begin(kPromptUsage);
  say(answer("x"), response->choice(0));
  response->fail({.message = "device lost", .param = "", .status = 500});
  const std::vector<StreamEvent> events = response->take_events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_TRUE(parse_event(events[1])["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(parse_event(events[2])["error"]["message"], "device lost");
}

TEST(ChatResponse, FirstDeltaSaysWhetherThereIsReasoning) {
  ApiRequest request = request_of(Api::kChat);
  const auto first_delta = [&] { return parse_event(run(request, {}).events[0])["choices"][0]["delta"]; };
  EXPECT_EQ(first_delta(), Json({{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", ""}}));
  Message& prefix = request.conversation.messages.emplace_back();
  prefix.role = Role::kAssistant;
  prefix.content = {{"Old pond", {}}};
  prefix.is_prefix = true;
  EXPECT_EQ(first_delta(), Json({{"role", "assistant"}, {"content", ""}, {"reasoning_content", nullptr}}));
  request.conversation.thinking = false;
  EXPECT_EQ(first_delta(), Json({{"role", "assistant"}, {"content", ""}}));
}

// ---- Messages (DC-38: one block at a time; DC-40: usage is a partition).

TEST(MessagesResponse, EachCallHasItsBlock) {
  const Answered all = run(request_of(Api::kMessages),
                           {reasoning("t"), answer("x"), call("a"), arguments(R"({"n": 1})"), call_end(), call("b"),
                            arguments("{}"), call_end(), call("c"), arguments(R"({"k": "v", "k": "w"})"), call_end()});
  EXPECT_EQ(fold_messages(all.events), all.body);
  const Json& content = all.body["content"];
  ASSERT_EQ(content.size(), 5U);
  EXPECT_EQ(content[0], Json({{"type", "thinking"}, {"thinking", "t"}, {"signature", "id\"7"}}));
  EXPECT_EQ(content[1], Json({{"type", "text"}, {"text", "x"}}));
  EXPECT_EQ(content[2]["input"], Json({{"n", 1}}));
  EXPECT_EQ(content[4]["input"], Json({{"k", "w"}}));
  EXPECT_EQ(all.body["stop_reason"], "tool_use");
}

TEST(MessagesResponse, NothingSaidIsNoBlock) {
  const Answered empty = run(request_of(Api::kMessages), {});
  EXPECT_EQ(outline(empty.events), (std::vector<std::string_view>{"message_start", "message_delta", "message_stop"}));
  EXPECT_EQ(empty.body["content"], Json::array());
}

TEST(MessagesResponse, CallThatWasCutHasNoInput) {
  const Answered cut =
      run(request_of(Api::kMessages), {call("f"), arguments(R"({"k": )")}, {BackendFinish::kLength, {}});
  EXPECT_EQ(fold_messages(cut.events), cut.body);
  EXPECT_EQ(cut.body["content"][0]["input"], Json::object());
  EXPECT_EQ(cut.body["stop_reason"], "max_tokens");
}

TEST(MessagesResponse, NumbersKeepTheirSpelling) {
  const auto response = response_to(request_of(Api::kMessages), false);
  response->begin(kPromptUsage);
  for (const Say& what : {call("f"), arguments(R"({"x": 1.50, "y": 12345678901234567890123})"), call_end()})
    say(what, response->choice(0));
  response->finish_choice(0, BackendFinish::kStop, {});
  response->end(kUsage);
  EXPECT_NE(response->body().find(R"("input":{"x":1.50,"y":12345678901234567890123})"), std::string::npos);
}

TEST(MessagesResponse, UsageIsAPartition) {
  const Answered all = run(request_of(Api::kMessages), {answer("x")});
  const Json start = parse_event(all.events[0])["message"]["usage"];
  const Json delta = parse_event(all.events[all.events.size() - 2])["usage"];
  for (const Json& usage : {start, delta, all.body["usage"]}) {
    EXPECT_EQ(usage["input_tokens"], 60);
    EXPECT_EQ(usage["cache_read_input_tokens"], 40);
    EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
  }
  EXPECT_EQ(delta, all.body["usage"]);
  EXPECT_EQ(delta["output_tokens"], 7);
}

TEST(MessagesResponse, FailureIsAnErrorEvent) {
  const auto response = response_to(request_of(Api::kMessages));
  response->begin(kPromptUsage);
  say(answer("x"), response->choice(0));
  response->fail({.message = "device lost", .param = "", .status = 500});
  const std::vector<StreamEvent> events = response->take_events();
  EXPECT_EQ(events.back().name, "error");
  EXPECT_EQ(parse_event(events.back())["error"]["message"], "device lost");
  EXPECT_EQ(outline(events), (std::vector<std::string_view>{"message_start", "content_block_start", "ping",
                                                            "content_block_delta", "error"}));
}

// ---- Responses (DC-41: the sequence of events. fold_responses() checks the rest of it).

TEST(ResponsesResponse, EventsOfATextItem) {
  const Answered all = run(request_of(Api::kResponses), {answer("a"), answer("b")});
  EXPECT_EQ(outline(all.events),
            (std::vector<std::string_view>{"response.created", "response.in_progress", "response.output_item.added",
                                           "response.content_part.added", "response.output_text.delta",
                                           "response.output_text.done", "response.content_part.done",
                                           "response.output_item.done", "response.completed"}));
  const Json message = {
      {"type", "message"},
      {"id", "msg_id\"7_0"},
      {"status", "completed"},
      {"role", "assistant"},
      {"phase", "final_answer"},
      {"content",
       {{{"type", "output_text"}, {"annotations", Json::array()}, {"logprobs", Json::array()}, {"text", "ab"}}}}};
  EXPECT_EQ(all.body["output"], Json::array({message}));
  const Json usage = {{"input_tokens", 100},
                      {"input_tokens_details", {{"cached_tokens", 40}}},
                      {"output_tokens", 7},
                      {"output_tokens_details", {{"reasoning_tokens", 3}}},
                      {"total_tokens", 107}};
  EXPECT_EQ(all.body["usage"], usage);
}

TEST(ResponsesResponse, SplitsNamesOfDeclaredNamespacesOnly) {
  ApiRequest request = request_of(Api::kResponses);
  request.conversation.tools = {{"space::g", "", std::nullopt, false}};
  const Answered all = run(request, {call("space::g"), call_end(), call("a::b"), call_end(), call("::"), call_end()});
  EXPECT_EQ(all.body["output"][0]["namespace"], "space");
  EXPECT_EQ(all.body["output"][0]["name"], "g");
  EXPECT_EQ(all.body["output"][1]["name"], "a::b");
  EXPECT_EQ(all.body["output"][2]["name"], "::");
  EXPECT_FALSE(all.body["output"][1].contains("namespace"));
}

TEST(ResponsesResponse, ItemsOfReasoningTextAndTwoCalls) {
  ApiRequest request = request_of(Api::kResponses);
  request.conversation.tools = {{"space::g::h", "", std::nullopt, false}};
  const Answered all = run(request,
                           {reasoning("r"), answer("I look."), call("f"), arguments("{}"), call_end(),
                            call("space::g::h"), arguments(R"({"x": )")},
                           {BackendFinish::kLength, {}});
  EXPECT_EQ(fold_responses(all.events), all.body);
  const Json& output = all.body["output"];
  ASSERT_EQ(output.size(), 4U);
  EXPECT_EQ(output[0]["id"], "rs_id\"7_0");
  EXPECT_EQ(output[0]["content"][0], Json({{"type", "reasoning_text"}, {"text", "r"}}));
  EXPECT_EQ(output[1]["phase"], "commentary");
  EXPECT_EQ(output[2]["id"], "fc_id\"7_2");
  EXPECT_EQ(output[2]["status"], "completed");
  EXPECT_FALSE(output[2].contains("namespace"));
  EXPECT_EQ(output[3]["namespace"], "space");
  EXPECT_EQ(output[3]["name"], "g::h");
  EXPECT_EQ(output[3]["arguments"], R"({"x": )");
  EXPECT_EQ(output[3]["status"], "incomplete");
  EXPECT_NE(output[2]["call_id"], output[3]["call_id"]);
  EXPECT_EQ(all.body["incomplete_details"], Json({{"reason", "max_output_tokens"}}));
}

TEST(ResponsesResponse, ContentFilterIsIncomplete) {
  const Answered all = run(request_of(Api::kResponses), {}, {BackendFinish::kContentFilter, {}});
  EXPECT_EQ(all.body["incomplete_details"], Json({{"reason", "content_filter"}}));
  EXPECT_EQ(all.events.back().name, "response.incomplete");
}

TEST(ResponsesResponse, FailureAfterThreeTokens) {
  const auto response = response_to(request_of(Api::kResponses));
  response->begin(kPromptUsage);
  for (int i = 0; i < 3; ++i) say(answer("x"), response->choice(0));
  response->fail({.message = "device \"lost\"", .param = "", .status = 500});
  const Json failed = fold_responses(response->take_events());
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_EQ(failed["error"], Json({{"code", "server_error"}, {"message", "device \"lost\""}}));
  EXPECT_EQ(failed["output"][0]["status"], "incomplete");
  EXPECT_TRUE(failed["usage"].is_null());
}

TEST(ResponsesResponse, RepeatsTheSettings) {
  ApiRequest request = request_of(Api::kResponses);
  EXPECT_EQ(run(request, {}).body["tool_choice"], "auto");
  Result<json::Value> echo =
      json::parse(R"({"temperature": 0.70, "instructions": "Be\nbrief", "tools": [{"type": "x"}]})");
  ASSERT_TRUE(echo.ok());
  request.echo = *std::move(echo);
  const Answered all = run(request, {});
  EXPECT_EQ(all.body["temperature"], 0.7);
  EXPECT_EQ(all.body["instructions"], "Be\nbrief");
  EXPECT_EQ(all.body["tools"], Json::parse(R"([{"type": "x"}])"));
  EXPECT_EQ(all.body["parallel_tool_calls"], true);
  EXPECT_EQ(parse_event(all.events[0])["response"]["instructions"], "Be\nbrief");
}

}  // namespace
}  // namespace deepinfer::protocol
