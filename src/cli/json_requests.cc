#include "cli/json_requests.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "deepinfer/options.h"
#include "text/json.h"

namespace deepinfer::cli {

namespace {

using Json = nlohmann::json;

// Members of later parts of the engine: answered by name, as their options are.
constexpr std::array kNotAvailable = {"image"};

// Members that read_request() reads by themselves.
constexpr std::array kReadElsewhere = {"id",    "messages",    "tools",       "thinking",
                                       "regex", "json_schema", "json_object", "ebnf"};

// Schemas of tools nest; more than this is refused before anything walks it.
constexpr int kDepthMax = 128;

/// Messages quote the input, which need not be UTF-8; they are, so that an answer reads back as it was written.
Error bad(const std::string& message) {
  return Error{Code::kInvalidArgument,
               Json::parse(Json(message).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>()};
}

std::string dumped(const Json& value) {
  constexpr size_t kShownBytes = 60;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while ((static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

/// An object of which no member is given twice and nothing nests deeper than kDepthMax.
Result<Json> read_object(std::string_view line) {
  std::unordered_set<std::string> keys;
  std::optional<std::string> twice;
  bool is_too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    is_too_deep = is_too_deep || depth > kDepthMax;
    if (is_too_deep) return false;
    if (depth == 1 && event == Json::parse_event_t::key && !keys.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  Json value;
  try {
    value = Json::parse(line, watch);
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();
    const size_t end = what.find("] ");  // "[json.exception.parse_error.101] parse error at ..."
    return bad("not valid JSON: " + std::string(end == std::string_view::npos ? what : what.substr(end + 2)));
  }
  if (is_too_deep) return bad("nested deeper than " + std::to_string(kDepthMax));
  if (!value.is_object()) return bad("not a JSON object");
  if (twice) return bad("\"" + *twice + "\" is given twice");
  return value;
}

std::string must_be(std::string_view key, const Json& value, const std::string& rule) {
  return std::string(key) + " is " + dumped(value) + ", must be " + rule;
}

/// `T` holds all of [min, max].
template <typename T>
Status read_integer(std::string_view key, const Json& value, int64_t min, int64_t max, T& target) {
  const bool is_small = value.is_number_integer() &&
                        !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  if (!is_small || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    return bad(must_be(key, value, "a whole number between " + std::to_string(min) + " and " + std::to_string(max)));
  }
  target = static_cast<T>(value.get<int64_t>());
  return {};
}

Status read_float(std::string_view key, const Json& value, bool is_share, float& target) {
  const double max = is_share ? 1 : static_cast<double>(std::numeric_limits<float>::max());
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= max)) {
    return bad(must_be(key, value, is_share ? "a number between 0 and 1" : "a finite number, at least 0"));
  }
  target = static_cast<float>(value.get<double>());
  return {};
}

Status read_seed(const Json& value, uint64_t& target) {
  if (!value.is_number_unsigned()) {
    return bad(must_be("seed", value, "a whole number between 0 and " + std::to_string(UINT64_MAX)));
  }
  target = value.get<uint64_t>();
  return {};
}

Status read_text(std::string_view key, const Json& value, std::optional<std::string>& target) {
  if (!value.is_string()) return bad(must_be(key, value, "a string"));
  target = value.get<std::string>();
  return {};
}

Status read_ids(std::string_view key, const Json& value, std::vector<int32_t>& target) {
  if (!value.is_array() || value.empty()) return bad(must_be(key, value, "a list of at least one token id"));
  for (const Json& item : value) {
    const std::string where = std::string(key) + "[" + std::to_string(target.size()) + "]";
    if (const Status status = read_integer(where, item, 0, INT32_MAX, target.emplace_back()); !status.ok())
      return status;
  }
  return {};
}

Status read_stop_ids(const Json& value, std::vector<int32_t>& target) {
  if (value.is_array()) return value.empty() ? Status{} : read_ids("stop_id", value, target);
  return read_integer("stop_id", value, 0, INT32_MAX, target.emplace_back());
}

Status read_stop_strings(const Json& value, std::vector<std::string>& target) {
  const Json list = value.is_string() ? Json::array({value}) : value;
  if (!list.is_array()) return bad(must_be("stop", value, "a string or a list of strings"));
  for (const Json& item : list) {
    if (!item.is_string()) return bad(must_be("stop", value, "a string or a list of strings"));
    target.push_back(item.get<std::string>());
  }
  return {};
}

Status read_member(const std::string& key, const Json& value, BatchRequest& batch) {
  Request& request = batch.request;
  SamplingOptions& sampling = request.sampling;
  if (key == "prompt") return read_text(key, value, batch.text);
  if (key == "tokens") return read_ids(key, value, request.prompt);
  if (key == "max_tokens") return read_integer(key, value, 0, kContextMax, request.max_tokens);
  if (key == "temperature") return read_float(key, value, false, sampling.temperature);
  if (key == "top_p") return read_float(key, value, true, sampling.top_p);
  if (key == "min_p") return read_float(key, value, true, sampling.min_p);
  if (key == "top_k") return read_integer(key, value, -1, INT64_MAX, sampling.top_k);
  if (key == "seed") return read_seed(value, sampling.seed);
  if (key == "n") return read_integer(key, value, 1, kSequencesPerRequestMax, request.n_sequences);
  if (key == "logprobs") return read_integer(key, value, 0, kLogprobsMax, request.n_logprobs);
  if (key == "stop") return read_stop_strings(value, request.stop_strings);
  if (key == "stop_id") return read_stop_ids(value, request.stop_ids);
  if (key == "no_special") {
    if (!value.is_boolean()) return bad(must_be(key, value, "true or false"));
    batch.special = !value.get<bool>();
    return {};
  }
  if (std::ranges::find(kNotAvailable, key) != kNotAvailable.end()) return bad(key + ": not available in this build");
  return bad("unknown member \"" + key + "\"");
}

/// The constraint, of which a line has at most one. A schema goes on as it is spelt: the order of properties counts.
Result<std::optional<grammar::Constraint>> read_constraint(const Json& object, std::string_view line) {
  using Kind = grammar::Constraint::Kind;
  constexpr std::pair<const char*, Kind> kKinds[] = {{"regex", Kind::kRegex},
                                                     {"ebnf", Kind::kEbnf},
                                                     {"json_object", Kind::kJsonObject},
                                                     {"json_schema", Kind::kJsonSchema}};
  std::optional<grammar::Constraint> constraint;
  for (const auto& [key, kind] : kKinds) {
    const auto member = object.find(key);
    if (member == object.end()) continue;
    if (constraint) return bad("regex, json_schema, json_object and ebnf exclude one another");
    constraint = grammar::Constraint{.kind = kind};
    if (kind == Kind::kJsonSchema) {
      const Result<json::Value> spelt = json::parse(line);
      if (!spelt.ok()) return bad(spelt.error().message);
      constraint->source = json::to_string(*spelt->find(key), json::Style::kCompact);
    } else if (kind == Kind::kJsonObject) {
      if (*member != true) return bad(must_be(key, *member, "true"));
    } else {
      if (!member->is_string()) return bad(must_be(key, *member, "a string"));
      constraint->source = member->get<std::string>();
    }
  }
  return constraint;
}

/// "thinking": the words and numbers of --thinking.
Status read_thinking(const Json& value, ChatMembers& chat) {
  chat.thinking = value != "off";
  if (value == "off" || value == "on") return {};
  if (value.is_number()) return read_integer("thinking", value, 1, 100, chat.effort);
  return bad(must_be("thinking", value, "\"off\", \"on\" or a whole number between 1 and 100"));
}

/// messages, tools and thinking. The first two go to the protocol layer as they are spelt.
Result<std::optional<ChatMembers>> read_chat(const Json& object, std::string_view line) {
  if (!object.contains("messages")) {
    for (const char* name : {"tools", "thinking"}) {
      if (object.contains(name)) return bad(std::string(name) + " goes with messages");
    }
    return std::optional<ChatMembers>();
  }
  ChatMembers chat;
  const Result<json::Value> spelt = json::parse(line);
  if (!spelt.ok()) return bad(spelt.error().message);
  chat.messages = *spelt->find("messages");
  if (const json::Value* tools = spelt->find("tools")) chat.tools = *tools;
  if (object.contains("thinking")) {
    if (const Status status = read_thinking(object.at("thinking"), chat); !status.ok()) return status.error();
  }
  if (object.contains("no_special")) return bad("no_special does not go with messages, whose text is never searched");
  return std::optional<ChatMembers>(std::move(chat));
}

Result<BatchRequest> read_request(const Json& object, std::string_view line) {
  BatchRequest batch;
  Result<std::optional<ChatMembers>> chat = read_chat(object, line);
  if (!chat.ok()) return chat.error();
  batch.chat = *std::move(chat);
  Result<std::optional<grammar::Constraint>> constraint = read_constraint(object, line);
  if (!constraint.ok()) return constraint.error();
  batch.request.constraint = *std::move(constraint);
  if (batch.request.constraint && batch.chat && batch.chat->tools)
    return bad("tools do not go with a constraint on the answer, which would let no call through");
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(kReadElsewhere, key) != kReadElsewhere.end()) continue;
    if (const Status status = read_member(key, value, batch); !status.ok()) return status.error();
  }
  const int n_prompts = int{batch.text.has_value()} + int{batch.chat.has_value()} + int{object.contains("tokens")};
  if (n_prompts != 1) return bad("exactly one of prompt, messages and tokens is needed");
  if (batch.text && batch.text->empty()) return bad("the prompt is empty");
  return batch;
}

}  // namespace

BatchLine read_batch_line(std::string_view line) {
  const Result<Json> object = read_object(line);
  if (!object.ok()) return {"", object.error()};
  const auto id = object->find("id");
  if (id == object->end()) return {"", read_request(*object, line)};
  if (!id->is_string() && !id->is_number_integer()) {
    return {"", bad(must_be("id", *id, "a string or a whole number of 64 bits"))};
  }
  return {id->dump(), read_request(*object, line)};
}

Result<ScoreLine> read_score_line(std::string_view line) {
  const Result<Json> object = read_object(line);
  if (!object.ok()) return object.error();
  ScoreLine result;
  for (const auto& [key, value] : object->items()) {
    Status status;
    if (key == "name") {
      status = read_text(key, value, result.name);
    } else if (key == "text") {
      status = read_text(key, value, result.text);
    } else if (key == "tokens") {
      status = read_ids(key, value, result.tokens);
    } else {
      status = bad("unknown member \"" + key + "\"");
    }
    if (!status.ok()) return status.error();
  }
  if (result.text.has_value() == object->contains("tokens")) return bad("exactly one of tokens and text is needed");
  return result;
}

Result<AnswerHead> read_answer_head(std::string_view line) {
  const Result<Json> object = read_object(line);
  if (!object.ok()) return object.error();
  AnswerHead head;
  if (object->contains("id")) head.id_json = object->at("id").dump();
  try {
    if (object->contains("error")) {
      head.error_message = object->at("error").at("message").get<std::string>();
    } else {
      head.n_prompt_tokens = object->at("usage").at("prompt_tokens").get<int64_t>();
    }
  } catch (const Json::exception&) {
    return bad("not an answer of batch");
  }
  return head;
}

}  // namespace deepinfer::cli
