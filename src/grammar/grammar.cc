#include "grammar/grammar.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "grammar/compiled_grammar.h"
#include "grammar/ebnf.h"
#include "grammar/ebnf_machine.h"
#include "grammar/fuel.h"
#include "grammar/language.h"
#include "grammar/regex.h"
#include "grammar/regex_machine.h"
#include "grammar/schema_machine.h"
#include "grammar/schema_reader.h"
#include "grammar/tagged_machine.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

/// A machine or why there is none. Machines come without fuel.
struct Built {
  std::unique_ptr<Machine> machine;
  std::optional<Refusal> refusal;
  std::vector<Ignored> ignored;
};

Built refused(std::string pointer, std::string keyword, std::string reason) {
  return {nullptr, Refusal{std::move(pointer), std::move(keyword), std::move(reason)}, {}};
}

Built nothing_valid(std::string pointer, std::string keyword, std::string reason) {
  Built built = refused(std::move(pointer), std::move(keyword), std::move(reason));
  built.refusal->is_empty = true;
  return built;
}

std::string too_much(std::string_view what, const CompileLimits& limits) {
  return std::string(what) + " takes more than " + std::to_string(limits.n_steps) + " steps, " +
         std::to_string(limits.time.count()) + " ms or the memory of one grammar to compile";
}

Built build_regex(const Constraint& constraint, const CompileLimits& limits) {
  Fuel fuel(limits.n_steps, limits.time);
  auto languages = std::make_unique<Languages>();
  languages->set_fuel(&fuel);
  const Result<Lang> start = parse_regex(*languages, constraint.source, Match::kWhole);
  if (!start) return refused("", "regex", start.error().message);
  const bool is_nothing = languages->is_empty(*start);
  if (languages->exhausted() || fuel.empty()) return refused("", "regex", too_much("the pattern", limits));
  if (is_nothing) return nothing_valid("", "regex", "no text matches the pattern");
  languages->set_fuel(nullptr);
  return {make_regex_machine(std::move(languages), *start), {}, {}};
}

Built build_schema(std::string_view source, const SchemaOptions& options, const CompileLimits& limits) {
  Fuel fuel(limits.n_steps, limits.time);
  auto owned = std::make_unique<Languages>();
  Languages& languages = *owned;  // lives in the machine later
  languages.set_fuel(&fuel);
  std::variant<ReadSchema, Refusal> read = read_schema(languages, source, options, fuel);
  if (Refusal* refusal = std::get_if<Refusal>(&read)) return {nullptr, std::move(*refusal), {}};
  if (languages.exhausted() || fuel.empty()) return refused("#", "", too_much("the schema", limits));
  ReadSchema& schema = *std::get_if<ReadSchema>(&read);
  Built built;
  built.ignored = std::move(schema.ignored);
  built.machine = make_schema_machine(std::move(owned), std::move(schema.schema), options);
  built.machine->set_fuel(&fuel);
  const bool is_nothing = built.machine->start() == kDead;
  built.machine->set_fuel(nullptr);
  languages.set_fuel(nullptr);
  if (languages.exhausted() || fuel.empty() || !built.machine->failure().empty())
    return refused("#", "", too_much("the schema", limits));
  if (is_nothing && !built.machine->knows_all())
    return refused("#", "patternProperties",
                   "more than 6 patterns decide about a name, and no value was found to be valid");
  if (is_nothing) return nothing_valid("#", "", "no value is valid under the schema");
  return built;
}

Built build_choice(const Constraint& constraint) {
  if (constraint.choices.empty()) return refused("", "choice", "there is no choice");
  for (const std::string& choice : constraint.choices)
    if (find_ill_formed(choice))
      return refused("", "choice", "the choice " + quoted_for_message(choice) + " is not UTF-8");
  return {make_choice_machine(constraint.choices), {}, {}};
}

Built build_ebnf(const Constraint& constraint, const CompileLimits& limits) {
  Fuel fuel(limits.n_steps, limits.time);
  auto owned = std::make_unique<Languages>();
  Languages& languages = *owned;  // lives in the machine later
  languages.set_fuel(&fuel);
  const Result<Ebnf> grammar = parse_ebnf(languages, constraint.source, fuel);
  if (!grammar) return refused("", "ebnf", grammar.error().message);
  if (languages.exhausted() || fuel.empty()) return refused("", "ebnf", too_much("the grammar", limits));
  Result<std::unique_ptr<Machine>> machine = make_ebnf_machine(std::move(owned), *grammar, fuel);
  if (fuel.empty() || (machine && !(*machine)->failure().empty()))
    return refused("", "ebnf", too_much("the grammar", limits));
  if (!machine) return refused("", "ebnf", machine.error().message);
  return {std::move(*machine), {}, {}};
}

