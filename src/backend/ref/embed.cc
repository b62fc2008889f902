#include <algorithm>

#include "backend/ref/ref_ops.h"
#include "base/check.h"

namespace deepinfer::ref {

void embed(const ops::EmbedArgs& a) {
  const int64_t dim = a.table.n_in;
  for (int64_t t = 0; t < a.n_rows; ++t) {
    DI_CHECK(a.token[t] >= 0 && a.token[t] < a.table.n_out);
    const Bf16* row = a.table.values + a.token[t] * dim;
    for (int64_t s = 0; s < a.n_streams; ++s) std::copy_n(row, dim, a.streams + (t * a.n_streams + s) * dim);
  }
}

}  // namespace deepinfer::ref
