#include "protocol/request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace deepinfer::protocol {
namespace {

constexpr std::string_view kUser = R"({"role":"user","content":"hi"})";

/// A body with the settings and, unless they name it, one message of the user.
std::string body_of(Api api, std::string_view settings) {
  const std::string_view key = api == Api::kResponses ? "input" : "messages";
  std::string body = R"({"model":"any")";
  if (!settings.empty()) body.append(",").append(settings);
  if (settings.find('"' + std::string(key) + '"') == std::string_view::npos)
    body.append(",\"").append(key).append("\":[").append(kUser).append("]");
  return body + '}';
}

ApiRequest accepted(Api api, std::string_view settings) {
  auto request = read_request(api, body_of(api, settings));
  EXPECT_TRUE(request) << settings << ": " << (request ? "" : request.error().message);
  return request ? *std::move(request) : ApiRequest{};
}

std::string refusal(Api api, std::string_view settings) {
  const auto request = read_request(api, body_of(api, settings));
  EXPECT_FALSE(request) << settings;
  if (request) return "";
  EXPECT_EQ(request.error().status, 400);
  EXPECT_TRUE(request.error().message.starts_with(request.error().param)) << request.error().message;
  return request.error().message;
}

/// One line a message: role, content, reasoning in [], calls as id=name(arguments), the id of a result.
std::string outline(const Conversation& conversation) {
  constexpr const char* kRoles[] = {"system", "user", "assistant", "tool", "latest_reminder"};
  std::string out;
  for (const Message& message : conversation.messages) {
    out += kRoles[static_cast<size_t>(message.role)];
    if (!message.tool_call_id.empty()) out += " " + message.tool_call_id;
    if (message.reasoning) out += " [" + *message.reasoning + "]";
    out += ':';
    for (const ContentPart& part : message.content) out += " " + (part.image ? "<" + part.image->url + ">" : part.text);
    for (const ToolCall& call : message.tool_calls) out += " " + call.id + "=" + call.name + "(" + call.arguments + ")";
    out += message.is_prefix ? "...\n" : "\n";
  }
  return out;
}

struct Refusal {
  Api api;
  std::string_view settings;
  std::string_view message;
};

TEST(Request, RefusesByName) {
  constexpr std::string_view kTool = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  const std::string with_tool = std::string(kTool) + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})";
  const Refusal cases[] = {
      {Api::kChat, R"("messages":[{"role":"robot","content":"x"}])",
       "messages[0].role: \"robot\" is not one of system, developer, user, assistant, tool, latest_reminder"},
      {Api::kChat, R"("model":"again")", "model: given twice"},
      {Api::kChat, R"("messages":[])", "messages: empty, needs at least one message"},
      {Api::kChat, R"("messages":[{"role":"user","content":[{"type":"text"}]}])",
       "messages[0].content[0].text: missing, needs a string"},
      {Api::kChat, R"("temperature":2.5)", "temperature: 2.5 is not from 0 to 2"},
      {Api::kChat, R"("top_p":0)", "top_p: 0 is not above 0 and up to 1"},
      {Api::kChat, R"("max_tokens":5.0)", "max_tokens: 5.0 is not a whole number from 1 to 393216"},
      {Api::kChat, R"("n":129)", "n: 129 is not a whole number from 1 to 128"},
      {Api::kChat, R"("seed":9223372036854775808)",
       "seed: 9223372036854775808 is not a whole number from 0 to 9223372036854775807"},
      {Api::kChat, R"("stop":["a",""])", "stop[1]: \"\" is too short, a stop string has at least 1 byte"},
      {Api::kChat, R"("logit_bias":{"1.5":1})", "logit_bias: the key \"1.5\" is no token id"},
      {Api::kChat, R"("logit_bias":{"7":1,"07":2})", "logit_bias: token 7 is given twice"},
      {Api::kChat, R"("reasoning_effort":101)", "reasoning_effort: 101 is not a whole number from 1 to 100"},
      {Api::kChat, R"("top_logprobs":3)", "top_logprobs: allowed only with \"logprobs\": true"},
      {Api::kChat, R"("stream_options":{})", "stream_options: allowed only with \"stream\": true"},
      {Api::kChat, R"("functions":[])", "functions: an array is not supported: use tools instead"},
      {Api::kChat, R"("modalities":["text","audio"])",
       "modalities: an array is not supported: answers are text, only [\"text\"] is allowed"},
      {Api::kChat, R"("tool_choice":"required")", "tool_choice: a call is required, but there are no tools"},
      {Api::kChat, with_tool, "tool_choice: no tool is called \"g\""},
      {Api::kChat, R"("response_format":{"type":"json_object"})",
       "response_format: json_object needs the word \"json\" in some message"},
      {Api::kMessages, R"("messages":[{"role":"user","content":[{"type":"document"}]}])",
       "messages[0].content[0].type: \"document\" is not one of text, image, thinking, tool_use, tool_result"},
      {Api::kMessages, R"("tools":[{"type":"web_search_20250305","name":"web_search"}])",
       "tools[0].type: \"web_search_20250305\" is a server tool, which is not supported: only custom tools are"},
      {Api::kMessages, R"("tools":[{"name":"f"}])", "tools[0].input_schema: missing, needs a JSON Schema"},
      {Api::kResponses, R"("previous_response_id":"r")",
       "previous_response_id: \"r\" is not supported: responses are not stored"},
      {Api::kResponses, R"("input":[{"type":"web_search_call"}])",
       "input[0].type: \"web_search_call\" is not one of message, reasoning, function_call, function_call_output, "
       "custom_tool_call, custom_tool_call_output"},
      {Api::kResponses, R"("tools":[{"type":"custom","name":"apply_patch"}])",
       "tools[0]: the custom tool \"apply_patch\" is not supported: use a function"},
  };
  for (const Refusal& expected : cases) EXPECT_EQ(refusal(expected.api, expected.settings), expected.message);
  EXPECT_FALSE(read_request(Api::kChat, "[]"));
  EXPECT_FALSE(read_request(Api::kChat, std::string(10'000'000, '[')));
}

