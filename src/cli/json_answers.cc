#include "cli/json_answers.h"

#include <nlohmann/json.hpp>
#include <utility>

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

}  // namespace

std::string completion_line(const Completion& completion, const AnswerOptions& options) {
  Json object = object_with_id(options.id_json);
  object["text"] = completion.text;
  object["token_ids"] = completion.token_ids;
  object["finish_reason"] = completion.finish_reason == FinishReason::kStop ? "stop" : "length";
  object["usage"] = {{"prompt_tokens", completion.usage.n_prompt_tokens},
                     {"completion_tokens", completion.usage.n_completion_tokens}};
  if (options.logprobs) object["logprobs"] = logprobs_of(completion);
  if (options.stats) object["stats"] = stats_of(completion);
  return line_of(object);
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
