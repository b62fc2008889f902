// Options of constraints, which several commands have, and the commands about grammars alone. For arguments.cc.
#pragma once

#include <span>
#include <string>

#include "cli/arguments.h"
#include "cli/option_table.h"

namespace deepinfer::cli {

void add_constraint(OptionTable& table, ConstraintArguments& constraint);

/// After the table's parse(): at most one constraint, and the options of schemas only where a schema is given. `has_input`:
/// schemas come from elsewhere.
Status check_constraint(const OptionTable& table, const ConstraintArguments& constraint, bool has_input = false);

Result<Arguments> parse_grammar(std::span<const std::string> words, const Environment& environment);
Result<Arguments> parse_grammar_bench(std::span<const std::string> words, const Environment& environment);

}  // namespace deepinfer::cli
