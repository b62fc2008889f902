#include "bench/protocol_bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/output_parser_bench.h"
#include "bench/quantile.h"
#include "platform/cpu_features.h"
#include "protocol/output_parser.h"
#include "protocol/prompt.h"
#include "protocol/request.h"
#include "protocol/response.h"

#ifndef DI_COMMIT
#define DI_COMMIT "unknown"
#endif

namespace deepinfer::bench {

namespace {

using Json = nlohmann::ordered_json;

/// What one case times; returns the bytes it went through.
struct Case {
  std::string name;
  std::string field;  // the one that is scaled; empty: none
  int64_t scale = 1;
  std::function<int64_t()> run;
};

// --- bodies ----------------------------------------------------------------------------------------------------------

/// How often each field is repeated; 1 is the conversation of the target.
struct Scale {
  int64_t turns = 1;
  int64_t text = 1;
  int64_t tools = 1;
  int64_t schema = 1;
  int64_t arguments = 1;
  int64_t calls = 1;
};

std::string words(int64_t n_bytes) {
  static constexpr std::string_view kProse =
      "The harbour was quiet; \"two boats\" lay at the pier, and the wind (from the "
      "north-west) had died down.\nNobody spoke. Größe 12 °C, naïve façade. ";
  std::string text;
  while (static_cast<int64_t>(text.size()) < n_bytes) text += kProse;
  return text;
}

Json tool(int64_t index, int64_t n_properties) {
  Json properties = Json::object();
  for (int64_t i = 0; i < n_properties; ++i) {
    properties["field_" + std::to_string(i)] = {{"type", "string"}, {"description", "what the field number is about"}};
  }
  return {{"type", "function"},
          {"function",
           {{"name", "tool_" + std::to_string(index)},
            {"description", words(200)},
            {"parameters", {{"type", "object"}, {"properties", std::move(properties)}, {"required", {"field_0"}}}}}}};
}

/// 100 turns, a quarter of them with calls, and 20 tools.
std::string body(const Scale& scale) {
  Json messages = Json::array({{{"role", "system"}, {"content", words(400)}}});
  for (int64_t turn = 0; turn < 25 * scale.turns; ++turn) {
    messages.push_back({{"role", "user"}, {"content", words(700 * scale.text)}});
    Json calls = Json::array();
    for (int64_t i = 0; i < scale.calls; ++i) {
      const Json arguments = {{"field_0", words(300 * scale.arguments)}, {"field_1", 12.5}};
      calls.push_back({{"id", "call_" + std::to_string(i)},
                       {"type", "function"},
                       {"function", {{"name", "tool_1"}, {"arguments", arguments.dump()}}}});
    }
    messages.push_back({{"role", "assistant"},
                        {"content", nullptr},
                        {"reasoning_content", words(400)},
                        {"tool_calls", std::move(calls)}});
    for (int64_t i = scale.calls; i-- > 0;) {
      messages.push_back({{"role", "tool"}, {"tool_call_id", "call_" + std::to_string(i)}, {"content", words(400)}});
    }
    messages.push_back({{"role", "assistant"}, {"content", words(900)}, {"reasoning_content", words(200)}});
  }
  messages.push_back({{"role", "user"}, {"content", "And now?"}});
  Json tools = Json::array();
  for (int64_t i = 0; i < 20 * scale.tools; ++i) tools.push_back(tool(i, 8 * scale.schema));
  return Json{{"model", "m"}, {"messages", std::move(messages)}, {"tools", std::move(tools)}}.dump();
}

protocol::ApiRequest request_of(protocol::Api api, const std::string& text) {
  Result<protocol::ApiRequest, protocol::ApiError> request = protocol::read_request(api, text);
  DI_CHECK(request.ok());
  return *std::move(request);
}

Case render_case(std::string field, int64_t factor, const Scale& scale) {
  auto text = std::make_shared<std::string>(body(scale));
  return {"render", std::move(field), factor, [text] {
            const protocol::Prompt prompt = protocol::render(request_of(protocol::Api::kChat, *text).conversation);
            DI_CHECK(!prompt.marks.empty());
            return static_cast<int64_t>(text->size());
          }};
}

void add_render_cases(std::vector<Case>& cases) {
  cases.push_back(render_case("", 1, {}));
  for (const int64_t factor : {10, 100}) {
    cases.push_back(render_case("turns", factor, {.turns = factor}));
    cases.push_back(render_case("text", factor, {.text = factor}));
    cases.push_back(render_case("schema", factor, {.schema = factor}));
    cases.push_back(render_case("arguments", factor, {.arguments = factor}));
    cases.push_back(render_case("calls", factor, {.calls = factor}));
    const int64_t n_tools = std::min<int64_t>(factor, 50);  // 1000 of at most 1024
    cases.push_back(render_case("tools", n_tools, {.tools = n_tools}));
  }
}

// --- answers ---------------------------------------------------------------------------------------------------------

std::string answer_text(int64_t n_bytes) {
  return words(n_bytes / 3) + "</think>\n\n" + words(n_bytes / 3) +
         "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"tool_1\">\n<｜DSML｜ parameter name=\"field_0\" "
         "string=\"true\">" +
         words(n_bytes / 3) + "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
}

/// One request of each API, with one tool.
std::string small_body(protocol::Api api) {
  switch (api) {
    case protocol::Api::kChat:
      return R"({"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"tool_1"}}]})";
    case protocol::Api::kMessages:
      return R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}],"tools":[{"name":"tool_1","input_schema":{"type":"object"}}]})";
    case protocol::Api::kResponses:
      return R"({"model":"m","input":"q","tools":[{"type":"function","name":"tool_1","parameters":{"type":"object"}}]})";
  }
  DI_CHECK(false);
}

