// How much of everything is reserved, decided from the options before anything is. Pure functions.
#pragma once

#include <cstdint>

#include "checkpoint/config.h"
#include "deepinfer/options.h"
#include "deepinfer/status.h"
#include "model/kv_memory.h"
#include "ops/backend.h"

namespace deepinfer {

struct MemoryPlan {
  int64_t n_context = 0;
  KvSize kv_size;
  ops::StepLimits limits;
};

/// kInvalidArgument names the option, its value and the limit.
Status check_options(const EngineOptions& options);

/// Resolves what the options leave to the model. kOutOfCapacity when kv_bytes holds less than one block.
Result<MemoryPlan> plan_memory(const ModelConfig& config, const EngineOptions& options);

}  // namespace deepinfer
