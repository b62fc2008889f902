#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

namespace {

float exp_f32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

/// Weighted mean of two tokens' c by the softmax of their z, per channel.
void pool_pair(const float* c0, const float* z0, const float* c1, const float* z1, int64_t n, Bf16* out) {
  for (int64_t i = 0; i < n; ++i) {
    const float max = std::max(z0[i], z1[i]);
    const float e0 = exp_f32(z0[i] - max);
    const float e1 = exp_f32(z1[i] - max);
    const float sum = e0 + e1;
    out[i] = to_bf16((e0 / sum) * c0[i] + (e1 / sum) * c1[i]);
  }
}

/// Latents of ratio 2 before the norm; also keeps c and z of the newest rows in the tail.
void pool_groups(Context& ctx, const ops::CompressArgs& a, const int32_t* row, int64_t n_entries, Bf16* latent) {
  const Arena::Scope scope(ctx.arena);
  const int64_t n = a.rows.n;
  const int64_t dim = a.wkv.n_out;
  float* c = ctx.arena.take<float>(n * dim);
  float* z = ctx.arena.take<float>(n * dim);
  linear(ctx, a.wkv, a.x, n, c);
  linear(ctx, a.wgate, a.x, n, z);
  // Entries first: a row whose partner came in an earlier step finds it in the tail, which is written afterwards.
  ctx.pool.run(n_entries, [&](int64_t i) {
    const int64_t t = row[i];
    const bool in_step = t > a.rows.begin[t];
    const float* c0 = in_step ? c + (t - 1) * dim : a.tail.c(a.rows.slot[t], a.rows.position[t] - 1);
    const float* z0 = in_step ? z + (t - 1) * dim : a.tail.z(a.rows.slot[t], a.rows.position[t] - 1);
    pool_pair(c0, z0, c + t * dim, z + t * dim, dim, latent + i * dim);
  });
  for (int64_t t = 0; t < n; ++t) {
    const int64_t later = t + a.tail.n_rows;
    if (later < n && a.rows.begin[later] == a.rows.begin[t]) continue;  // overwritten by that row
    std::copy_n(c + t * dim, dim, a.tail.c(a.rows.slot[t], a.rows.position[t]));
    std::copy_n(z + t * dim, dim, a.tail.z(a.rows.slot[t], a.rows.position[t]));
  }
}

/// Index keys and compressed entries of normalised latents.
void store_entries(Context& ctx, const ops::CompressArgs& a, const int32_t* row, int64_t n_entries, Bf16* latent) {
  const Arena::Scope scope(ctx.arena);
  const kv::SourceLayout& layout = a.out.layout;
  const int64_t dim = layout.head_dim;
  const int64_t key_dim = layout.index_dim;
  Bf16* key = ctx.arena.take<Bf16>(n_entries * key_dim);
  linear(ctx, a.wk, latent, n_entries, key);
  ctx.pool.run(n_entries, [&](int64_t i) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope thread_scope(arena);
    const int32_t slot = a.rows.slot[row[i]];
    const int32_t entry = (a.rows.position[row[i]] + 1) / layout.ratio - 1;
    SinCos* angles = arena.take<SinCos>(a.rope.n_pairs);
    rope_angles(a.rope, static_cast<int64_t>(entry) * layout.ratio, angles);

    Bf16* k = key + i * key_dim;
    rms_norm(k, a.k_norm, key_dim, a.rms_eps, k);
    rotate_tail(k, key_dim, angles, a.rope.n_pairs, false);
    const kv::PackedRow key_out = a.out.index_key(slot, entry);
    quantize_mxfp4_block32(k, key_dim, key_out.values, key_out.scales);

    rotate_tail(latent + i * dim, dim, angles, a.rope.n_pairs, false);
    const kv::PackedRow value_out = a.out.value(slot, entry);
    quantize_nvfp4_block16(latent + i * dim, dim, value_out.values, value_out.scales);
  });
}

}  // namespace

void compress(Context& ctx, const ops::CompressArgs& a) {
  const kv::SourceLayout& layout = a.out.layout;
  const int64_t n = a.rows.n;
  const int64_t dim = layout.head_dim;
  DI_CHECK(layout.ratio == 1 || layout.ratio == 2);
  DI_CHECK((layout.ratio == 2) == (a.wgate.values != nullptr));
  DI_CHECK(a.wkv.n_out == dim && a.wk.n_out == layout.index_dim);
  const Arena::Scope scope(ctx.arena);
  int32_t* row = ctx.arena.take<int32_t>(n);  // the row that completes each entry
  int64_t n_entries = 0;
  for (int32_t t = 0; t < n; ++t) {
    if ((a.rows.position[t] + 1) % layout.ratio == 0) row[n_entries++] = t;
  }
  Bf16* latent = ctx.arena.take<Bf16>(n * dim);
  if (layout.ratio == 2) {
    pool_groups(ctx, a, row, n_entries, latent);
  } else {
    linear(ctx, a.wkv, a.x, n, latent);
  }
  ctx.pool.run(n_entries, [&](int64_t i) { rms_norm(latent + i * dim, a.norm, dim, a.rms_eps, latent + i * dim); });
  store_entries(ctx, a, row, n_entries, latent);
}

Demand compress_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n = limits.n_rows_max;
  const int64_t dim = config.head_dim;
  const int64_t groups = 2 * Arena::bytes<float>(n * dim) + linear_bytes(n, config.hidden_size);
  const int64_t store = Arena::bytes<Bf16>(n * config.index_head_dim) + linear_bytes(n, dim);
  return {Arena::bytes<int32_t>(n) + Arena::bytes<Bf16>(n * dim) + std::max(groups, store),
          std::max(multiply_outputs_bytes(), Arena::bytes<SinCos>(config.rope_dim / 2))};
}

}  // namespace deepinfer::cpu