TEST(Request, NullAndNeutralValuesCountAsAbsent) {
  accepted(Api::kChat,
           R"("temperature":null,"stop":null,"tools":null,"thinking":null,"store":false,"modalities":["text"])");
  accepted(Api::kResponses, R"("truncation":"disabled","background":false,"include":[],"store":null,"prompt":null)");
  accepted(Api::kResponses, R"("include":["reasoning.encrypted_content"])");
  accepted(Api::kMessages,
           R"("system":null,"mcp_servers":[],"metadata":{"user_id":"u"},"unheard_of":1,"unheard_of":2)");
}

TEST(Request, BoundsTools) {
  std::string tools = R"({"type":"function","function":{"name":"f0"}})";
  for (int idx = 1; idx < 1025; ++idx)
    tools += R"(,{"type":"function","function":{"name":"f)" + std::to_string(idx) + "\"}}";
  EXPECT_EQ(refusal(Api::kChat, "\"tools\":[" + tools + "]"), "tools: 1025 tools, at most 1024");
}

TEST(Request, ReadsChatMessages) {
  const ApiRequest request = accepted(Api::kChat, R"("messages":[
      {"role":"system","content":""},
      {"role":"developer","content":"rules"},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"http://i/1"}}]},
      {"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[
        {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"1","content":[]},
      {"role":"latest_reminder","content":"soon"},
      {"role":"assistant","content":"An"}])");
  EXPECT_EQ(outline(request.conversation),
            "system: rules\nuser: a <http://i/1>\nassistant [r]: 1=f({})\ntool 1: \nlatest_reminder: soon\n"
            "assistant: An\n");
  const ImageSource& image = *request.conversation.messages[1].content[1].image;
  EXPECT_EQ(image.detail, "high");
  EXPECT_EQ(image.field, "messages[2].content[1].image_url.url");
}

TEST(Request, LetsAPrefixContinueAPlainConversationOnly) {
  const std::string prefix = R"({"role":"assistant","content":"An","prefix":true})";
  const std::string call = R"({"role":"assistant","tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":""})";
  EXPECT_EQ(outline(accepted(Api::kChat, "\"messages\":[" + prefix + "]").conversation), "assistant: An...\n");
  EXPECT_EQ(refusal(Api::kChat, "\"messages\":[" + call + "," + prefix + "]"),
            "messages[2].prefix: true is not allowed in a conversation with tool calls");
}

