// The portable production backend: every operation vectorised, multi-threaded, with the instruction set chosen at run
// time. Weights are read where they are (a mapped checkpoint), packed as stored; decoding them is part of the kernels.
#pragma once

#include <memory>
#include <optional>

#include "ops/backend.h"

namespace deepinfer {

/// Instruction sets with kernels of their own. Results of two of them differ in the order of sums, nothing else.
enum class Isa { kGeneric, kAvx2, kAvx512 };

struct CpuBackendOptions {
  int n_threads = 1;       // results do not depend on it
  std::optional<Isa> isa;  // none: the best this machine has; one it does not have is a bug (checked)
};

/// True if kernels for it were built and this machine runs them.
bool cpu_backend_supports(Isa isa);

std::unique_ptr<ops::Backend> make_cpu_backend(const CpuBackendOptions& options);
std::unique_ptr<ops::Backend> make_cpu_backend(int n_threads);

}  // namespace deepinfer
