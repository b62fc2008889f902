// From the names users give to what the benchmarks measure.
#pragma once

#include <string>
#include <string_view>

#include "bench/kernels.h"
#include "deepinfer/status.h"

namespace deepinfer::bench {

/// 0 stands for every processor this process may use.
int threads_or_all(int n_threads);

/// The instruction set of a backend's compute ceiling (measure_fma_gflops), from the name it gives itself ("cpu-avx2").
std::string isa_of(std::string_view backend_name);

/// `name` as in EngineOptions. kInvalidArgument when this build does not have it.
Result<BenchedBackend> benched_backend(const std::string& name, int n_threads);

}  // namespace deepinfer::bench