TEST(Request, ReadsMessagesBlocks) {
  const ApiRequest request = accepted(Api::kMessages, R"("max_tokens":999999,"messages":[
      {"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"thinking","thinking":"b"},
        {"type":"text","text":""},{"type":"text","text":"x"},{"type":"text","text":"y"},
        {"type":"tool_use","id":"1","name":"f","input":{"k":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"t"},
        {"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"AA=="}}]}],
      "system":[{"type":"text","text":"X-Anthropic-Billing-Header: v=1"},{"type":"text","text":"s"}])");
  EXPECT_EQ(outline(request.conversation),
            "system: s\nuser: q\nassistant [a\n\nb]: x\n\ny 1=f({\"k\": 1})\ntool 1: r\n"
            "user: t <data:image/jpeg;base64,AA==>\n");
  EXPECT_EQ(request.max_tokens, 393216);  // clamped
}

TEST(Request, JoinsResponsesItemsToTurns) {
  const ApiRequest request = accepted(Api::kResponses, R"("instructions":"i","input":[
      {"role":"user","content":"q"},
      {"type":"reasoning","content":[{"type":"reasoning_text","text":"a"},{"type":"reasoning_text","text":"b"}]},
      {"role":"assistant","content":"x"},{"role":"assistant","content":""},{"role":"assistant","content":"y"},
      {"type":"function_call","call_id":"2","name":"g","namespace":"ns","arguments":"{}"},
      {"type":"function_call","call_id":"1","name":"f","arguments":"no"},
      {"type":"function_call_output","call_id":"2","output":"two"},
      {"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"one"}]},
      {"type":"function_call_output","output":"loose"},
      {"type":"reasoning","content":[{"type":"reasoning_text","text":"c"}]}])");
  EXPECT_EQ(outline(request.conversation),
            "system: i\nuser: q\nassistant [a\nb]: x\n\ny 1=f(no) 2=ns::g({})\ntool 2: two\ntool 1: one\ntool: loose\n"
            "assistant [c]: \n");
}

TEST(Request, EachCallNeedsOneResult) {
  const auto chat = [](std::string_view after) {
    return R"("messages":[{"role":"assistant","content":null,"tool_calls":[)"
           R"({"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]})" +
           std::string(after) + "]";
  };
  const std::string result = R"(,{"role":"tool","tool_call_id":"1","content":"r"})";
  const std::string user = "," + std::string(kUser);
  accepted(Api::kChat, chat(result + user));
  EXPECT_EQ(refusal(Api::kChat, chat("")), "messages: the tool call \"1\" before it has no tool message");
  EXPECT_EQ(refusal(Api::kChat, chat(user + result)), "messages[1]: the tool call \"1\" before it has no tool message");
  EXPECT_EQ(refusal(Api::kChat, chat(result + result)), "messages[2].tool_call_id: duplicate tool message for \"1\"");
  EXPECT_EQ(refusal(Api::kChat, chat(R"(,{"role":"tool","tool_call_id":"2","content":"r"})")),
            "messages[1].tool_call_id: no tool call \"2\" right before this tool message");
  EXPECT_EQ(refusal(Api::kResponses, R"("input":[{"type":"function_call","call_id":"1","name":"f","arguments":""},
                    {"type":"function_call_output","call_id":"1","output":"r"},
                    {"type":"function_call","call_id":"1","name":"f","arguments":""}])"),
            "input[2].call_id: duplicate id \"1\", ids must be unique among the function_calls");
}

TEST(Request, MapsThinkingAndEffort) {
  struct Case {
    std::string_view settings;
    bool thinking;
    int32_t effort;
    int64_t max_tokens;
  };
  for (const Case& expected : {
           Case{"", true, kEffortHigh, 65536},
           Case{R"("reasoning_effort":"minimal")", true, kEffortLow, 65536},
           Case{R"("reasoning_effort":"medium")", true, kEffortHigh, 65536},
           Case{R"("reasoning_effort":"ultra")", true, kEffortMax, 131072},
           Case{R"("reasoning_effort":17)", true, 17, 65536},
           Case{R"("reasoning_effort":"none")", false, kEffortHigh, 8192},
           Case{R"("reasoning_effort":"none","thinking":{"type":"adaptive"})", true, kEffortHigh, 65536},
           Case{R"("thinking":{"type":"disabled","budget_tokens":5})", false, kEffortHigh, 8192},
       }) {
    const Conversation conversation = accepted(Api::kChat, expected.settings).conversation;
    EXPECT_EQ(conversation.thinking, expected.thinking) << expected.settings;
    EXPECT_EQ(conversation.effort, expected.effort) << expected.settings;
    EXPECT_EQ(default_max_tokens(conversation), expected.max_tokens) << expected.settings;
  }
}

