#include "backend/ref/collapse.h"
#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"

namespace deepinfer::ref {

void head(ThreadPool& pool, const ops::HeadArgs& a) {
  std::vector<Bf16> h(static_cast<size_t>(a.n_out_rows * a.dim));
  for (int64_t i = 0; i < a.n_out_rows; ++i) {
    Bf16* row = h.data() + i * a.dim;
    const int64_t t = a.row[i];
    collapse_row(a.streams + t * a.n_streams * a.dim, a.carried + t * a.n_streams, a.n_streams, a.dim, row);
    rms_norm(row, a.norm_weight, a.dim, a.rms_eps, row);
  }
  multiply(pool, decode_rows(h.data(), a.n_out_rows, a.dim), a.n_out_rows, a.head,
           [&](int64_t t, int64_t o, double sum) { a.logits[t * a.head.n_out + o] = static_cast<float>(sum); });
}

}  // namespace deepinfer::ref
