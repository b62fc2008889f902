// Says by the letter of JSON Schema whether a value is valid under a read Schema: plain recursion over nodes, no automata
// but for the languages of strings and numbers. For tests.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "grammar/language.h"
#include "grammar/schema.h"
#include "text/json.h"

namespace deepinfer::grammar {

class SchemaEvaluator {
 public:
  SchemaEvaluator(Languages& languages, const Schema& schema) : languages_(languages), schema_(schema) {}

  bool valid(const json::Value& value) { return check(schema_.root, value).valid; }

 private:
  struct Verdict {
    bool valid = true;
    std::set<std::string> names;  // evaluated members
    std::set<size_t> items;       // evaluated items

    void take(const Verdict& other) {
      names.insert(other.names.begin(), other.names.end());
      items.insert(other.items.begin(), other.items.end());
    }
  };

  Verdict check(NodeId id, const json::Value& value) {
    const Node& node = schema_.nodes[static_cast<size_t>(id)];
    Verdict verdict;
    check_kind(node, value, verdict);
    check_in_place(node, value, verdict);
    if (value.is(json::Kind::kObject)) check_unevaluated_names(node, value, verdict);
    if (value.is(json::Kind::kArray)) check_unevaluated_items(node, value, verdict);
    if (!verdict.valid) verdict = {false, {}, {}};
    return verdict;
  }

  void check_kind(const Node& node, const json::Value& value, Verdict& verdict) {
    const auto require = [&](bool holds) { verdict.valid = verdict.valid && holds; };
    switch (value.kind) {
      case json::Kind::kNull:
        return require((node.types & kNullBit) != 0);
      case json::Kind::kBool:
        return require((node.types & kBooleanBit) != 0 && (value.boolean ? node.may_be_true : node.may_be_false));
      case json::Kind::kNumber:
        return require((node.types & kNumberBit) != 0 &&
                       (!node.number || languages_.accepts(*node.number, value.text)));
      case json::Kind::kString: {
        const auto n = std::count_if(value.text.begin(), value.text.end(), [](char c) { return (c & 0xC0) != 0x80; });
        require((node.types & kStringBit) != 0 && n >= node.min_length);
        require(node.max_length < 0 || n <= node.max_length);
        return require(languages_.accepts(node.text, value.text));
      }
      case json::Kind::kArray:
        require((node.types & kArrayBit) != 0);
        return check_array(node, value, verdict);
      case json::Kind::kObject:
        require((node.types & kObjectBit) != 0);
        return check_object(node, value, verdict);
    }
  }

  void check_array(const Node& node, const json::Value& value, Verdict& verdict) {
    const auto require = [&](bool holds) { verdict.valid = verdict.valid && holds; };
    const auto n = static_cast<int64_t>(value.items.size());
    require(n >= node.min_items && (node.max_items < 0 || n <= node.max_items));
    int64_t n_contained = 0;
    std::set<std::string> seen;
    for (size_t i = 0; i < value.items.size(); ++i) {
      const bool in_prefix = i < node.prefix_items.size();
      require(check(in_prefix ? node.prefix_items[i] : node.items, value.items[i]).valid);
      if (in_prefix || node.has_items || node.items != kTrueNode) verdict.items.insert(i);
      if (node.contains && check(*node.contains, value.items[i]).valid) {
        ++n_contained;
        if (node.contains_evaluates) verdict.items.insert(i);
      }
      if (node.unique_items) require(seen.insert(canonical(value.items[i])).second);
    }
    if (node.contains)
      require(n_contained >= node.min_contains && (node.max_contains < 0 || n_contained <= node.max_contains));
  }

  void check_object(const Node& node, const json::Value& value, Verdict& verdict) {
    const auto require = [&](bool holds) { verdict.valid = verdict.valid && holds; };
    const auto n = static_cast<int64_t>(value.members.size());
    require(n >= node.min_properties && (node.max_properties < 0 || n <= node.max_properties));
    for (const std::string& name : node.required) require(value.find(name) != nullptr);
    for (const auto& [name, others] : node.dependent_required) {
      if (value.find(name) == nullptr) continue;
      for (const std::string& other : others) require(value.find(other) != nullptr);
    }
    for (const json::Member& member : value.members) {
      bool declared = false;
      for (const auto& [name, id] : node.properties) {
        if (name != member.key) continue;
        declared = true;
        require(check(id, member.value).valid);
      }
      for (const auto& [names, id] : node.pattern_properties) {
        if (!languages_.accepts(names, member.key)) continue;
        declared = true;
        require(check(id, member.value).valid);
      }
      if (!declared) require(check(node.additional_properties, member.value).valid);
      if (declared || node.has_additional_properties || node.additional_properties != kTrueNode)
        verdict.names.insert(member.key);
      require(check(node.property_names, json::Value::of(std::string_view(member.key))).valid);
    }
  }

  void check_in_place(const Node& node, const json::Value& value, Verdict& verdict) {
    const auto require = [&](bool holds) { verdict.valid = verdict.valid && holds; };
    const auto apply = [&](NodeId id) {
      const Verdict other = check(id, value);
      if (other.valid) verdict.take(other);
      return other.valid;
    };
    for (const NodeId id : node.all_of) require(apply(id));
    for (const auto& group : node.any_of) require(std::count_if(group.begin(), group.end(), apply) > 0);
    for (const auto& group : node.one_of) require(std::count_if(group.begin(), group.end(), apply) == 1);
    for (const NodeId id : node.none_of) require(!check(id, value).valid);
    for (const auto& conditional : node.conditionals)
      require(apply(apply(conditional.if_node) ? conditional.then_node : conditional.else_node));
    for (const auto& [name, id] : node.dependent_schemas) {
      if (value.is(json::Kind::kObject) && value.find(name) != nullptr) require(apply(id));
    }
  }

  void check_unevaluated_names(const Node& node, const json::Value& value, Verdict& verdict) {
    if (!node.unevaluated_properties) return;
    for (const json::Member& member : value.members) {
      if (!verdict.names.insert(member.key).second) continue;
      verdict.valid = verdict.valid && check(*node.unevaluated_properties, member.value).valid;
    }
  }

  void check_unevaluated_items(const Node& node, const json::Value& value, Verdict& verdict) {
    if (!node.unevaluated_items) return;
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (!verdict.items.insert(i).second) continue;
      verdict.valid = verdict.valid && check(*node.unevaluated_items, value.items[i]).valid;
    }
  }

  /// Equal for equal values (numbers as far as a double tells them apart).
  static std::string canonical(const json::Value& value) {
    std::string out;
    switch (value.kind) {
      case json::Kind::kNumber: {
        char buffer[40];
        std::snprintf(buffer, sizeof buffer, "%.17g", std::strtod(value.text.c_str(), nullptr) + 0.0);
        return buffer;
      }
      case json::Kind::kArray:
        for (const json::Value& item : value.items) out += canonical(item) + ",";
        return "[" + out + "]";
      case json::Kind::kObject: {
        std::map<std::string, std::string> members;
        for (const json::Member& member : value.members) members[member.key] = canonical(member.value);
        for (const auto& [name, text] : members)
          out += json::to_string(json::Value::of(std::string_view(name)), json::Style::kCompact) + ":" + text + ",";
        return "{" + out + "}";
      }
      default:
        return json::to_string(value, json::Style::kCompact);
    }
  }

  Languages& languages_;
  const Schema& schema_;
};

}  // namespace deepinfer::grammar