Case stream_case(protocol::Api api, std::string name, int64_t factor) {
  auto text = std::make_shared<std::string>(answer_text(30'000 * factor));
  auto request = std::make_shared<protocol::ApiRequest>(request_of(api, small_body(api)));
  return {std::move(name), "answer", factor, [text, request] {
            const std::unique_ptr<protocol::Response> response =
                protocol::make_response(*request, {.id = "r", .model = "m"}, true);
            protocol::OutputParser parser(protocol::render(request->conversation).output,
                                          protocol::OutputParser::Markers::kBySpelling);
            size_t n_event_bytes = 0;
            const auto send = [&] {
              for (const protocol::StreamEvent& event : response->take_events()) n_event_bytes += event.data.size();
            };
            response->begin({});
            for (size_t at = 0; at < text->size(); at += 16) {
              parser.push_text(std::string_view(*text).substr(at, 16), response->choice(0));
              send();
            }
            parser.finish(response->choice(0));
            response->finish_choice(0, protocol::BackendFinish::kStop, parser.stop_index());
            response->end({});
            send();
            DI_CHECK(n_event_bytes > text->size() && parser.n_calls() == 1);
            return static_cast<int64_t>(text->size());
          }};
}

void add_stream_cases(std::vector<Case>& cases) {
  for (const int64_t factor : {1, 10, 100}) {
    cases.push_back(stream_case(protocol::Api::kChat, "stream chat", factor));
    cases.push_back(stream_case(protocol::Api::kMessages, "stream messages", factor));
    cases.push_back(stream_case(protocol::Api::kResponses, "stream responses", factor));
  }
}

Status add_encode_case(const std::string& model_dir, std::vector<Case>& cases) {
  DI_ASSIGN_OR_RETURN(Tokenizer opened, Tokenizer::open(model_dir));
  auto tokenizer = std::make_shared<Tokenizer>(std::move(opened));
  DI_ASSIGN_OR_RETURN(const protocol::SpecialTokens specials, protocol::SpecialTokens::of(*tokenizer));
  auto prompt =
      std::make_shared<protocol::Prompt>(protocol::render(request_of(protocol::Api::kChat, body({})).conversation));
  cases.push_back({"encode", "", 1, [tokenizer, specials, prompt] {
                     DI_CHECK(protocol::encode(*prompt, *tokenizer, specials).ok());
                     return static_cast<int64_t>(prompt->text.size());
                   }});
  return {};
}

// --- output ----------------------------------------------------------------------------------------------------------

void print(const Json& line, std::FILE* out) {
  std::fprintf(out, "%s\n", line.dump().c_str());
  std::fflush(out);
}

Json head(std::string_view name) {
  return {{"bench", "protocol"}, {"commit", DI_COMMIT}, {"machine", cpu_model_name()}, {"case", name}};
}

void print_parser_rows(const ProtocolBenchOptions& options, std::FILE* out) {
  for (const OutputParserRow& row : run_output_parser_bench({.n_runs = options.n_runs})) {
    Json line = head("parse");
    line["text"] = row.text;
    line["chunk_bytes"] = row.chunk_bytes;
    line["bytes"] = row.n_bytes;
    line["seconds_min"] = row.min_seconds;
    line["seconds_median"] = row.median_seconds;
    line["seconds_p90"] = row.p90_seconds;
    line["mb_per_second"] = row.mb_per_second;
    line["chunks_per_second"] = row.pushes_per_second;
    print(line, out);
  }
}

}  // namespace

Status run_protocol_bench(const ProtocolBenchOptions& options, std::FILE* out) {
  std::vector<Case> cases;
  add_render_cases(cases);
  add_stream_cases(cases);
  DI_RETURN_IF_ERROR(add_encode_case(options.model_dir, cases));
  std::vector<std::vector<double>> seconds(cases.size());
  std::vector<int64_t> n_bytes(cases.size());
  for (int32_t round = -1; round < options.n_runs; ++round) {  // the first one warms up
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      n_bytes[i] = cases[i].run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (round >= 0) seconds[i].push_back(took.count());
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    const double median = quantile(seconds[i], 0.5);
    Json line = head(cases[i].name);
    if (!cases[i].field.empty()) line["field"] = cases[i].field;
    line["scale"] = cases[i].scale;
    line["bytes"] = n_bytes[i];
    line["seconds_min"] = seconds[i].front();
    line["seconds_median"] = median;
    line["seconds_p90"] = quantile(seconds[i], 0.9);
    line["ns_per_byte"] = median * 1e9 / static_cast<double>(n_bytes[i]);
    print(line, out);
  }
  print_parser_rows(options, out);
  return {};
}

}  // namespace deepinfer::bench
