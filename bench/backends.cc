#include "bench/backends.h"

#include <memory>
#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "base/check.h"
#include "deepinfer/options.h"
#include "engine/backend_factory.h"
#include "platform/cpu_features.h"

namespace deepinfer::bench {

int threads_or_all(int n_threads) { return n_threads > 0 ? n_threads : available_cpus(); }

std::string_view isa_of(std::string_view backend) {
  if (backend != "cpu") return "generic";
  if (cpu_backend_supports(Isa::kAvx512)) return "avx512";
  return cpu_backend_supports(Isa::kAvx2) ? "avx2" : "generic";
}

Result<BenchedBackend> benched_backend(const std::string& name, int n_threads) {
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Backend> probe,
                      make_backend(name, Numerics::kDeterministic, n_threads));
  const std::string resolved(probe->name());
  return BenchedBackend{.name = resolved, .isa = std::string(isa_of(resolved)), .make = [resolved, n_threads] {
                          auto made = make_backend(resolved, Numerics::kDeterministic, n_threads);
                          DI_CHECK(made.ok());  // it could be made before
                          return *std::move(made);
                        }};
}

}  // namespace deepinfer::bench
