#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "base/check.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

void query(Context& ctx, const ops::QueryArgs& a) {
  const int64_t n = a.rows.n;
  const int64_t rank = a.wq_a.n_out;
  DI_CHECK(a.wq_b.n_in == rank && a.low_quantized.width == rank);
  DI_CHECK(a.wq_b.n_out == static_cast<int64_t>(a.n_heads) * a.head_dim);
  linear(ctx, a.wq_a, a.x, n, a.low);
  ctx.pool.run(n, [&](int64_t t) {
    rms_norm(a.low + t * rank, a.q_norm, rank, a.rms_eps, a.low + t * rank);
    quantize_fp8_block32(a.low + t * rank, rank, a.low_quantized.codes + t * rank,
                         a.low_quantized.scales + t * (rank / kFp8Block));
  });
  linear(ctx, a.wq_b, a.low_quantized, n, a.q);
  ctx.pool.run(n, [&](int64_t t) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope scope(arena);
    SinCos* angles = arena.take<SinCos>(a.rope.n_pairs);
    rope_angles(a.rope, a.rows.position[t], angles);
    for (int64_t h = 0; h < a.n_heads; ++h) {
      rotate_tail(a.q + (t * a.n_heads + h) * a.head_dim, a.head_dim, angles, a.rope.n_pairs, false);
    }
  });
}

Demand query_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t widest = std::max(config.hidden_size, config.q_lora_rank);
  return {linear_bytes(limits.n_rows_max, widest),
          std::max(multiply_outputs_bytes(), Arena::bytes<SinCos>(config.rope_dim / 2))};
}

}  // namespace deepinfer::cpu
