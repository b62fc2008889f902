// What the contract tests share: the backends under test and running a case on one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/op_case.h"
#include "ops/backend.h"

namespace deepinfer {

struct TestedBackend {
  std::string name;
  std::function<std::unique_ptr<ops::Backend>(int n_threads)> make;
  bool allocates_in_steps = false;  // ref does, by design
};

/// ref, and cpu with every instruction set that this machine runs.
const std::vector<TestedBackend>& tested_backends();

/// Outputs of a case run in the given row ranges on a fresh backend. Fails the test and gives nothing on an error.
std::vector<bench::Output> run_case(const bench::OpCase& op_case, const TestedBackend& tested, int n_threads,
                                    const std::vector<bench::RowRange>& ranges);

/// All rows at once.
std::vector<bench::RowRange> whole(const bench::OpCase& op_case);

}  // namespace deepinfer