Built build(const Constraint& constraint, const CompileLimits& limits);

Built build_tagged(const Constraint& constraint, const CompileLimits& limits) {
  if (std::optional<std::string> reason = refuse_regions(constraint.regions, constraint.free_text))
    return refused("", "tagged", std::move(*reason));
  const auto deadline = Fuel::Clock::now() + limits.time;
  Built built;
  std::vector<TaggedRegion> regions;
  for (const Constraint::Region& region : constraint.regions) {
    CompileLimits left = limits;
    left.time = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Fuel::Clock::now());
    if (left.time.count() <= 0) return refused("", "tagged", too_much("all regions together", limits));
    Built content = build(*region.content, left);
    built.ignored.insert(built.ignored.end(), content.ignored.begin(), content.ignored.end());
    if (content.refusal) {
      content.refusal->reason = "region " + std::to_string(regions.size() + 1) + ": " + content.refusal->reason;
      return {nullptr, std::move(content.refusal), std::move(built.ignored)};
    }
    regions.push_back({region.begin, region.end, std::move(content.machine)});
  }
  built.machine = make_tagged_machine(std::move(regions), constraint.free_text, constraint.region_required);
  return built;
}

int64_t n_source_bytes(const Constraint& constraint) {
  size_t n_bytes = constraint.source.size();
  for (const std::string& choice : constraint.choices) n_bytes += choice.size();
  for (const Constraint::Region& region : constraint.regions)
    n_bytes += region.begin.size() + region.end.size() + (region.content ? region.content->source.size() : 0);
  return static_cast<int64_t>(n_bytes);
}

Built build(const Constraint& constraint, const CompileLimits& limits) {
  const int64_t n_bytes = n_source_bytes(constraint);
  if (n_bytes > limits.n_bytes_source)
    return refused("", "",
                   "the constraint has " + std::to_string(n_bytes) + " bytes; the limit is " +
                       std::to_string(limits.n_bytes_source));
  switch (constraint.kind) {
    case Constraint::Kind::kRegex:
      return build_regex(constraint, limits);
    case Constraint::Kind::kJsonSchema:
      return build_schema(constraint.source, constraint.schema, limits);
    case Constraint::Kind::kJsonObject:
      return build_schema(R"({"type":"object"})", constraint.schema, limits);
    case Constraint::Kind::kChoice:
      return build_choice(constraint);
    case Constraint::Kind::kEbnf:
      return build_ebnf(constraint, limits);
    case Constraint::Kind::kTagged:
      return build_tagged(constraint, limits);
  }
  return refused("", "", "unknown kind of constraint");
}

}  // namespace

Compiled compile(std::shared_ptr<const Vocabulary> vocabulary, const Constraint& constraint,
                 const CompileLimits& limits) {
  const auto begun = Fuel::Clock::now();
  Built built = build(constraint, limits);
  if (built.refusal) return {nullptr, std::move(built.refusal), std::move(built.ignored)};
  const auto again = [constraint, limits] { return build(constraint, limits).machine; };
  auto grammar = std::make_shared<CompiledGrammar>(std::move(vocabulary), std::move(built.machine), again);
  // What cannot begin is refused here, not in the middle of an answer.
  const auto begin = [&] {
    const std::shared_ptr<GrammarStates> states = grammar->states();
    static_cast<void>(states->mask(states->start()));
    return states->failure();
  };
  std::string cause = begin();
  if (constexpr auto kSoon = std::chrono::milliseconds(20); cause.empty() && Fuel::Clock::now() - begun < kSoon) {
    grammar->states()->prepare();
    cause = begin();  // of fresh states, if that took too much
  }
  if (!cause.empty())
    return {nullptr, Refusal{"", "", "the first mask of the constraint takes too much: " + cause},
            std::move(built.ignored)};
  return {std::move(grammar), std::nullopt, std::move(built.ignored)};
}

}  // namespace deepinfer::grammar
