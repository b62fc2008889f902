#include <cmath>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "numerics/block_quant.h"
#include "numerics/functions.h"

namespace deepinfer::ref {

namespace {

/// Gate of one stream: sigmoid of the signed square root of the normalised key-stream product.
float gate(const ops::EngramArgs& a, const Bf16* x, const Bf16* key, int64_t stream) {
  const Bf16* q_weight = a.q_weight + stream * a.dim;
  const Bf16* k_weight = a.k_weight + stream * a.dim;
  double x_squares = 0;
  double key_squares = 0;
  double product = 0;
  for (int64_t c = 0; c < a.dim; ++c) {
    const float xv = to_float(x[c]);
    const float kv = to_float(key[c]);
    x_squares += static_cast<double>(xv) * static_cast<double>(xv);
    key_squares += static_cast<double>(kv) * static_cast<double>(kv);
    product += static_cast<double>(xv * (to_float(q_weight[c]) * to_float(k_weight[c])) * kv);
  }
  const float scale = inverse_rms(x_squares, a.dim, a.rms_eps) * inverse_rms(key_squares, a.dim, a.rms_eps);
  const float dim_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.dim)));
  const float dot = static_cast<float>(product) * scale * dim_scale;
  return sigmoid(std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6F)), dot));
}

}  // namespace

void engram(ThreadPool& pool, const ops::EngramArgs& a) {
  const int64_t width = static_cast<int64_t>(a.n_columns) * a.head_dim;
  // Table values already lie on the FP8 grid of the activation rule, so re-quantising them loses nothing; it is done
  // all the same because it is what the model defines.
  std::vector<Bf16> rows(static_cast<size_t>(a.n_rows * width));
  for (int64_t i = 0; i < static_cast<int64_t>(a.n_rows) * a.n_columns; ++i) {
    dequantize_fp8_block32(a.table_codes + a.row_id[i] * a.head_dim, a.table_scales + a.row_id[i] * (a.head_dim / 32),
                           a.head_dim, rows.data() + i * a.head_dim);
  }
  std::vector<uint8_t> codes(rows.size());
  std::vector<uint8_t> scales(rows.size() / 32);
  const ops::QuantizedRows quantized{codes.data(), scales.data(), width};
  quantize_rows(rows.data(), a.n_rows, quantized);
  std::vector<Bf16> projected(static_cast<size_t>(a.n_rows * a.wkv.n_out));
  multiply_to_bf16(pool, decode_rows(quantized, a.n_rows), a.n_rows, a.wkv, projected.data());

  pool.parallel_for(a.n_rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (a.dead != nullptr && a.dead[t] != 0) continue;  // gate 0
      const Bf16* keys = projected.data() + t * a.wkv.n_out;
      const Bf16* value = keys + a.n_streams * a.dim;
      for (int64_t s = 0; s < a.n_streams; ++s) {
        Bf16* x = a.streams + (t * a.n_streams + s) * a.dim;
        const float g = gate(a, x, keys + s * a.dim, s);
        for (int64_t c = 0; c < a.dim; ++c) x[c] = to_bf16(to_float(x[c]) + g * to_float(value[c]));
      }
    }
  });
}

}  // namespace deepinfer::ref
