#include "protocol/request_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "protocol/field_rules.h"
#include "protocol/schema_check.h"
#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a boolean";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  return "";
}

/// How a value is shown in a message.
std::string shown(const json::Value& value) {
  constexpr size_t kNumberBytesMax = 40;
  if (value.is(Kind::kBool)) return value.boolean ? "true" : "false";
  if (value.is(Kind::kNumber)) return value.text.substr(0, kNumberBytesMax);
  if (value.is(Kind::kString)) return quoted_for_message(value.text);
  return std::string(name_of(value.kind));
}

std::string shown(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  return {text, end};
}

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_neutral(const json::Value& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::kNothing:
      return false;
    case Neutral::kFalse:
      return value.is(Kind::kBool) && !value.boolean;
    case Neutral::kEmpty:
      return value.is(Kind::kArray) && value.items.empty();
    case Neutral::kReasoningOnly:
      return value.is(Kind::kArray) && std::all_of(value.items.begin(), value.items.end(), [](const json::Value& item) {
               return item.is(Kind::kString) && item.text == "reasoning.encrypted_content";
             });
    case Neutral::kDisabled:
      return value.is(Kind::kString) && value.text == "disabled";
    case Neutral::kTextOnly:
      return value.is(Kind::kArray) && value.items.size() == 1 && value.items[0].is(Kind::kString) &&
             value.items[0].text == "text";
  }
  return false;
}

std::string_view allowed_by(Neutral neutral) {
  switch (neutral) {
    case Neutral::kNothing:
      break;
    case Neutral::kFalse:
      return ", only false is allowed";
    case Neutral::kEmpty:
      return ", only [] is allowed";
    case Neutral::kDisabled:
      return ", only \"disabled\" is allowed";
    case Neutral::kTextOnly:
      return ", only [\"text\"] is allowed";
    case Neutral::kReasoningOnly:
      return ", only \"reasoning.encrypted_content\" is allowed in it";
  }
  return "";
}

/// {"50256": -100}: token ids as keys.
void read_logit_bias(const Field& bias, std::vector<std::pair<int32_t, double>>& out) {
  constexpr double kBiasMax = 100;
  if (!bias.may_be(Kind::kObject)) return;
  std::unordered_set<int64_t> seen;
  for (const json::Member& member : bias.value().members) {
    const auto id = to_integer(member.key);
    if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max())
      return bias.refuse("the key " + quoted_for_message(member.key) + " is no token id");
    if (!seen.insert(*id).second) return bias.refuse("token " + std::to_string(*id) + " is given twice");
    const Field weight = bias.at(member);
    const auto number = weight.number(-kBiasMax, kBiasMax);
    if (weight.ok() && !number) weight.refuse_value("is not a number");
    if (!weight.ok()) return;
    out.emplace_back(static_cast<int32_t>(*id), *number);
  }
}

constexpr int32_t kEffortNone = 0;
constexpr Spelling<int32_t> kEffortNames[] = {
    {"none", kEffortNone}, {"minimal", kEffortLow}, {"low", kEffortLow}, {"medium", kEffortHigh},
    {"high", kEffortHigh}, {"xhigh", kEffortHigh},  {"max", kEffortMax}, {"ultra", kEffortMax},
};

/// A name, or a whole number from 1 to 100: the scale that the model was trained on.
std::optional<int32_t> read_effort(const Field& effort) {
  if (!effort.is_given()) return std::nullopt;
  if (effort.is(Kind::kString)) return effort.one_of(kEffortNames);
  if (!effort.is(Kind::kNumber)) effort.refuse_value("is neither the name of an effort nor a number from 1 to 100");
  const auto number = effort.integer(1, kEffortMax);
  if (!number) return std::nullopt;
  return static_cast<int32_t>(*number);
}

}  // namespace

void FirstError::add(std::string path, std::string_view what) {
  if (error_) return;
  ApiError error;
  error.message = (path.empty() ? "body" : path) + ": ";
  error.message += what;
  error.param = std::move(path);
  error_ = std::move(error);
}

Field Field::operator[](std::string_view key) const& {
  Field field(*this, key, 0, nullptr);
  if (value_ == nullptr) return field;
  for (const json::Member& member : value_->members) {
    if (member.key != key) continue;
    if (field.value_ != nullptr) field.refuse("given twice");
    field.value_ = &member.value;
  }
  return field;
}

Field Field::item(size_t idx) const& { return {*this, {}, idx, &value_->items[idx]}; }

Field Field::at(const json::Member& member) const& { return {*this, member.key, 0, &member.value}; }

std::string Field::path() const {
  if (up_ == nullptr) return {};
  std::string path = up_->path();
  if (key_.data() == nullptr) return path + '[' + std::to_string(idx_) + ']';
  if (!path.empty()) path += '.';
  return path.append(key_);
}

void Field::refuse(std::string_view what) const {
  if (errors_->ok()) errors_->add(path(), what);
}

void Field::refuse_value(std::string_view what) const {
  if (!errors_->ok()) return;
  errors_->add(path(), value_ == nullptr ? "missing" : shown(*value_) + ' ' + std::string(what));
}

bool Field::needs(Kind kind) const {
  if (value_ == nullptr)
    refuse("missing, needs " + std::string(name_of(kind)));
  else if (!value_->is(kind))
    refuse_value("is not " + std::string(name_of(kind)));
  return errors_->ok();
}

bool Field::may_be(Kind kind) const { return is_given() && needs(kind); }

std::optional<bool> Field::boolean() const {
  if (!may_be(Kind::kBool)) return std::nullopt;
  return value_->boolean;
}

std::optional<std::string_view> Field::text() const {
  if (!may_be(Kind::kString)) return std::nullopt;
  return value_->text;
}