TEST(Request, NamesTheConstraint) {
  EXPECT_FALSE(constraint_of(accepted(Api::kChat, "").conversation));
  const std::string tools = R"("tools":[{"name":"f","input_schema":{"type":"object"}},)"
                            R"({"name":"g","input_schema":{"type":"object"}}],"tool_choice":)";
  const auto of = [&](std::string_view choice) {
    return *constraint_of(accepted(Api::kMessages, tools + std::string(choice)).conversation);
  };
  EXPECT_EQ(of(R"({"type":"auto"})").kind, "tool_call");
  EXPECT_EQ(of(R"({"type":"any"})").kind, "tool_call_required");
  EXPECT_EQ(
      of(R"({"type":"tool","name":"g"})").schema,
      R"([{"type":"function","function":{"name":"g","description":"","parameters":{"type":"object"},"strict":false}}])");
  EXPECT_FALSE(constraint_of(accepted(Api::kMessages, tools + R"({"type":"none"})").conversation));
  const auto regex =
      constraint_of(accepted(Api::kChat, R"("response_format":{"type":"regex","regex":"a+"})").conversation);
  EXPECT_EQ(regex->kind, "regex");
  EXPECT_EQ(regex->schema, "a+");
}

TEST(Request, PutsNamespacesBeforeNames) {
  const Conversation conversation = accepted(Api::kResponses, R"("tools":[{"type":"namespace","name":"ns",
      "description":"all","tools":[{"type":"function","name":"f","description":"one","strict":true}]}])")
                                        .conversation;
  ASSERT_EQ(conversation.tools.size(), 1U);
  EXPECT_EQ(conversation.tools[0].name, "ns::f");
  EXPECT_EQ(conversation.tools[0].description, "all\none");
  EXPECT_TRUE(conversation.tools[0].strict);
}

TEST(Request, RepeatsResponsesSettings) {
  EXPECT_EQ(
      json::to_string(accepted(Api::kResponses, R"("top_p":0.50,"reasoning":{"effort":"low"},
      "tools":[{"type":"function","name":"f","x":1}],"parallel_tool_calls":false)")
                          .echo,
                      json::Style::kCompact),
      R"({"instructions":null,"max_output_tokens":null,"temperature":1.0,"top_p":0.50,"top_logprobs":0,"user":null,)"
      R"("reasoning":{"effort":"low","summary":null},"text":{"format":{"type":"text"},"verbosity":null},)"
      R"("tool_choice":"auto","tools":[{"type":"function","name":"f","description":null,"parameters":null,)"
      R"("strict":null}],"parallel_tool_calls":false,"metadata":{}})");
}

TEST(Request, ChecksTheFormOfImages) {
  const auto chat = [](std::string_view url) {
    return R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":")" + std::string(url) +
           "\"}}]}]";
  };
  for (const char* url :
       {"HTTP://a/b c", "https://a", "data:image/png;base64,", "data:image/PNG;x=y;base64,AA AA",
        "data:image/jpg;base64,AA%3D%3D", "data:image/webp;base64,AB", "data:image/gif;base64,AAAA#x"})
    accepted(Api::kChat, chat(url));
  for (const char* url : {"", "ftp://a", "http://", "//a", "data:image/png,abc", "data:image/bmp;base64,AAAA",
                          "data:image/png;base64", "data:image/png;base64,A", "data:image/png;base64,AA=",
                          "data:image/png;base64,AA==AA==", "data:image/png;base64,-_AA", "data:image/png;base64,%zz"})
    refusal(Api::kChat, chat(url));
  accepted(Api::kChat, chat("http://a/" + std::string(8183, 'p')));
  refusal(Api::kChat, chat("http://a/" + std::string(8184, 'p')));
}

TEST(Request, ErrorBodiesAreThoseOfTheApi) {
  const ApiError error{.message = "n: \"x\"", .param = "n"};
  EXPECT_EQ(
      error_body(Api::kChat, error),
      R"({"error":{"message":"n: \"x\"","type":"invalid_request_error","param":"n","code":"invalid_request_error"}})");
  EXPECT_EQ(error_body(Api::kMessages, error),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"n: \"x\""}})");
  EXPECT_EQ(error_body(Api::kResponses, {.message = "down", .param = "", .status = 503}),
            R"({"error":{"message":"down","type":"internal_error","param":null,"code":"internal_error"}})");
}

}  // namespace
}  // namespace deepinfer::protocol
