#include "bench/model_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "bench/backends.h"
#include "bench/ceilings.h"
#include "bench/model_cost.h"
#include "bench/quantile.h"
#include "checkpoint/checkpoint.h"
#include "engine/sequence_runner.h"
#include "platform/cpu_features.h"

#ifndef DI_COMMIT
#define DI_COMMIT "unknown"
#endif

namespace deepinfer::bench {

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Numerics numerics) {
  switch (numerics) {
    case Numerics::kReference:
      return "reference";
    case Numerics::kDeterministic:
      return "deterministic";
    case Numerics::kFast:
      return "fast";
  }
  DI_CHECK(false);
}

const char* name_of(PrefillTail tail) {
  switch (tail) {
    case PrefillTail::kCompact:
      return "compact";
    case PrefillTail::kExact:
      return "exact";
    case PrefillTail::kFull:
      return "full";
  }
  DI_CHECK(false);
}

/// Seconds of one run: the prompt, or one step of those after it.
Result<double> run_once(Engine& engine, const ModelBenchOptions& options, int32_t length) {
  DI_ASSIGN_OR_RETURN(const Timing timing, engine.time_forward(length, options.is_decode ? options.n_steps : 0));
  return options.is_decode ? timing.decode_seconds / options.n_steps : timing.prefill_seconds;
}

struct Ceilings {
  std::string isa;
  MemoryCeilings memory;
  double fma_gflops = 0;
};

Json speed_facts(const ModelCost& cost, double median, const Ceilings& ceilings) {
  const double memory_seconds = cost.bytes / (ceilings.memory.read_gbps * 1e9);
  const double compute_seconds = ceilings.fma_gflops > 0 ? cost.flops / (ceilings.fma_gflops * 1e9) : 0;
  return {{"flops", cost.flops},
          {"bytes", cost.bytes},
          {"gflops", cost.flops / median * 1e-9},
          {"gbps", cost.bytes / median * 1e-9},
          {"ceiling_read_gbps", ceilings.memory.read_gbps},
          {"ceiling_fma_gflops", ceilings.fma_gflops},
          {"limit", compute_seconds > memory_seconds ? "compute" : "memory"},
          {"ratio", std::max(memory_seconds, compute_seconds) / median}};
}

}  // namespace

Status run_model_bench(const ModelBenchOptions& options, const Progress& loading, std::FILE* out) {
  DI_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.engine.model_dir));
  const ModelConfig& config = checkpoint.config();
  DI_ASSIGN_OR_RETURN(Engine engine, Engine::open(options.engine, loading));
  const int n_threads = threads_or_all(options.engine.n_threads);
  const int64_t n_batch_tokens = std::min<int64_t>(options.engine.n_batch_tokens, engine.n_context());
  const int32_t n_tail_rows = tail_rows(config, options.engine);

  for (const int32_t length : options.lengths) DI_RETURN_IF_ERROR(run_once(engine, options, length));  // warm-up
  const std::string isa = isa_of(engine.backend_name());
  const Ceilings ceilings{isa, measure_memory(n_threads), measure_fma_gflops(isa, n_threads)};
  std::vector<std::vector<double>> seconds(options.lengths.size());
  for (int32_t run = 0; run < options.n_runs; ++run) {
    for (size_t i = 0; i < options.lengths.size(); ++i) {
      DI_ASSIGN_OR_RETURN(const double once, run_once(engine, options, options.lengths[i]));
      seconds[i].push_back(once);
    }
  }

  for (size_t i = 0; i < options.lengths.size(); ++i) {
    const int64_t length = options.lengths[i];
    std::ranges::sort(seconds[i]);
    const double median = quantile(seconds[i], 0.5);
    ModelCost cost = options.is_decode ? decode_cost(config, length, options.n_steps)
                                       : prefill_cost(config, {length, n_batch_tokens, n_tail_rows});
    const int64_t n_parts = options.is_decode ? options.n_steps : 1;  // cost and time of one step
    cost = {cost.flops / static_cast<double>(n_parts), cost.bytes / static_cast<double>(n_parts)};
    Json line = {
        {"bench", options.is_decode ? "decode" : "prefill"},
        {"commit", DI_COMMIT},
        {"machine", cpu_model_name()},
        {"model", options.engine.model_dir},
        {"backend", engine.backend_name()},
        {"isa", isa},
        {"threads", n_threads},
        {"numerics", name_of(options.engine.numerics)},
        {"prefill_tail", name_of(options.engine.prefill_tail)},
        {"tokens", length},
        {"rows_per_step", options.is_decode ? 1 : std::min(n_batch_tokens, length)},
        {"steps", options.is_decode ? int64_t{options.n_steps} : (length + n_batch_tokens - 1) / n_batch_tokens},
        {"runs", options.n_runs},
        {"seconds_min", seconds[i].front()},
        {"seconds_median", median},
        {"seconds_p90", quantile(seconds[i], 0.9)},
        {"tokens_per_second", (options.is_decode ? 1.0 : static_cast<double>(length)) / median}};
    line.update(speed_facts(cost, median, ceilings));
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    if (std::fputs(text.c_str(), out) < 0 || std::fflush(out) != 0)
      return Error{Code::kIo, "standard output: cannot be written"};
  }
  return {};
}

}  // namespace deepinfer::bench
