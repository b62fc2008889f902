// Texts of a grammar as a machine over bytes: rows of an Earley parser, interned so that equal rows are one state.
#pragma once

#include <memory>
#include <variant>

#include "deepinfer/status.h"
#include "grammar/ebnf.h"
#include "grammar/fuel.h"
#include "grammar/language.h"
#include "grammar/machine.h"

namespace deepinfer::grammar {

/// For every context-free grammar: left recursion of any kind, parts that may be empty and ambiguity included. A state is
/// dead if and only if no text goes on like that; distances are exact (lengths are cut at 2^60).
///
/// A grammar without a rule that needs a stack becomes a regex machine. In others recursion costs states only where it
/// nests: lists by left or right recursion come back to the same states. Memory and work of a byte are bounded by the number
/// of open calls, a square of it where the grammar is ambiguous.
///
/// Spends `fuel`, which `languages` must have, too; the machine comes without.
/// Errors   kInvalidArgument: no text matches, or the grammar is too large; where fuel or languages ran out the result
///          is of no use, which the caller looks at
/// failure()  out of steps, time or memory
Result<std::unique_ptr<Machine>> make_ebnf_machine(std::unique_ptr<Languages> languages, const Ebnf& grammar,
                                                   Fuel& fuel);

}  // namespace deepinfer::grammar
