// `deepinfer bench`: hands the options to the benchmarks of bench/.
#include "bench/bench.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "bench/backends.h"
#include "bench/grammar_bench.h"
#include "bench/model_bench.h"
#include "bench/protocol_bench.h"
#include "cli/commands.h"
#include "cli/line_io.h"
#include "cli/progress.h"

namespace deepinfer::cli {

Status run_kernel_bench(const KernelBenchArguments& arguments) {
  bench::KernelBenchOptions options{.n_threads = bench::threads_or_all(arguments.n_threads),
                                    .filter = arguments.filter,
                                    .perf = !arguments.small,
                                    .cold_cache = !arguments.warm,
                                    .n_runs_min = arguments.n_runs};
  Result<bench::BenchedBackend> backend = bench::benched_backend(arguments.backend, options.n_threads);
  if (!backend.ok()) return backend.error();
  options.backends.push_back(*std::move(backend));
  return bench::run_kernel_bench(options, stdout);
}

Status run_model_bench(const ModelBenchArguments& arguments) {
  ProgressBar bar("loading", ProgressBar::Unit::kBytes, arguments.log_level >= LogLevel::kInfo);
  return bench::run_model_bench({.engine = arguments.engine,
                                 .is_decode = arguments.is_decode,
                                 .lengths = arguments.lengths,
                                 .n_steps = arguments.n_steps,
                                 .n_runs = arguments.n_runs},
                                bar.callback(), stdout);
}

Status run_protocol_bench(const ProtocolBenchArguments& arguments) {
  return bench::run_protocol_bench({.n_runs = arguments.n_runs, .model_dir = arguments.model_dir}, stdout);
}

Status run_grammar_bench(const GrammarBenchArguments& arguments) {
  Result<LineReader> input = LineReader::open("--input", arguments.input);
  if (!input.ok()) return input.error();
  bench::GrammarBenchOptions options{
      .model_dir = arguments.model_dir, .schema = arguments.schema, .json = arguments.json};
  const int64_t n_max = arguments.n_schemas_max > 0 ? arguments.n_schemas_max : INT64_MAX;
  std::string line;
  while (static_cast<int64_t>(options.lines.size()) < n_max) {
    const Result<bool> more = input->next(line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    options.lines.push_back(line);
  }
  return bench::run_grammar_bench(options, stdout);
}

}  // namespace deepinfer::cli
