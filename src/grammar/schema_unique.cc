#include "grammar/schema_unique.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/numbers.h"
#include "text/json.h"

namespace deepinfer::grammar {
namespace {

void append_canonical(const json::Value& value, std::string& out) {
  switch (value.kind) {
    case json::Kind::kNull:
      out += 'z';
      return;
    case json::Kind::kBool:
      out += value.boolean ? 't' : 'f';
      return;
    case json::Kind::kNumber:
      out += 'n';
      out += canonical_number(value.text);
      out += ',';
      return;
    case json::Kind::kString:
      json::append_quoted(value.text, out);
      return;
    case json::Kind::kArray:
      out += '[';
      for (const json::Value& item : value.items) append_canonical(item, out);  // nested at most json::Limits deep
      out += ']';
      return;
    case json::Kind::kObject:
      std::vector<std::pair<std::string_view, const json::Value*>> members;
      members.reserve(value.members.size());
      for (const json::Member& member : value.members) members.emplace_back(member.key, &member.value);
      std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      out += '{';
      for (const auto& [name, member] : members) {
        json::append_quoted(name, out);
        append_canonical(*member, out);
      }
      out += '}';
  }
}

}  // namespace

std::optional<std::string> canonical_value(std::string_view json) {
  if (!json.empty() && (json[0] == '-' || (json[0] >= '0' && json[0] <= '9'))) return "n" + canonical_number(json);
  json::Limits limits;
  limits.depth_max = 100;
  const Result<json::Value> value = json::parse(json, limits);
  if (!value.ok()) return std::nullopt;
  if (value.value().kind == json::Kind::kString) return "s" + value.value().text;
  std::string text;
  append_canonical(value.value(), text);
  return text;
}

}  // namespace deepinfer::grammar
