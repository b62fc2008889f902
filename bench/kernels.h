// Speed of single operations, from the case table of the contract tests, as a distance from what the machine can do.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "deepinfer/status.h"
#include "ops/backend.h"

namespace deepinfer::bench {

/// A backend to measure. `isa` names its compute ceiling (see measure_fma_gflops).
struct BenchedBackend {
  std::string name;
  std::string isa;
  std::function<std::unique_ptr<ops::Backend>()> make;  // with n_threads threads
};

struct KernelBenchOptions {
  std::vector<BenchedBackend> backends;  // several are run in turns, A B A B
  int n_threads = 1;                     // for the ceilings and the report
  std::string filter;                    // only cases whose name contains it; empty: all
  bool perf = true;                      // served shapes; false: the contract tests' small ones
  bool cold_cache = true;                // caches are emptied before every run, as between the layers of a model
  int n_runs_min = 5;
  int n_runs_max = 100;
  double case_seconds = 2;  // runs stop after n_runs_min once one backend has been measured for this long
};

/// Prints one JSON line a case and backend: commit, machine, backend, isa, threads, op, case, shape, types, cache,
/// runs, min_ms, median_ms, p90_ms, and at the median gbps and gflops (of the bytes and operations the case needs at
/// least), the measured ceilings, which of them limits the case (the one that alone would take longer) and the ratio of
/// the time at that ceiling to the median. kInvalidArgument when no case matches; errors of a backend as they come.
Status run_kernel_bench(const KernelBenchOptions& options, std::FILE* out);

}  // namespace deepinfer::bench
