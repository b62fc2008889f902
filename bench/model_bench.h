// Speed of the whole model, prefill and decode apart, as a distance from what the machine can do.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "deepinfer/engine.h"
#include "deepinfer/options.h"
#include "deepinfer/status.h"

namespace deepinfer::bench {

struct ModelBenchOptions {
  EngineOptions engine;
  bool is_decode = false;
  std::vector<int32_t> lengths;  // prompt lengths; decode: tokens before the first step
  int32_t n_steps = 16;          // decode steps of a run
  int32_t n_runs = 5;            // of each length; the lengths take turns
};

/// Prints one JSON line a length: bench, commit, machine, model, backend, isa, threads, numerics, prefill_tail, tokens,
/// rows_per_step, steps, runs, seconds (min, median, p90; of one step for decode), tokens_per_second, flops, bytes,
/// gflops, gbps, the measured ceilings, which of them limits (the one that alone would take longer) and the ratio of
/// the time at that ceiling to the median. Errors of the engine as they come; kInvalidArgument for a length that does
/// not fit.
Status run_model_bench(const ModelBenchOptions& options, const Progress& loading, std::FILE* out);

}  // namespace deepinfer::bench
