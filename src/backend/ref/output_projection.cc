#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"

namespace deepinfer::ref {

void output_projection(ThreadPool& pool, const ops::OutputProjectionArgs& a) {
  const int64_t group_in = a.wo_a.n_in;
  const int64_t group_out = a.wo_a.n_out / a.n_groups;
  DI_CHECK(a.wo_b.n_in == a.wo_a.n_out);
  const std::vector<float> o = decode_rows(a.o, a.n_rows, group_in * a.n_groups);
  std::vector<Bf16> low(static_cast<size_t>(a.n_rows * a.wo_a.n_out));
  pool.parallel_for(a.wo_a.n_out, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> weight(static_cast<size_t>(group_in));
    for (int64_t i = begin; i < end; ++i) {
      decode_row(a.wo_a, i, weight.data());
      for (int64_t t = 0; t < a.n_rows; ++t) {
        const float* group = o.data() + (t * a.n_groups + i / group_out) * group_in;
        low[static_cast<size_t>(t * a.wo_a.n_out + i)] =
            to_bf16(static_cast<float>(dot(group, weight.data(), group_in)));
      }
    }
  });
  std::vector<uint8_t> codes(low.size());
  std::vector<uint8_t> scales(low.size() / 32);
  const ops::QuantizedRows quantized{codes.data(), scales.data(), a.wo_a.n_out};
  quantize_rows(low.data(), a.n_rows, quantized);
  multiply_to_bf16(pool, decode_rows(quantized, a.n_rows), a.n_rows, a.wo_b, a.y);
}

}  // namespace deepinfer::ref
