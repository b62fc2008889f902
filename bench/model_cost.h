// FLOPs and bytes that a forward pass needs at least, from the model's config (the roofline formulas of the model
// specification, for any sizes). A multiply-add is two FLOPs. Bytes: every weight a step uses once, packed as stored,
// the KV a step can see once, and Engram rows; activations are left out. Pure functions.
#pragma once

#include <cstdint>

#include "checkpoint/config.h"

namespace deepinfer::bench {

struct ModelCost {
  double flops = 0;
  double bytes = 0;
};

struct PrefillShape {
  int64_t n_tokens = 0;
  int64_t n_batch_tokens = 0;  // most rows of a step
  int64_t n_tail_rows = 0;     // rows that layers after the last KV source run on; 0: all
};

/// A prompt from position 0, and the logits of its last token.
ModelCost prefill_cost(const ModelConfig& config, const PrefillShape& shape);

/// n_steps steps of one row each after n_tokens tokens.
ModelCost decode_cost(const ModelConfig& config, int64_t n_tokens, int64_t n_steps);

}  // namespace deepinfer::bench
