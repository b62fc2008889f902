#include "bench/grammar_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "bench/grammar_input.h"
#include "bench/grammar_replay.h"
#include "grammar/compiled_grammar.h"
#include "platform/cpu_features.h"

#ifndef DI_COMMIT
#define DI_COMMIT "unknown"
#endif

namespace deepinfer::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Totals {
  int64_t n_schemas = 0, n_refused = 0;
  int64_t n_instances = 0, n_accepted = 0, n_bugs = 0;
  GrammarTimes times;
  std::vector<float> compile, refuse, bytes;
  struct Slow {
    float us = 0;
    std::string name;
  };
  Slow mask, compiled;  // the slowest
};

void note(Totals::Slow& slowest, const std::vector<float>& times, const std::string& name) {
  if (times.empty()) return;
  const float us = *std::max_element(times.begin(), times.end());
  if (us > slowest.us) slowest = {us, name};
}

Status run_case(const GrammarModel& model, const GrammarCase& task, const grammar::SchemaOptions& schema,
                Totals& totals) {
  GrammarTimes times;
  const TimedGrammar timed = compile_timed(
      model, {.kind = grammar::Constraint::Kind::kJsonSchema, .source = task.schema, .schema = schema}, times);
  const std::string name = task.name.value_or("");
  ++totals.n_schemas;
  if (!timed.compiled.grammar) {
    ++totals.n_refused;
    totals.refuse.push_back(static_cast<float>(timed.compile_us));
    return {};
  }
  totals.compile.push_back(static_cast<float>(timed.compile_us));
  note(totals.compiled, {totals.compile.back()}, name);
  for (const GrammarCase::Test& test : task.tests) {
    if (!test.valid.value_or(true)) continue;
    DI_ASSIGN_OR_RETURN(const Replay result, replay(model, timed.compiled.grammar, test.data, times));
    ++totals.n_instances;
    if (result.accepted) ++totals.n_accepted;
    if (!result.bug.empty()) ++totals.n_bugs;
  }
  totals.bytes.push_back(static_cast<float>(timed.compiled.grammar->n_bytes()));
  note(totals.mask, times.mask, name);
  totals.times.append(times);
  return {};
}

Json times_of(const std::vector<float>& times) {
  const Percentiles p = percentiles(times);
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"p999", p.p999}, {"max", p.max}, {"n", p.n}};
}

void print_json(const GrammarModel& model, const Totals& totals, std::FILE* out) {
  const Json line = {{"bench", "grammar"},
                     {"commit", DI_COMMIT},
                     {"machine", cpu_model_name()},
                     {"vocabulary", model.vocabulary->n_head()},
                     {"vocabulary_seconds", model.vocabulary_seconds},
                     {"vocabulary_bytes", model.vocabulary->n_bytes()},
                     {"schemas", totals.n_schemas},
                     {"refused", totals.n_refused},
                     {"instances", totals.n_instances},
                     {"instances_accepted", totals.n_accepted},
                     {"bugs", totals.n_bugs},
                     {"mask_us", times_of(totals.times.mask)},
                     {"descriptor_us", times_of(totals.times.descriptor)},
                     {"advance_us", times_of(totals.times.advance)},
                     {"compile_us", times_of(totals.compile)},
                     {"refuse_us", times_of(totals.refuse)},
                     {"compiled_bytes", times_of(totals.bytes)},
                     {"slowest_mask", totals.mask.name},
                     {"slowest_compile", totals.compiled.name}};
  std::fprintf(out, "%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_row(const char* name, const std::vector<float>& times, std::FILE* out) {
  const Percentiles p = percentiles(times);
  std::fprintf(out, "%-22s %10.2f %10.2f %10.2f %10.2f %10.2f %10lld\n", name, p.p50, p.p90, p.p99, p.p999, p.max,
               static_cast<long long>(p.n));
}

void print_table(const GrammarModel& model, const Totals& totals, std::FILE* out) {
  const auto n = [](int64_t value) { return static_cast<long long>(value); };
  std::fprintf(out, "%s, commit %s\n", cpu_model_name().c_str(), DI_COMMIT);
  std::fprintf(out, "vocabulary %d tokens, built in %.3f s, %lld bytes\n", model.vocabulary->n_head(),
               model.vocabulary_seconds, n(model.vocabulary->n_bytes()));
  std::fprintf(out, "%lld schemas, %lld refused; %lld valid instances, %lld accepted; %lld bugs\n", n(totals.n_schemas),
               n(totals.n_refused), n(totals.n_instances), n(totals.n_accepted), n(totals.n_bugs));
  std::fprintf(out, "%-22s %10s %10s %10s %10s %10s %10s\n", "", "p50", "p90", "p99", "p99.9", "max", "n");
  print_row("mask, us", totals.times.mask, out);
  print_row("descriptor, us", totals.times.descriptor, out);
  print_row("advance, us", totals.times.advance, out);
  print_row("compile, us", totals.compile, out);
  print_row("refuse, us", totals.refuse, out);
  print_row("compiled, bytes", totals.bytes, out);
  std::fprintf(out, "slowest mask: %s; slowest compilation: %s\n", totals.mask.name.c_str(),
               totals.compiled.name.c_str());
}

}  // namespace

Status run_grammar_bench(const GrammarBenchOptions& options, std::FILE* out) {
  DI_ASSIGN_OR_RETURN(const GrammarModel model, GrammarModel::open(options.model_dir));
  Totals totals;
  for (size_t i = 0; i < options.lines.size(); ++i) {
    const GrammarLine line = read_grammar_line(options.lines[i]);
    if (!line.found.ok())
      return Error{line.found.error().code, "line " + std::to_string(i + 1) + ": " + line.found.error().message};
    DI_RETURN_IF_ERROR(run_case(model, *line.found, options.schema, totals));
  }
  (options.json ? print_json : print_table)(model, totals, out);
  std::fflush(out);
  return {};
}

}  // namespace deepinfer::bench
