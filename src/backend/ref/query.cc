#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"

namespace deepinfer::ref {

void query(ThreadPool& pool, const ops::QueryArgs& a) {
  const int64_t n = a.rows.n;
  const int64_t rank = a.wq_a.n_out;
  DI_CHECK(a.wq_b.n_in == rank && a.low_quantized.width == rank);
  DI_CHECK(a.wq_b.n_out == static_cast<int64_t>(a.n_heads) * a.head_dim);
  multiply_to_bf16(pool, decode_rows(a.x, n), n, a.wq_a, a.low);
  for (int64_t t = 0; t < n; ++t) rms_norm(a.low + t * rank, a.q_norm, rank, a.rms_eps, a.low + t * rank);
  quantize_rows(a.low, n, a.low_quantized);
  multiply_to_bf16(pool, decode_rows(a.low_quantized, n), n, a.wq_b, a.q);
  pool.parallel_for(n * a.n_heads, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      rotate_tail(a.q + i * a.head_dim, a.head_dim, a.rope, a.rows.position[i / a.n_heads], false);
    }
  });
}

}  // namespace deepinfer::ref
