// One sequence on the model: its tokens, its KV, its steps. Prefill in chunks under a tail policy, then one row a step.
// The engine's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deepinfer/engine.h"
#include "deepinfer/options.h"
#include "kv/sequence_kv.h"
#include "model/forward.h"
#include "model/kv_memory.h"

namespace deepinfer {

/// Rows of a prompt's end that layers after the last KV source run on; 0 stands for all.
int32_t tail_rows(const ModelConfig& config, const EngineOptions& options);

/// What runners share; all of it outlives them.
struct RunnerContext {
  const Model* model = nullptr;
  ForwardPass* pass = nullptr;
  KvMemory* kv_memory = nullptr;
  kv::Allocator* allocator = nullptr;
  int32_t n_batch_tokens = 0;
  int32_t n_tail_rows = 0;  // tail_rows() of the engine's options, 0 to run all
};

class SequenceRunner {
 public:
  /// kOutOfCapacity when no slot is free.
  static Result<SequenceRunner> create(const RunnerContext& context);

  /// Runs the prompt from position 0; logits of its last token, [vocab]. Precondition: nothing has run yet.
  Status prefill(std::span<const int32_t> prompt, std::span<float> logits, const Progress& progress);
  /// Runs all rows through all layers and gives every row's logits to `sink`, in order.
  Status score(std::span<const int32_t> tokens, const LogitsSink& sink, const Progress& progress);
  /// Runs one more token; its logits.
  Status decode(int32_t token, std::span<float> logits);

 private:
  SequenceRunner(const RunnerContext& context, kv::SequenceKv kv) : context_(context), kv_(std::move(kv)) {}

  Status make_room(int64_t n_tokens);
  [[nodiscard]] StepSequence step(int64_t end, int64_t n_rows) const;
  Status run_full_chunk(int64_t begin, int64_t end);
  Status prefill_tail(const Progress& progress);

  RunnerContext context_;
  kv::SequenceKv kv_;
  std::vector<int32_t> tokens_;
  int32_t late_window_floor_ = 0;
};

}  // namespace deepinfer
