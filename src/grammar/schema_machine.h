// JSON texts that are valid under a schema, as a machine over bytes: structure is a stack of open arrays and objects, and
// what the schema still wants of each open value is a formula over its atoms. Nothing is expanded ahead.
#pragma once

#include <memory>
#include <variant>

#include "grammar/fuel.h"
#include "grammar/grammar.h"
#include "grammar/machine.h"
#include "grammar/schema.h"

namespace deepinfer::grammar {

/// The machine owns schema and languages. One JSON text, no blanks around it; between tokens blanks as options say.
/// Names: a declared name that an object already has is never offered again. Any other name neither, where a repetition
/// could make a difference to a reader that takes the last value (counted members, unique items, branches that look at
/// it); elsewhere such names are not remembered, so that texts of any length stay in few states.
///
/// Everything that step() lets through can be completed to a valid text, except where the machine cannot know: names or
/// items that only together cannot be found (contradictory branches of anyOf and oneOf, finite choices used up by
/// uniqueItems in long arrays), and values too deeply nested to be searched. A text that complete() accepts is valid always.
/// distance() is of a way that is there, not always the shortest: some next byte brings it down. Not so, and then a guess, where
/// no way was found (names or values that only a search over several members finds), and beside uniqueItems and unevaluated..
/// string_body(): `after` of a string that is compared with others, or of a name that is remembered, stands for all texts
/// within `reach`.
/// failure()  says so at once where the schema is too deeply nested in place, or Languages or its fuel ran out
std::unique_ptr<Machine> make_schema_machine(std::unique_ptr<Languages> languages, Schema schema,
                                             const SchemaOptions& options);

/// The same; a failure of the beginning as a refusal.
std::variant<std::unique_ptr<Machine>, Refusal> build_schema_machine(std::unique_ptr<Languages> languages,
                                                                     Schema schema, const SchemaOptions& options);

}  // namespace deepinfer::grammar