std::string_view Field::needed_text() const { return needs(Kind::kString) ? std::string_view(value_->text) : ""; }

std::optional<int64_t> Field::integer(int64_t min, int64_t max) const {
  if (!may_be(Kind::kNumber)) return std::nullopt;
  const auto value = to_integer(value_->text);
  if (value && *value >= min && *value <= max) return value;
  refuse_value("is not a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return std::nullopt;
}

std::optional<double> Field::number(double min, double max) const {
  if (!may_be(Kind::kNumber)) return std::nullopt;
  double value = 0;  // stays so for what is too small for a double
  std::from_chars(value_->text.data(), value_->text.data() + value_->text.size(), value);
  if (value >= min && value <= max) return value;
  refuse_value("is not from " + shown(min) + " to " + shown(max));
  return std::nullopt;
}

void check_unread_fields(const Field& body, Api api) {
  for (const RefusedField& rule : kRefusedFields) {
    if ((rule.apis & bit_of(api)) == 0) continue;
    const Field field = body[rule.name];
    if (field.is_given() && !is_neutral(field.value(), rule.neutral))
      field.refuse_value("is not supported: " + std::string(rule.why) + std::string(allowed_by(rule.neutral)));
  }
  // Ignored or not: given twice is a mistake.
  for (const IgnoredField& rule : kIgnoredFields)
    if ((rule.apis & bit_of(api)) != 0) static_cast<void>(body[rule.name]);
}

void read_model_and_stream(const Field& body, ApiRequest& out) {
  out.model = body["model"].needed_text();
  out.stream = body["stream"].boolean().value_or(false);
}

void read_sampling(const Field& body, SamplingFields& out) {
  constexpr double kPenaltyMax = 2;
  constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
  out.temperature = body["temperature"].number(0, 2);
  const Field top_p = body["top_p"];
  out.top_p = top_p.number(0, 1);
  if (out.top_p == 0.0) top_p.refuse_value("is not above 0 and up to 1");
  out.top_k = body["top_k"].integer(-1, std::numeric_limits<int32_t>::max());
  out.min_p = body["min_p"].number(0, 1);
  out.presence_penalty = body["presence_penalty"].number(-kPenaltyMax, kPenaltyMax);
  out.frequency_penalty = body["frequency_penalty"].number(-kPenaltyMax, kPenaltyMax);
  if (const auto seed = body["seed"].integer(0, kInt64Max)) out.seed = static_cast<uint64_t>(*seed);
  read_logit_bias(body["logit_bias"], out.logit_bias);
}

void read_stop(const Field& stop, bool may_be_text, const RequestLimits& limits, std::vector<std::string>& out) {
  const auto add = [&](const Field& field) {
    const std::string_view text = field.needed_text();
    if (text.empty()) return field.refuse("\"\" is too short, a stop string has at least 1 byte");
    if (static_cast<int64_t>(text.size()) > limits.stop_bytes_max)
      return field.refuse(std::to_string(text.size()) + " bytes, at most " + std::to_string(limits.stop_bytes_max));
    out.emplace_back(text);
  };
  if (!stop.is_given()) return;
  if (may_be_text && stop.is(Kind::kString)) return add(stop);
  if (may_be_text && !stop.is(Kind::kArray)) return stop.refuse_value("is neither a string nor an array of strings");
  if (!stop.needs(Kind::kArray)) return;
  if (static_cast<int64_t>(stop.size()) > limits.n_stop_max)
    return stop.refuse(std::to_string(stop.size()) + " stop strings, at most " + std::to_string(limits.n_stop_max));
  for (size_t idx = 0; idx < stop.size() && stop.ok(); ++idx) add(stop.item(idx));
}

void read_effort_field(const Field& effort, Conversation& out) {
  const auto level = read_effort(effort);
  if (level == kEffortNone)
    out.thinking = false;
  else
    out.effort = level.value_or(kEffortHigh);
}

void read_thinking(const Field& thinking, const Field& effort, Conversation& out) {
  static constexpr Spelling<bool> kTypes[] = {{"enabled", true}, {"adaptive", true}, {"disabled", false}};
  read_effort_field(effort, out);
  if (!thinking.may_be(Kind::kObject)) return;
  const auto type = thinking["type"].needed_one_of(kTypes);
  out.thinking = type.value_or(out.thinking);
  // Read for its type alone: how long the model thinks is its own choice, steered by the effort.
  thinking["budget_tokens"].integer(0, std::numeric_limits<int64_t>::max());
}

void check_schema(const Field& schema) {
  const auto problem = find_schema_problem(schema.value());
  if (problem) schema.refuse("is no JSON Schema: " + *problem);
}

void read_format(const Field& format, const FormatShape& shape, Conversation& out) {
  if (!format.may_be(Kind::kObject)) return;
  const auto kind = format["type"].needed_one_of(shape.types);
  if (!kind) return;
  out.response_format = *kind;
  if (kind == ResponseFormat::kRegex) out.response_regex = format["regex"].needed_text();
  if (kind != ResponseFormat::kJsonSchema) return;

  const Field nested = format["json_schema"];
  if (shape.is_schema_nested && !nested.needs(Kind::kObject)) return;
  const Field& holder = shape.is_schema_nested ? nested : format;
  const Field name = holder["name"];
  if (shape.needs_name) name.needs(Kind::kString);
  name.text();
  holder["description"].text();
  holder["strict"].boolean();
  const Field schema = holder["schema"];
  if (schema.is_missing()) return schema.refuse("missing, needs a JSON Schema");
  check_schema(schema);
  if (schema.ok()) out.response_schema = schema.value();
}

}  // namespace deepinfer::protocol
