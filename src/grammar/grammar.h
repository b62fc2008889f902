// Constraints on text, compiled once and shared; see docs/GRAMMAR.md for what each kind enforces, bounds and refuses.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/constraint.h"
#include "deepinfer/status.h"
#include "grammar/mask.h"
#include "grammar/vocabulary.h"

namespace deepinfer::grammar {

/// Limits of one compilation; beyond them it is refused.
struct CompileLimits {
  std::chrono::milliseconds time{250};
  int64_t n_steps = 20'000'000;
  int64_t n_bytes_source = int64_t{4} << 20;
};

/// Where and why a schema (or pattern, or grammar) is refused.
struct Refusal {
  std::string pointer;  // JSON pointer of the keyword as a URI fragment ("#/properties/a/pattern"); "" outside schemas
  std::string keyword;  // "pattern"; for regexes and grammars "regex" or "ebnf"
  std::string reason;
  bool is_empty = false;  // the constraint is understood and could be enforced, but no text satisfies it
};

/// A keyword or format that the dialect does not define.
struct Ignored {
  std::string pointer, keyword;
};

/// A constraint over one vocabulary, its states and masks. Shared by sequences and threads; growing caches are locked
/// inside. States found later than `n_bytes_max` allows are still right, only no longer remembered by new sequences.
class CompiledGrammar;

struct Compiled {
  std::shared_ptr<CompiledGrammar> grammar;  // null if refused
  std::optional<Refusal> refusal;
  std::vector<Ignored> ignored;
};

/// Compiles on the calling thread, first mask included: call it from a worker, never from an engine's loop.
/// Cost     bounded by `limits`; a refusal names the limit
Compiled compile(std::shared_ptr<const Vocabulary> vocabulary, const Constraint& constraint,
                 const CompileLimits& limits = {});

}  // namespace deepinfer::grammar
