#include "tests/contract/runs.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"

namespace deepinfer {

const std::vector<TestedBackend>& tested_backends() {
  static const std::vector<TestedBackend> backends = [] {
    std::vector<TestedBackend> list = {{"ref", [](int n) { return make_ref_backend(n); }, true}};
    const auto add = [&list](const std::string& name, Isa isa) {
      if (!cpu_backend_supports(isa)) return;
      list.push_back({name, [isa](int n) { return make_cpu_backend(CpuBackendOptions{.n_threads = n, .isa = isa}); }});
    };
    add("cpu_generic", Isa::kGeneric);
    add("cpu_avx2", Isa::kAvx2);
    add("cpu_avx512", Isa::kAvx512);
    return list;
  }();
  return backends;
}

std::vector<bench::Output> run_case(const bench::OpCase& op_case, const TestedBackend& tested, int n_threads,
                                    const std::vector<bench::RowRange>& ranges) {
  const std::unique_ptr<ops::Backend> backend = tested.make(n_threads);
  const auto failed = [](const Status& status) {
    if (!status.ok()) ADD_FAILURE() << status.error().message;
    return !status.ok();
  };
  if (failed(backend->reserve(op_case.config, op_case.limits))) return {};
  bench::BoundCase bound(*backend);
  op_case.bind(bound);
  if (failed(bound.status())) return {};
  for (const bench::RowRange& range : ranges) {
    if (failed(bound.step(range))) return {};
  }
  Result<std::vector<bench::Output>> outputs = bound.outputs();
  if (!outputs.ok()) {
    ADD_FAILURE() << outputs.error().message;
    return {};
  }
  return std::move(outputs).value();
}

std::vector<bench::RowRange> whole(const bench::OpCase& op_case) { return {{0, op_case.n_rows}}; }

}  // namespace deepinfer
