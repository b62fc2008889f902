#include <algorithm>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::ref {

void window_kv(ThreadPool& pool, const ops::WindowKvArgs& a) {
  const int64_t dim = a.wkv.n_out;
  DI_CHECK(a.out.head_dim == dim);
  std::vector<Bf16> latent(static_cast<size_t>(a.rows.n * dim));
  multiply_to_bf16(pool, decode_rows(a.x, a.rows.n), a.rows.n, a.wkv, latent.data());
  for (int64_t t = 0; t < a.rows.n; ++t) {
    Bf16* row = latent.data() + t * dim;
    rms_norm(row, a.kv_norm, dim, a.rms_eps, row);
    rotate_tail(row, dim, a.rope, a.rows.position[t], false);
    const kv::PackedRow out = a.out.row(t);
    quantize_fp8_block32(row, dim, out.values, out.scales);
  }
}

void window_commit(const ops::WindowCommitArgs& a) {
  const int64_t bytes = kv::window_row_bytes(a.step.head_dim);
  for (int64_t t = 0; t < a.rows.n; ++t) {
    // Later rows overwrite earlier ones of the same ring place, so ascending order stores the last ones.
    const kv::PackedRow from = a.step.row(t);
    std::copy_n(from.values, bytes, a.ring.row(a.rows.slot[t], a.rows.position[t]).values);
  }
}

}  // namespace deepinfer::ref
