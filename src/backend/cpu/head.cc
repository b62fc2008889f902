#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"

namespace deepinfer::cpu {

void head(Context& ctx, const ops::HeadArgs& a) {
  const Arena::Scope scope(ctx.arena);
  Bf16* h = ctx.arena.take<Bf16>(a.n_out_rows * a.dim);
  ctx.pool.run(a.n_out_rows, [&](int64_t i) {
    Bf16* row = h + i * a.dim;
    const int64_t t = a.row[i];
    collapse(a.streams + t * a.n_streams * a.dim, a.carried + t * a.n_streams, a.n_streams, a.dim, row);
    rms_norm(row, a.norm_weight, a.dim, a.rms_eps, row);
  });
  linear(ctx, a.head, h, a.n_out_rows, a.logits);
}

Demand head_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  return {Arena::bytes<Bf16>(int64_t{limits.n_logit_rows_max} * config.hidden_size) +
              linear_bytes(limits.n_logit_rows_max, config.hidden_size),
          multiply_outputs_bytes()};
}

}  // namespace deepinfer::cpu
