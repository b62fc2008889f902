#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"

namespace deepinfer::cpu {

namespace {

/// Of linear_fp8, linear_fp4 and linear_bf16 on any matrix of the model that no other operation covers.
Demand linear_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n_taps = static_cast<int64_t>(config.dspark_target_layer_ids.size());
  int64_t widest = std::max<int64_t>(
      {config.hidden_size, config.moe_intermediate_size, n_taps * config.hidden_size + config.dspark_markov_rank});
  if (config.vision.has_value()) {
    const VisionConfig& vision = *config.vision;
    const int64_t merged = int64_t{vision.downsample_ratio} * vision.downsample_ratio * vision.hidden_size;
    const int64_t patch = int64_t{3} * vision.patch_size * vision.patch_size;
    widest = std::max<int64_t>({widest, vision.intermediate_size, merged, patch});
  }
  const int64_t n_rows = config.vision.has_value() ? kRowChunk : limits.n_rows_max;
  return {linear_bytes(n_rows, widest), multiply_outputs_bytes()};
}

}  // namespace

Demand total_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  Demand total = linear_demand(config, limits);
  for (const auto& demand :
       {engram_demand, mhc_demand, query_demand, window_kv_demand, compress_demand, index_select_demand,
        attention_demand, output_projection_demand, router_demand, moe_demand, head_demand}) {
    total = larger(total, demand(config, limits));
  }
  return total;
}

}  // namespace deepinfer::cpu
