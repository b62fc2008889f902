// A loaded text model: config, plan, hashes, weights. Immutable; may be read from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/engram_hash.h"
#include "model/layer_plan.h"
#include "model/weights.h"
#include "ops/backend.h"

namespace deepinfer {

struct Model {
  ModelConfig config;
  std::vector<LayerPlan> plan;
  EngramHasher engram_hasher;
  ModelWeights weights;

  /// checkpoint (loaded) and backend outlive the model. token_map: compressed id of every token id, [vocab_size]; not
  /// read when the model has no Engram. kBadModelFile when tokenizer, config and tables disagree.
  static Result<Model> bind(const Checkpoint& checkpoint, std::vector<int32_t> token_map, ops::Backend& backend);
};

}  // namespace deepinfer
