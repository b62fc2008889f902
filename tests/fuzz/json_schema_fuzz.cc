// A byte of options, a schema up to the last newline, then an instance. What the machine accepts, walks through the
// masks included, is valid by the letter of JSON Schema (plain recursion over what was read); a valid instance is
// accepted.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "grammar/language.h"
#include "grammar/schema_reader.h"
#include "tests/fuzz/grammar_fuzz_walk.h"
#include "tests/unit/grammar/schema_evaluator.h"
#include "text/json.h"

namespace {

using namespace deepinfer::grammar;
namespace json = deepinfer::json;

SchemaOptions options_of(uint8_t byte) {
  SchemaOptions options;
  options.dialect = static_cast<Dialect>(byte % 5);
  byte /= 5;
  options.formats = (byte & 1) != 0 ? FormatPolicy::kAnnotate : FormatPolicy::kAssert;
  options.order = (byte & 2) != 0 ? PropertyOrder::kSchema : PropertyOrder::kAny;
  options.line_ends_max = (byte & 4) != 0 ? 0 : 1;
  options.blanks_max = (byte & 8) != 0 ? 0 : 2;
  options.escapes = (byte & 16) != 0 ? Escapes::kNeeded : Escapes::kAny;
  return options;
}

int32_t depth_of(const json::Value& value) {
  int32_t depth = 0;
  for (const json::Value& item : value.items) depth = std::max(depth, depth_of(item));
  for (const json::Member& member : value.members) depth = std::max(depth, depth_of(member.value));
  return depth + 1;
}

/// Steps that the evaluator may take for one value at each place.
class EvaluationCost {
 public:
  static constexpr int64_t kMax = 20'000;
  explicit EvaluationCost(const Schema& schema) : schema_(schema) {}

  int64_t of(NodeId id, int32_t depth) {
    const auto [at, is_new] = known_.try_emplace({id, depth}, kMax);
    if (!is_new) return at->second;
    const Node& node = schema_.nodes[static_cast<size_t>(id)];
    int64_t cost = 1;
    const auto add = [&](NodeId part, int32_t part_depth) {
      if (part_depth > 0 && cost < kMax) cost = std::min(kMax, cost + of(part, part_depth));
    };
    for (const NodeId part : node.all_of) add(part, depth);
    for (const auto& group : node.any_of)
      for (const NodeId part : group) add(part, depth);
    for (const auto& group : node.one_of)
      for (const NodeId part : group) add(part, depth);
    for (const NodeId part : node.none_of) add(part, depth);
    for (const Node::Conditional& conditional : node.conditionals) {
      add(conditional.if_node, depth);
      add(conditional.then_node, depth);
      add(conditional.else_node, depth);
    }
    for (const auto& [name, part] : node.dependent_schemas) add(part, depth);
    for (const auto& [name, part] : node.properties) add(part, depth - 1);
    for (const auto& [names, part] : node.pattern_properties) add(part, depth - 1);
    for (const NodeId part : node.prefix_items) add(part, depth - 1);
    add(node.additional_properties, depth - 1);
    add(node.property_names, 1);
    add(node.items, depth - 1);
    for (const auto& part : {node.contains, node.unevaluated_items, node.unevaluated_properties})
      if (part) add(*part, depth - 1);
    known_[{id, depth}] = cost;
    return cost;
  }

 private:
  const Schema& schema_;
  std::map<std::pair<NodeId, int32_t>, int64_t> known_;
};

class Judge {
 public:
  Judge(std::string_view schema, const SchemaOptions& options)
      : options_(options), fuel_(10'000'000, std::chrono::seconds(1)) {
    languages_.set_fuel(&fuel_);
    auto read = read_schema(languages_, schema, options_, fuel_);
    ReadSchema* schema_read = std::get_if<ReadSchema>(&read);
    DI_CHECK(schema_read != nullptr || fuel_.empty());
    if (schema_read == nullptr) return;
    schema_ = std::move(schema_read->schema);
    for (const Node& node : schema_.nodes) compares_items_ = compares_items_ || node.unique_items;
    is_read_ = schema_.nodes.size() < 2000;
  }

  /// Nothing: too much work, or beyond what plain numbers can tell.
  std::optional<bool> valid(const json::Value& value, std::string_view text) {
    if (!is_read_ || text.size() > 2000) return std::nullopt;
    if (compares_items_ && has_long_numbers(text)) return std::nullopt;
    EvaluationCost cost(schema_);
    if (cost.of(schema_.root, depth_of(value)) >= EvaluationCost::kMax) return std::nullopt;
    const bool valid = SchemaEvaluator(languages_, schema_).valid(value);
    if (languages_.exhausted()) return std::nullopt;
    return valid;
  }

  /// Precondition: the machine accepts the text.
  void check_accepted(std::string_view text) {
    const auto value = json::parse(text);
    if (!value.ok()) {
      const std::string& message = value.error().message;
      DI_CHECK(message.find("64-bit float") != std::string::npos || message.find("deeper") != std::string::npos);
      return;
    }
    DI_CHECK(valid(*value, text).value_or(true));
  }

 private:
  static bool has_long_numbers(std::string_view text) {
    int32_t n_digits = 0;
    for (const char c : text) {
      n_digits = c >= '0' && c <= '9' ? n_digits + 1 : 0;
      if (n_digits > 14 || c == 'e' || c == 'E' || c == '.') return true;
    }
    return false;
  }

  const SchemaOptions options_;
  Fuel fuel_;
  Languages languages_;
  Schema schema_;
  bool is_read_ = false, compares_items_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto [schema, instance] = fuzz::halves_of(input.substr(1));
  Constraint constraint;
  constraint.kind = Constraint::Kind::kJsonSchema;
  constraint.source = schema;
  constraint.schema = options_of(data[0]);
  const auto grammar = fuzz::compile_bounded(constraint);
  if (!grammar) return 0;
  Judge judge(schema, constraint.schema);
  if (const auto value = json::parse(instance); value.ok()) {
    const std::string text = json::to_string(*value, json::Style::kCompact);
    const auto accepted = fuzz::accepts(grammar, text);
    if (accepted.value_or(false)) judge.check_accepted(text);
    // Other spellings and orders may be left out.
    if (accepted && !*accepted && constraint.schema.order == PropertyOrder::kAny && text == instance)
      DI_CHECK(!judge.valid(*value, text).value_or(false));
  }
  fuzz::Random random(input);
  for (int i = 0; i < 2; ++i) {
    const auto walked = fuzz::Walk(grammar, false, random).run(16);
    if (walked) judge.check_accepted(*walked);
  }
  return 0;
}
