#include <algorithm>
#include <numeric>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "numerics/functions.h"

namespace deepinfer::ref {

void router(ThreadPool& pool, const ops::RouterArgs& a) {
  const int64_t n_experts = a.gate.n_out;
  std::vector<float> score(static_cast<size_t>(a.n_rows * n_experts));
  multiply(pool, decode_rows(a.x, a.n_rows, a.gate.n_in), a.n_rows, a.gate, [&](int64_t t, int64_t e, double sum) {
    score[static_cast<size_t>(t * n_experts + e)] = softplus_sqrt(static_cast<float>(sum));
  });
  for (int64_t t = 0; t < a.n_rows; ++t) {
    const float* s = score.data() + t * n_experts;
    const float* bias = a.is_image != nullptr && a.is_image[t] != 0 ? a.bias_image : a.bias;
    std::vector<int32_t> order(static_cast<size_t>(n_experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) { return s[x] + bias[x] > s[y] + bias[y]; });
    float sum = 0;
    for (int64_t i = 0; i < a.n_active; ++i) sum += s[order[static_cast<size_t>(i)]];
    for (int64_t i = 0; i < a.n_active; ++i) {
      const int32_t e = order[static_cast<size_t>(i)];
      a.expert[t * a.n_active + i] = e;
      a.weight[t * a.n_active + i] = (a.normalize ? s[e] / (sum + 1e-20F) : s[e]) * a.scaling;
    }
  }
}

namespace {

/// One expert on gathered rows x [n_rows, dim]: y [n_rows, dim] = w2 fp8( silu(w1 x) * w3 x * weight ).
template <typename Expert>
std::vector<Bf16> run_expert(ThreadPool& pool, const Expert& expert, const std::vector<float>& x, int64_t n_rows,
                             const std::vector<float>& weight, float limit) {
  const int64_t inner = expert.w1.n_out;
  std::vector<Bf16> gate(static_cast<size_t>(n_rows * inner));
  std::vector<Bf16> up(gate.size());
  multiply_to_bf16(pool, x, n_rows, expert.w1, gate.data());
  multiply_to_bf16(pool, x, n_rows, expert.w3, up.data());
  std::vector<Bf16> activated(gate.size());
  for (size_t i = 0; i < gate.size(); ++i) {
    const float g = std::min(to_float(gate[i]), limit);
    const float u = std::clamp(to_float(up[i]), -limit, limit);
    activated[i] = to_bf16(weight[i / static_cast<size_t>(inner)] * (silu(g) * u));
  }
  std::vector<uint8_t> codes(activated.size());
  std::vector<uint8_t> scales(activated.size() / 32);
  const ops::QuantizedRows quantized{codes.data(), scales.data(), inner};
  quantize_rows(activated.data(), n_rows, quantized);
  std::vector<Bf16> y(static_cast<size_t>(n_rows * expert.w2.n_out));
  multiply_to_bf16(pool, decode_rows(quantized, n_rows), n_rows, expert.w2, y.data());
  return y;
}

}  // namespace

void moe(ThreadPool& pool, const ops::MoeArgs& a) {
  const int64_t dim = a.x.width;
  const std::vector<float> x = decode_rows(a.x, a.n_rows);
  std::vector<float> sum(x.size(), 0.0F);
  for (int32_t e = 0; e < a.n_experts; ++e) {  // ascending ids: the order of each row's sum
    std::vector<int64_t> rows;
    std::vector<float> gathered;
    std::vector<float> weight;
    for (int64_t i = 0; i < static_cast<int64_t>(a.n_rows) * a.n_active; ++i) {
      if (a.expert[i] != e) continue;
      const int64_t t = i / a.n_active;
      rows.push_back(t);
      weight.push_back(a.weight[i]);
      gathered.insert(gathered.end(), x.begin() + t * dim, x.begin() + (t + 1) * dim);
    }
    if (rows.empty()) continue;
    const std::vector<Bf16> y =
        run_expert(pool, a.experts[e], gathered, static_cast<int64_t>(rows.size()), weight, a.swiglu_limit);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t c = 0; c < dim; ++c) {
        sum[static_cast<size_t>(rows[r] * dim + c)] +=
            to_float(y[r * static_cast<size_t>(dim) + static_cast<size_t>(c)]);
      }
    }
  }
  const std::vector<float> ones(static_cast<size_t>(a.n_rows), 1.0F);
  const std::vector<Bf16> shared = run_expert(pool, a.shared, x, a.n_rows, ones, a.swiglu_limit);
  for (size_t i = 0; i < sum.size(); ++i) a.y[i] = to_bf16(sum[i] + to_float(shared[i]));
}

}  // namespace deepinfer::ref
