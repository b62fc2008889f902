// `deepinfer bench`: hands the options to the benchmarks of bench/.
#include "bench/bench.h"

#include <cstdio>

#include "bench/backends.h"
#include "bench/model_bench.h"
#include "bench/protocol_bench.h"
#include "cli/commands.h"
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

}  // namespace deepinfer::cli
