// Schemas with instances, one JSON object a line: what `grammar check --input` and `bench grammar` read. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer::bench {

struct GrammarCase {
  struct Test {
    std::optional<bool> valid;
    std::string data;  // written compact: members in received order, numbers as spelt
  };
  std::optional<std::string> name;
  std::string schema;
  std::vector<Test> tests;
};

/// The name, if it can be read, is there even when the rest cannot.
struct GrammarLine {
  std::optional<std::string> name;
  Result<GrammarCase> found;
};

/// {"name"?: S, "schema": ..., "tests"?: [{"valid"?: B, "data": ...}, ...]}
/// Errors   kInvalidArgument: no JSON, another member, a member given twice or of the wrong type
GrammarLine read_grammar_line(std::string_view line);

/// One JSON text written compact, as in GrammarCase.
Result<std::string> compact_json(std::string_view text);

}  // namespace deepinfer::bench
