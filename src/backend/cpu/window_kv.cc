#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

void window_kv(Context& ctx, const ops::WindowKvArgs& a) {
  const int64_t dim = a.wkv.n_out;
  DI_CHECK(a.out.head_dim == dim);
  const Arena::Scope scope(ctx.arena);
  Bf16* latent = ctx.arena.take<Bf16>(a.rows.n * dim);
  linear(ctx, a.wkv, a.x, a.rows.n, latent);
  ctx.pool.run(a.rows.n, [&](int64_t t) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope thread_scope(arena);
    SinCos* angles = arena.take<SinCos>(a.rope.n_pairs);
    rope_angles(a.rope, a.rows.position[t], angles);
    Bf16* row = latent + t * dim;
    rms_norm(row, a.kv_norm, dim, a.rms_eps, row);
    rotate_tail(row, dim, angles, a.rope.n_pairs, false);
    const kv::PackedRow out = a.out.row(t);
    quantize_fp8_block32(row, dim, out.values, out.scales);
  });
}

Demand window_kv_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  return {Arena::bytes<Bf16>(int64_t{limits.n_rows_max} * config.head_dim) +
              linear_bytes(limits.n_rows_max, config.hidden_size),
          std::max(multiply_outputs_bytes(), Arena::bytes<SinCos>(config.rope_dim / 2))};
}

void window_commit(Context& ctx, const ops::WindowCommitArgs& a) {
  const int64_t bytes = kv::window_row_bytes(a.step.head_dim);
  const int64_t n = a.rows.n;
  ctx.pool.parallel_for(n, 64, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      // A later row of the same sequence and ring place wins; skipping this one keeps the copies independent.
      const int64_t later = t + a.ring.n_rows;
      if (later < n && a.rows.begin[later] == a.rows.begin[t]) continue;
      std::copy_n(a.step.row(t).values, bytes, a.ring.row(a.rows.slot[t], a.rows.position[t]).values);
    }
  });
}

}  // namespace deepinfer::cpu
