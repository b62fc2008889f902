#include "cli/json_answers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "text/json.h"

namespace deepinfer::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json object_with_id(const std::string& id_json) {
  Json object = Json::object();
  if (!id_json.empty()) object["id"] = Json::parse(id_json);  // our own text: it parses
  return object;
}

Json logprobs_of(const Completion& completion) {
  Json list = Json::array();
  for (const TokenLogprobs& token : completion.logprobs) {
    Json top = Json::array();
    for (const TokenAlternative& entry : token.top)
      top.push_back({{"token_id", entry.token_id}, {"logprob", entry.logprob}});
    list.push_back({{"token_id", token.token_id}, {"logprob", token.logprob}, {"top", std::move(top)}});
  }
  return list;
}

Json stats_of(const Completion& completion) {
  const Timing& timing = completion.timing;
  const auto per_second = [](int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; };
  return {{"prefill_seconds", timing.prefill_seconds},
          {"prefill_tokens_per_second", per_second(completion.usage.n_prompt_tokens, timing.prefill_seconds)},
          {"decode_seconds", timing.decode_seconds},
          {"decode_steps", timing.n_decode_steps},
          {"decode_tokens_per_second", per_second(timing.n_decode_steps, timing.decode_seconds)}};
}

const char* finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "error";
}

}  // namespace

std::string completion_line(const Completion& completion, const AnswerOptions& options) {
  Json object = object_with_id(options.id_json);
  object["text"] = completion.text;
  object["token_ids"] = completion.token_ids;
  object["finish_reason"] = finish_name(completion.finish_reason);
  object["usage"] = {{"prompt_tokens", completion.usage.n_prompt_tokens},
                     {"completion_tokens", completion.usage.n_completion_tokens}};
  if (options.logprobs) object["logprobs"] = logprobs_of(completion);
  if (options.stats) object["stats"] = stats_of(completion);
  if (options.chat == nullptr) return line_of(object);
  if (!options.chat->reasoning.empty()) object["reasoning"] = options.chat->reasoning;
  std::string line = line_of(object);
  if (options.chat->tool_calls.empty()) return line;
  // The calls' arguments keep the spelling of their numbers and their repeated keys, which a DOM would lose.
  line.pop_back();
  line += ",\"tool_calls\":[";
  for (const protocol::ToolCall& call : options.chat->tool_calls) {
    if (&call != options.chat->tool_calls.data()) line += ',';
    line += tool_call_json(call);
  }
  return line += "]}";
}

std::string tool_call_json(const protocol::ToolCall& call) {
  std::string out = "{\"name\":";
  json::append_quoted(call.name, out);
  out += ",\"arguments\":";
  const Result<json::Value> arguments = json::parse(call.arguments);
  if (arguments.ok() && arguments->is(json::Kind::kObject)) {
    json::append(*arguments, json::Style::kCompact, out);
  } else {
    json::append_quoted(call.arguments, out);
  }
  return out += '}';
}

std::string error_line(const Error& error, const std::string& id_json) {
  Json object = object_with_id(id_json);
  object["error"] = {{"kind", code_name(error.code)}, {"message", error.message}};
  return line_of(object);
}

std::string score_line(const std::optional<std::string>& name, std::span<const int32_t> tokens, const Score& score) {
  Json object = Json::object();
  if (name) object["name"] = *name;
  object["tokens"] = tokens;
  object["logprobs"] = Json::array({nullptr});
  for (const double logprob : score.logprobs) object["logprobs"].push_back(logprob);
  object["nll"] = score.nll;
  object["ppl"] = score.perplexity;
  return line_of(object);
}

}  // namespace deepinfer::cli
