// From a model directory to a model that a backend can run: checkpoint, tokenizer, token map, weights.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "deepinfer/engine.h"
#include "deepinfer/tokenizer.h"
#include "model/model.h"
#include "ops/backend.h"

namespace deepinfer {

/// Heap places, so that what borrows from them survives moves.
struct LoadedModel {
  std::unique_ptr<const Checkpoint> checkpoint;
  std::unique_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const Model> model;  // borrows from checkpoint and the backend
};

/// kBadModelFile with what is wrong; progress in bytes.
Result<LoadedModel> load_model(const std::string& dir, ops::Backend& backend, const Progress& progress);

}  // namespace deepinfer
