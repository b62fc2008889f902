// One case of one operation: seeded inputs, how to run it on any backend, how far results may lie from ref and why.
// The same table drives the contract tests (tests/contract) and the kernel benchmark (bench/kernels.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/bound_case.h"
#include "bench/output.h"
#include "checkpoint/config.h"
#include "ops/backend.h"

namespace deepinfer::bench {

struct OpCase {
  std::string name;   // "linear_fp8/exact_37x160"; unique
  std::string op;     // the Backend function
  std::string shape;  // for people
  std::string types;  // "fp8*fp8->bf16"
  int32_t n_rows = 0;
  ModelConfig config;  // sizes the backend reserves its workspaces for
  ops::StepLimits limits;
  double flops = 0;  // of one run over all rows
  double bytes = 0;  // that one run must read and write at least
  /// Uploads the inputs, which are the same at every call, and sets BoundCase::step.
  std::function<void(BoundCase&)> bind;
  /// What the outputs of any one backend must satisfy among themselves; empty string: they do. May be null.
  std::function<std::string(const std::vector<Output>&)> self_check;
};

/// Small cases of every operation: tiny irregular shapes and the released ones with few rows.
std::vector<OpCase> contract_cases();

/// The shapes of a served model: rows 1 to 512, released matrices, long contexts. Wide fill; outputs are not compared.
std::vector<OpCase> perf_cases();

}  // namespace deepinfer::bench
