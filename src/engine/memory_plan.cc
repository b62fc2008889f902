#include "engine/memory_plan.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "kv/layout.h"

namespace deepinfer {

namespace {

// One request runs after another, so one slot is all that is ever used.
constexpr int32_t kSlots = 1;
// Logits rows of one head call: bounds their buffer to a few tens of MB for the released vocabulary.
constexpr int32_t kLogitRowsMax = 64;

Status check_range(const char* option, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return Error{Code::kInvalidArgument, std::string(option) + " is " + std::to_string(value) + ", must be between " +
                                           std::to_string(min) + " and " + std::to_string(max)};
}

}  // namespace

Status check_options(const EngineOptions& options) {
  DI_RETURN_IF_ERROR(check_range("threads", options.n_threads, 0, kThreadsMax));
  DI_RETURN_IF_ERROR(check_range("compact rows", options.n_compact_rows, 0, kBatchTokensMax));
  DI_RETURN_IF_ERROR(check_range("context", options.n_context, 0, kContextMax));
  DI_RETURN_IF_ERROR(check_range("kv-bytes", options.kv_bytes, 0, int64_t{1} << 60));
  return check_range("max-batch-tokens", options.n_batch_tokens, 1, kBatchTokensMax);
}

Result<MemoryPlan> plan_memory(const ModelConfig& config, const EngineOptions& options) {
  MemoryPlan plan;
  const int64_t model_context = std::min(config.max_position_embeddings, kContextMax);
  if (options.n_context > model_context) {
    return Error{Code::kInvalidArgument, "context is " + std::to_string(options.n_context) + ", the model's limit is " +
                                             std::to_string(model_context)};
  }
  plan.n_context = options.n_context != 0 ? options.n_context : model_context;
  const auto blocks_of = [](int64_t n_tokens) { return (n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens; };
  plan.kv_size.n_slots = kSlots;
  plan.kv_size.blocks_per_slot = static_cast<int32_t>(blocks_of(plan.n_context));
  plan.kv_size.n_blocks = plan.kv_size.blocks_per_slot;
  if (options.kv_bytes > 0) {
    const int64_t block_bytes = std::max<int64_t>(1, kv_bytes(config, {kSlots, 1, 1}).blocks);
    const int64_t n_blocks = options.kv_bytes / block_bytes;
    if (n_blocks == 0) {
      return Error{Code::kOutOfCapacity, "kv-bytes is " + std::to_string(options.kv_bytes) +
                                             ", one KV block of this model needs " + std::to_string(block_bytes)};
    }
    plan.kv_size.n_blocks = static_cast<int32_t>(std::min<int64_t>(n_blocks, plan.kv_size.n_blocks));
    // A sequence longer than the pool could never finish: the pool bounds the context.
    plan.n_context = std::min(plan.n_context, int64_t{plan.kv_size.n_blocks} * kv::kBlockTokens);
    plan.kv_size.blocks_per_slot = static_cast<int32_t>(blocks_of(plan.n_context));
  }
  plan.limits.n_rows_max = static_cast<int32_t>(std::min<int64_t>(options.n_batch_tokens, plan.n_context));
  plan.limits.n_logit_rows_max = std::min(kLogitRowsMax, plan.limits.n_rows_max);
  plan.limits.n_context_max = plan.n_context;
  return plan;
}

}  // namespace deepinfer
