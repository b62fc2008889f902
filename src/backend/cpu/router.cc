#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "base/check.h"
#include "numerics/functions.h"

namespace deepinfer::cpu {

namespace {

/// The n_active ids of largest key, descending, ties to the lowest id.
void select_experts(const float* key, int32_t n_experts, int32_t n_active, int32_t* expert) {
  int32_t n_chosen = 0;
  for (int32_t e = 0; e < n_experts; ++e) {
    int32_t place = n_chosen;
    while (place > 0 && key[e] > key[expert[place - 1]]) --place;
    if (place == n_active) continue;
    n_chosen = std::min(n_chosen + 1, n_active);
    for (int32_t i = n_chosen - 1; i > place; --i) expert[i] = expert[i - 1];
    expert[place] = e;
  }
}

}  // namespace

void router(Context& ctx, const ops::RouterArgs& a) {
  const int32_t n_experts = static_cast<int32_t>(a.gate.n_out);
  DI_CHECK(a.n_active <= n_experts);
  const Arena::Scope scope(ctx.arena);
  float* score = ctx.arena.take<float>(int64_t{a.n_rows} * n_experts);
  linear(ctx, a.gate, a.x, a.n_rows, score);
  ctx.pool.run(a.n_rows, [&](int64_t t) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope thread_scope(arena);
    float* key = arena.take<float>(n_experts);
    float* s = score + t * n_experts;
    const float* bias = a.is_image != nullptr && a.is_image[t] != 0 ? a.bias_image : a.bias;
    for (int32_t e = 0; e < n_experts; ++e) {
      s[e] = softplus_sqrt(s[e]);
      key[e] = s[e] + bias[e];
    }
    int32_t* expert = a.expert + t * a.n_active;
    select_experts(key, n_experts, a.n_active, expert);
    float sum = 0;
    for (int32_t i = 0; i < a.n_active; ++i) sum += s[expert[i]];
    for (int32_t i = 0; i < a.n_active; ++i) {
      a.weight[t * a.n_active + i] = (a.normalize ? s[expert[i]] / (sum + 1e-20F) : s[expert[i]]) * a.scaling;
    }
  });
}

Demand router_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n_experts = std::max(config.n_routed_experts, config.dspark_n_routed_experts);
  return {Arena::bytes<float>(limits.n_rows_max * n_experts) + linear_bytes(limits.n_rows_max, config.hidden_size),
          std::max(multiply_outputs_bytes(), Arena::bytes<float>(n_experts))};
}

}  // namespace deepinfer::cpu
