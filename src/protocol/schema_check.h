// Whether a JSON value is a JSON Schema as to its form: keywords hold what the meta-schema of its dialect asks for, and
// references stay inside. What a grammar can make of it is not asked here. Pure function, any thread.
#pragma once

#include <optional>
#include <string>

#include "text/json.h"

namespace deepinfer::protocol {

/// What is wrong, in one line beginning with the place in the schema, or nothing. The dialect is 2020-12 unless $schema
/// names draft 4, 6, 7 or 2019-09. Unknown keywords may hold anything; regular expressions are not looked into.
/// Cost     linear; recursion as deep as the value, which json::parse() bounds
/// Source   json-schema.org, the meta-schemas of the five dialects
std::optional<std::string> find_schema_problem(const json::Value& schema);

}  // namespace deepinfer::protocol
