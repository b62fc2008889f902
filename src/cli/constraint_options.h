// From the options of a constraint to the constraint: reads the files that they name. Main thread, at the start.
#pragma once

#include <optional>

#include "cli/arguments.h"
#include "deepinfer/constraint.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

/// How schemas are read, remotes included.
/// Errors   kIo, kInvalidArgument: a folder of --remotes cannot be read or holds too much
Result<grammar::SchemaOptions> make_schema_options(const ConstraintArguments& arguments);

/// Nothing if no option asks for a constraint. Whether a schema, pattern or grammar is refused is for grammar::compile().
/// Errors   kIo, kInvalidArgument: a file cannot be read or is over the limit, a schema is no JSON, a grammar no UTF-8
Result<std::optional<grammar::Constraint>> make_constraint(const ConstraintArguments& arguments);

}  // namespace deepinfer::cli
