// JSON Schema text -> Schema. Every keyword is enforced, refused by name, or (where the dialect does not define it) listed.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "grammar/fuel.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"

namespace deepinfer::grammar {

struct ReadSchema {
  Schema schema;
  std::vector<Ignored> ignored;
};

/// Draft-04, 06, 07, 2019-09 and 2020-12 by `$schema`, else options.dialect. References: fragments, ids, anchors, dynamic
/// anchors ($dynamicRef and $recursiveRef are resolved by making a copy of a node per dynamic scope that differs), the
/// metaschemas (built in) and options.remotes. A reference cycle without an instance step is refused.
/// Cost     linear in the schema and what it refers to; spends `fuel`
std::variant<ReadSchema, Refusal> read_schema(Languages& languages, std::string_view text, const SchemaOptions& options,
                                              Fuel& fuel);

}  // namespace deepinfer::grammar
