#include "bench/model_cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/layer_plan.h"

namespace deepinfer::bench {

namespace {

// Bytes an element takes as stored, its share of the scales included.
constexpr double kFp8Block = 1 + 1.0 / 1024;  // one scale a 32 x 32 block
constexpr double kFp4Expert = 0.5 + 1.0 / 32;
constexpr double kBf16Bytes = 2;
constexpr double kF32Bytes = 4;

/// Rows [first, first + n_rows) of one sequence, run together.
struct Rows {
  int64_t first = 0;
  int64_t n_rows = 0;
  [[nodiscard]] int64_t end() const { return first + n_rows; }
};

/// Elements of a layer's weight matrices.
struct LayerElements {
  double attention = 0;
  double expert = 0;
  double router = 0;
  double mhc = 0;
};

LayerElements layer_elements(const ModelConfig& c) {
  const double dim = c.hidden_size;
  const double query = static_cast<double>(c.n_heads) * c.head_dim;
  return {.attention = dim * c.q_lora_rank + c.q_lora_rank * query + dim * c.head_dim + query * c.o_lora_rank +
                       static_cast<double>(c.o_groups) * c.o_lora_rank * dim,
          .expert = 3 * dim * c.moe_intermediate_size,
          .router = dim * c.n_routed_experts,
          .mhc = 2.0 * c.n_mix() * c.hc_mult * dim};
}

/// Experts that n_rows rows are expected to touch.
double distinct_experts(const ModelConfig& c, int64_t n_rows) {
  const double share = static_cast<double>(c.n_experts_per_token) / c.n_routed_experts;
  return c.n_routed_experts * (1 - std::pow(1 - share, static_cast<double>(n_rows)));
}

ModelCost dense_cost(const ModelConfig& c, int64_t n_rows) {
  const LayerElements e = layer_elements(c);
  const double active = e.attention + (c.n_experts_per_token + 1) * e.expert + e.router + e.mhc;
  const double vectors = kBf16Bytes * (2.0 * c.hidden_size + c.q_lora_rank + c.head_dim) +
                         kF32Bytes * (c.n_heads + (c.vision ? 2.0 : 1.0) * c.n_routed_experts + 2.0 * (c.n_mix() + 3));
  return {.flops = 2 * active * static_cast<double>(n_rows),
          .bytes = (e.attention + e.expert) * kFp8Block + e.router * kBf16Bytes + e.mhc * kF32Bytes + vectors +
                   distinct_experts(c, n_rows) * e.expert * kFp4Expert};
}

ModelCost engram_cost(const ModelConfig& c, int64_t n_rows) {
  const double width = static_cast<double>(c.n_engram_columns()) * c.engram_head_dim;
  const double elements = width * (c.hc_mult + 1) * c.hidden_size;
  return {.flops = 2 * elements * static_cast<double>(n_rows),
          .bytes = elements * kFp8Block + static_cast<double>(n_rows) * width * (1 + 1.0 / 32)};
}

/// Projections that only some layers have: index queries and their weights, compressor, index key.
ModelCost index_and_compressor_cost(const ModelConfig& c, const LayerPlan& plan, int64_t n_rows) {
  ModelCost cost;
  const double dim = c.hidden_size;
  if (plan.mode == AttentionMode::kFull || plan.mode == AttentionMode::kReindex) {
    const double queries = static_cast<double>(c.q_lora_rank) * c.index_n_heads * c.index_head_dim;
    cost.flops += 2 * (queries + dim * c.index_n_heads) * static_cast<double>(n_rows);
    cost.bytes += queries * kFp8Block + dim * c.index_n_heads * kBf16Bytes;
  }
  if (plan.mode == AttentionMode::kFull) {
    const double elements =
        dim * c.head_dim * (plan.ratio > 1 ? 2 : 1) + static_cast<double>(c.head_dim) * c.index_head_dim;
    cost.flops += 2 * elements * static_cast<double>(n_rows);
    cost.bytes += elements * kBf16Bytes;
  }
  return cost;
}

ModelCost kv_cost(const ModelConfig& c, const LayerPlan& plan, const Rows& rows) {
  const int64_t candidates = static_cast<int64_t>(c.candidate_topk_blocks) * c.candidate_block_size;
  const bool selects = plan.mode == AttentionMode::kFull || plan.mode == AttentionMode::kReindex;
  const auto visible = [&](int64_t n_tokens) { return plan.ratio > 0 ? n_tokens / plan.ratio : 0; };
  const auto scored = [&](int64_t n_tokens) {
    if (!selects) return int64_t{0};
    return plan.uses_candidates ? std::min(visible(n_tokens), candidates) : visible(n_tokens);
  };
  double n_keys = 0;
  double n_scores = 0;
  for (int64_t position = rows.first; position < rows.end(); ++position) {
    n_keys += static_cast<double>(std::min<int64_t>(position + 1, c.sliding_window) +
                                  std::min<int64_t>(visible(position + 1), c.index_topk));
    n_scores += static_cast<double>(scored(position + 1));
  }
  const auto window = static_cast<double>(std::min<int64_t>(rows.end(), c.sliding_window + rows.n_rows - 1));
  const auto selected = static_cast<double>(std::min<int64_t>(visible(rows.end()), c.index_topk * rows.n_rows));
  return {.flops = 4.0 * c.n_heads * c.head_dim * n_keys + 2.0 * c.index_n_heads * c.index_head_dim * n_scores,
          .bytes = window * c.head_dim * (1 + 1.0 / 32) + selected * c.head_dim * (0.5 + 1.0 / 16) +
                   static_cast<double>(scored(rows.end())) * c.index_head_dim * (0.5 + 1.0 / 32)};
}

void add(ModelCost& sum, const ModelCost& cost) {
  sum.flops += cost.flops;
  sum.bytes += cost.bytes;
}

/// One step over layers [first, last).
ModelCost step_cost(const ModelConfig& c, const std::vector<LayerPlan>& plan, const Rows& rows, size_t first,
                    size_t last) {
  ModelCost cost;
  for (size_t l = first; l < last; ++l) {
    add(cost, dense_cost(c, rows.n_rows));
    if (plan[l].engram >= 0) add(cost, engram_cost(c, rows.n_rows));
    add(cost, index_and_compressor_cost(c, plan[l], rows.n_rows));
    add(cost, kv_cost(c, plan[l], rows));
  }
  return cost;
}

/// The logits of one row.
ModelCost head_cost(const ModelConfig& c) {
  const double elements = static_cast<double>(c.vocab_size) * c.hidden_size;
  return {.flops = 2 * elements, .bytes = elements * kBf16Bytes};
}

/// Rows in chunks of at most n_batch_tokens through layers [first, last).
ModelCost chunked_cost(const ModelConfig& c, const std::vector<LayerPlan>& plan, const Rows& rows,
                       int64_t n_batch_tokens, size_t first, size_t last) {
  ModelCost cost;
  for (int64_t begin = rows.first; begin < rows.end(); begin += n_batch_tokens) {
    add(cost, step_cost(c, plan, {begin, std::min(n_batch_tokens, rows.end() - begin)}, first, last));
  }
  return cost;
}

}  // namespace

ModelCost prefill_cost(const ModelConfig& config, const PrefillShape& shape) {
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  const int64_t n = shape.n_tokens;
  const int64_t n_tail = shape.n_tail_rows > 0 ? std::min(shape.n_tail_rows, n) : n;
  const auto n_early = static_cast<size_t>(last_kv_source_layer(config)) + 1;
  ModelCost cost = head_cost(config);
  add(cost, chunked_cost(config, plan, {0, n}, shape.n_batch_tokens, 0, n_early));
  add(cost, chunked_cost(config, plan, {n - n_tail, n_tail}, shape.n_batch_tokens, n_early, plan.size()));
  return cost;
}

ModelCost decode_cost(const ModelConfig& config, int64_t n_tokens, int64_t n_steps) {
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  ModelCost cost;
  for (int64_t i = 0; i < n_steps; ++i) {
    add(cost, step_cost(config, plan, {n_tokens + i, 1}, 0, plan.size()));
    add(cost, head_cost(config));
  }
  return cost;
}

}  // namespace deepinfer::bench
