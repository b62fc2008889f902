#include <algorithm>
#include <cmath>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::ref {

namespace {

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

/// Normalised latent -> index key and compressed entry of `entry`.
void store_entry(const ops::CompressArgs& a, const std::vector<float>& wk, int32_t slot, int32_t entry, Bf16* latent) {
  const kv::SourceLayout& layout = a.out.layout;
  const int64_t position = static_cast<int64_t>(entry) * layout.ratio;
  std::vector<float> values(static_cast<size_t>(layout.head_dim));
  to_float(latent, values.data(), layout.head_dim);
  std::vector<Bf16> key(static_cast<size_t>(layout.index_dim));
  for (int64_t o = 0; o < layout.index_dim; ++o) {
    key[static_cast<size_t>(o)] =
        to_bf16(static_cast<float>(dot(values.data(), wk.data() + o * layout.head_dim, layout.head_dim)));
  }
  rms_norm(key.data(), a.k_norm, layout.index_dim, a.rms_eps, key.data());
  rotate_tail(key.data(), layout.index_dim, a.rope, position, false);
  const kv::PackedRow key_out = a.out.index_key(slot, entry);
  quantize_mxfp4_block32(key.data(), layout.index_dim, key_out.values, key_out.scales);

  rotate_tail(latent, layout.head_dim, a.rope, position, false);
  const kv::PackedRow value_out = a.out.value(slot, entry);
  quantize_nvfp4_block16(latent, layout.head_dim, value_out.values, value_out.scales);
}

}  // namespace

void compress(ThreadPool& pool, const ops::CompressArgs& a) {
  const kv::SourceLayout& layout = a.out.layout;
  const int64_t n = a.rows.n;
  const int64_t dim = layout.head_dim;
  DI_CHECK(layout.ratio == 1 || layout.ratio == 2);
  DI_CHECK((layout.ratio == 2) == (a.wgate.values != nullptr));
  const std::vector<float> x = decode_rows(a.x, n, a.wkv.n_in);
  std::vector<float> c(static_cast<size_t>(n * dim));
  std::vector<float> z(layout.ratio == 2 ? c.size() : 0);
  multiply(pool, x, n, a.wkv, [&](int64_t t, int64_t o, double sum) { c[t * dim + o] = static_cast<float>(sum); });
  if (layout.ratio == 2) {
    multiply(pool, x, n, a.wgate, [&](int64_t t, int64_t o, double sum) { z[t * dim + o] = static_cast<float>(sum); });
  }
  std::vector<float> wk(static_cast<size_t>(layout.index_dim * dim));
  for (int64_t o = 0; o < layout.index_dim; ++o) decode_row(a.wk, o, wk.data() + o * dim);

  // Entries first: a row whose partner came in an earlier step finds it in the tail, which is written afterwards.
  pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    std::vector<Bf16> latent(static_cast<size_t>(dim));
    for (int64_t t = begin; t < end; ++t) {
      const int32_t slot = a.rows.slot[t];
      const int32_t position = a.rows.position[t];
      if ((position + 1) % layout.ratio != 0) continue;
      if (layout.ratio == 2) {
        const bool in_step = t > a.rows.begin[t];
        const float* c0 = in_step ? c.data() + (t - 1) * dim : a.tail.c(slot, position - 1);
        const float* z0 = in_step ? z.data() + (t - 1) * dim : a.tail.z(slot, position - 1);
        pool_pair(c0, z0, c.data() + t * dim, z.data() + t * dim, dim, latent.data());
      } else {
        to_bf16(c.data() + t * dim, latent.data(), dim);
      }
      rms_norm(latent.data(), a.norm, dim, a.rms_eps, latent.data());
      store_entry(a, wk, slot, (position + 1) / layout.ratio - 1, latent.data());
    }
  });
  if (layout.ratio == 1) return;
  for (int64_t t = 0; t < n; ++t) {
    std::copy_n(c.data() + t * dim, dim, a.tail.c(a.rows.slot[t], a.rows.position[t]));
    std::copy_n(z.data() + t * dim, dim, a.tail.z(a.rows.slot[t], a.rows.position[t]));
  }
}

}  // namespace deepinfer::ref
