#include "bench/backends.h"

#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "deepinfer/options.h"
#include "engine/backend_factory.h"
#include "platform/cpu_features.h"

namespace deepinfer::bench {

int threads_or_all(int n_threads) { return n_threads > 0 ? n_threads : available_cpus(); }

std::string isa_of(std::string_view backend_name) {
  constexpr std::string_view kCpu = "cpu-";  // "cpu-avx2"
  return std::string(backend_name.starts_with(kCpu) ? backend_name.substr(kCpu.size()) : "generic");
}

Result<BenchedBackend> benched_backend(const std::string& name, int n_threads) {
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<ops::Backend> probe,
                      make_backend(name, Numerics::kDeterministic, n_threads));
  return BenchedBackend{.name = std::string(probe->name()), .isa = isa_of(probe->name()), .make = [name, n_threads] {
                          auto made = make_backend(name, Numerics::kDeterministic, n_threads);
                          DI_CHECK(made.ok());  // it could be made before
                          return *std::move(made);
                        }};
}

}  // namespace deepinfer::bench
