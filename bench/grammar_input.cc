#include "bench/grammar_input.h"

#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "text/json.h"
#include "text/utf8.h"

namespace deepinfer::bench {

namespace {

using json::Kind;
using json::Value;

// Deeper than any schema that is accepted, so that refusing a deep one is the reader's business; the JSON reader goes down
// a level a frame on the main thread's stack.
constexpr json::Limits kLimits{.depth_max = 10'100};

Error bad(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

std::string compact(const Value& value) { return json::to_string(value, json::Style::kCompact); }

/// Members are known and not repeated.
Status check_members(const Value& object, std::initializer_list<std::string_view> known, std::string_view what) {
  if (!object.is(Kind::kObject)) return bad(std::string(what) + " is not a JSON object");
  for (const json::Member& member : object.members) {
    bool is_known = false;
    for (const std::string_view name : known) is_known = is_known || name == member.key;
    if (!is_known) return bad("unknown member " + quoted_for_message(member.key) + " of " + std::string(what));
    if (object.find(member.key) != &member.value)
      return bad(quoted_for_message(member.key) + " is given twice in " + std::string(what));
  }
  return {};
}

Result<GrammarCase::Test> read_test(const Value& value, size_t index) {
  const std::string what = "tests[" + std::to_string(index) + "]";
  DI_RETURN_IF_ERROR(check_members(value, {"valid", "data"}, what));
  GrammarCase::Test test;
  if (const Value* valid = value.find("valid")) {
    if (!valid->is(Kind::kBool)) return bad(what + ": valid is neither true nor false");
    test.valid = valid->boolean;
  }
  const Value* data = value.find("data");
  if (data == nullptr) return bad(what + " has no data");
  test.data = compact(*data);
  return test;
}

Result<GrammarCase> read_case(const Value& line) {
  DI_RETURN_IF_ERROR(check_members(line, {"name", "schema", "tests"}, "the line"));
  GrammarCase result;
  if (const Value* name = line.find("name")) {
    if (!name->is(Kind::kString)) return bad("name is not a string");
    result.name = name->text;
  }
  const Value* schema = line.find("schema");
  if (schema == nullptr) return bad("the line has no schema");
  result.schema = compact(*schema);
  const Value* tests = line.find("tests");
  if (tests == nullptr) return result;
  if (!tests->is(Kind::kArray)) return bad("tests is not a list");
  for (const Value& item : tests->items) {
    DI_ASSIGN_OR_RETURN(GrammarCase::Test test, read_test(item, result.tests.size()));
    result.tests.push_back(std::move(test));
  }
  return result;
}

}  // namespace

GrammarLine read_grammar_line(std::string_view line) {
  const Result<Value> value = json::parse(line, kLimits);
  if (!value.ok()) return {std::nullopt, value.error()};
  std::optional<std::string> name;
  if (value->is(Kind::kObject)) {
    const Value* found = value->find("name");
    if (found != nullptr && found->is(Kind::kString)) name = found->text;
  }
  return {std::move(name), read_case(*value)};
}

Result<std::string> compact_json(std::string_view text) {
  const Result<Value> value = json::parse(text, kLimits);
  if (!value.ok()) return value.error();
  return compact(*value);
}

}  // namespace deepinfer::bench
