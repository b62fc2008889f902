#include "bench/kernels.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/check.h"
#include "bench/ceilings.h"
#include "bench/op_case.h"
#include "bench/quantile.h"
#include "platform/cpu_features.h"

#ifndef DI_COMMIT
#define DI_COMMIT "unknown"
#endif

namespace deepinfer::bench {
namespace {

struct Ceilings {
  MemoryCeilings memory;
  std::map<std::string, double> fma_gflops;  // by isa
};

/// A case ready to run on one backend. The backend is declared first: it outlives the case's memory.
struct Lane {
  std::unique_ptr<ops::Backend> backend;
  std::unique_ptr<BoundCase> bound;
  std::vector<double> seconds;
  double total_seconds = 0;
};

Result<Lane> open_lane(const BenchedBackend& benched, const OpCase& op_case) {
  Lane lane;
  lane.backend = benched.make();
  DI_RETURN_IF_ERROR(lane.backend->reserve(op_case.config, op_case.limits));
  lane.bound = std::make_unique<BoundCase>(*lane.backend, false);
  op_case.bind(*lane.bound);
  DI_RETURN_IF_ERROR(lane.bound->status());
  return lane;
}

Status run_once(Lane& lane, const OpCase& op_case, CacheEviction* eviction, bool timed) {
  DI_RETURN_IF_ERROR(lane.bound->restore());  // operations in place would run away otherwise
  if (eviction != nullptr) eviction->run();
  const auto start = std::chrono::steady_clock::now();
  DI_RETURN_IF_ERROR(lane.bound->step({0, op_case.n_rows}));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (timed) {
    lane.seconds.push_back(seconds);
    lane.total_seconds += seconds;
  }
  return {};
}

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

void print_line(const KernelBenchOptions& options, const BenchedBackend& benched, const OpCase& op_case, Lane& lane,
                const Ceilings& ceilings, std::FILE* out) {
  std::sort(lane.seconds.begin(), lane.seconds.end());
  const double median = quantile(lane.seconds, 0.5);
  const double fma_gflops = ceilings.fma_gflops.at(benched.isa);
  const double memory_seconds = op_case.bytes / (ceilings.memory.read_gbps * 1e9);
  const double compute_seconds = fma_gflops > 0 ? op_case.flops / (fma_gflops * 1e9) : 0;
  const bool compute_bound = compute_seconds > memory_seconds;
  std::fprintf(out, "{\"bench\":\"kernels\",\"commit\":%s,\"machine\":%s,\"backend\":%s,\"isa\":%s,\"threads\":%d,",
               json_string(DI_COMMIT).c_str(), json_string(cpu_model_name()).c_str(), json_string(benched.name).c_str(),
               json_string(benched.isa).c_str(), options.n_threads);
  std::fprintf(out, "\"op\":%s,\"case\":%s,\"shape\":%s,\"types\":%s,\"rows\":%d,\"cache\":\"%s\",\"runs\":%zu,",
               json_string(op_case.op).c_str(), json_string(op_case.name).c_str(), json_string(op_case.shape).c_str(),
               json_string(op_case.types).c_str(), op_case.n_rows, options.cold_cache ? "cold" : "warm",
               lane.seconds.size());
  std::fprintf(
      out,
      "\"min_ms\":%.5g,\"median_ms\":%.5g,\"p90_ms\":%.5g,\"bytes\":%.6g,\"flops\":%.6g,\"gbps\":%.4g,\"gflops\":%.4g,",
      lane.seconds.front() * 1e3, median * 1e3, quantile(lane.seconds, 0.9) * 1e3, op_case.bytes, op_case.flops,
      op_case.bytes / median * 1e-9, op_case.flops / median * 1e-9);
  std::fprintf(out,
               "\"ceiling_read_gbps\":%.4g,\"ceiling_copy_gbps\":%.4g,\"ceiling_fma_gflops\":%.4g,\"limit\":\"%s\","
               "\"ratio\":%.4g}\n",
               ceilings.memory.read_gbps, ceilings.memory.copy_gbps, fma_gflops, compute_bound ? "compute" : "memory",
               std::max(memory_seconds, compute_seconds) / median);
  std::fflush(out);
}

bool enough(const KernelBenchOptions& options, const std::vector<Lane>& lanes) {
  const auto n_runs = static_cast<int>(lanes.front().seconds.size());
  if (n_runs < options.n_runs_min) return false;
  if (n_runs >= options.n_runs_max) return true;
  return std::any_of(lanes.begin(), lanes.end(),
                     [&](const Lane& lane) { return lane.total_seconds >= options.case_seconds; });
}

Status bench_case(const KernelBenchOptions& options, const OpCase& op_case, const Ceilings& ceilings,
                  CacheEviction* eviction, std::FILE* out) {
  std::vector<Lane> lanes;
  for (const BenchedBackend& benched : options.backends) {
    DI_ASSIGN_OR_RETURN(Lane lane, open_lane(benched, op_case));
    lanes.push_back(std::move(lane));
  }
  for (Lane& lane : lanes) DI_RETURN_IF_ERROR(run_once(lane, op_case, nullptr, false));  // warm-up: pages, clocks
  while (!enough(options, lanes)) {
    for (Lane& lane : lanes) DI_RETURN_IF_ERROR(run_once(lane, op_case, eviction, true));
  }
  for (size_t i = 0; i < lanes.size(); ++i) print_line(options, options.backends[i], op_case, lanes[i], ceilings, out);
  return {};
}

}  // namespace

Status run_kernel_bench(const KernelBenchOptions& options, std::FILE* out) {
  std::vector<OpCase> chosen;
  std::vector<OpCase> all = options.perf ? perf_cases() : contract_cases();
  for (OpCase& op_case : all) {
    if (op_case.name.find(options.filter) != std::string::npos) chosen.push_back(std::move(op_case));
  }
  if (chosen.empty()) return Error{Code::kInvalidArgument, "no kernel case has \"" + options.filter + "\" in its name"};
  if (options.backends.empty()) return {};
  Ceilings ceilings{measure_memory(options.n_threads), {}};
  for (const BenchedBackend& benched : options.backends) {
    ceilings.fma_gflops[benched.isa] = measure_fma_gflops(benched.isa, options.n_threads);
  }
  const std::unique_ptr<CacheEviction> eviction = options.cold_cache ? std::make_unique<CacheEviction>() : nullptr;
  for (const OpCase& op_case : chosen) DI_RETURN_IF_ERROR(bench_case(options, op_case, ceilings, eviction.get(), out));
  return {};
}

}  // namespace deepinfer::bench
