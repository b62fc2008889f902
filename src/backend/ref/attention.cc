#include <algorithm>
#include <cmath>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::ref {

namespace {

/// The slots of one row: decoded key/value vectors and which slots hold one.
struct Slots {
  std::vector<float> value;  // [n_slots, head_dim]
  std::vector<bool> used;
};

void gather_window(const ops::AttentionArgs& a, int64_t t, Slots& slots) {
  const int32_t position = a.rows.position[t];
  const int32_t step_start = position - static_cast<int32_t>(t - a.rows.begin[t]);  // first position of this step
  const int32_t floor = a.window_floor != nullptr ? a.window_floor[t] : 0;
  int64_t slot = 0;
  for (int32_t p = std::max(floor, position - a.window + 1); p <= position; ++p, ++slot) {
    const kv::PackedRow row =
        p < step_start ? a.ring.row(a.rows.slot[t], p) : a.step.row(a.rows.begin[t] + (p - step_start));
    dequantize_fp8_block32(row.values, row.scales, a.head_dim, slots.value.data() + slot * a.head_dim);
    slots.used[static_cast<size_t>(slot)] = true;
  }
}

void gather_selected(const ops::AttentionArgs& a, int64_t t, Slots& slots) {
  const int32_t* selected = a.selected + t * a.topk;
  for (int64_t i = 0; i < a.topk && selected[i] >= 0; ++i) {
    const int64_t slot = a.window + i;
    const kv::PackedRow row = a.global.value(a.rows.slot[t], selected[i]);
    dequantize_nvfp4_block16(row.values, row.scales, a.head_dim, slots.value.data() + slot * a.head_dim);
    slots.used[static_cast<size_t>(slot)] = true;
  }
}

/// Online softmax of one head over the slots, 64 at a time; out [head_dim] before the inverse rotation.
void attend(const ops::AttentionArgs& a, const Slots& slots, const float* q, float sink, Bf16* out) {
  const int64_t dim = a.head_dim;
  const int64_t n_slots = static_cast<int64_t>(slots.used.size());
  std::vector<double> sum(static_cast<size_t>(dim), 0.0);
  double denominator = 0;
  float max = -1e30F;
  float score[ops::kAttentionBlock];
  for (int64_t first = 0; first < n_slots; first += ops::kAttentionBlock) {
    const int64_t end = std::min<int64_t>(first + ops::kAttentionBlock, n_slots);
    float new_max = max;
    for (int64_t s = first; s < end; ++s) {
      if (!slots.used[static_cast<size_t>(s)]) continue;
      score[s - first] = static_cast<float>(dot(q, slots.value.data() + s * dim, dim)) * a.softmax_scale;
      new_max = std::max(new_max, score[s - first]);
    }
    const double rescale = exp_f32(max - new_max);
    max = new_max;
    denominator *= rescale;
    for (double& value : sum) value *= rescale;
    for (int64_t s = first; s < end; ++s) {
      if (!slots.used[static_cast<size_t>(s)]) continue;
      const float p = exp_f32(score[s - first] - max);
      denominator += static_cast<double>(p);
      add_scaled(to_float(to_bf16(p)), slots.value.data() + s * dim, dim, sum.data());
    }
  }
  const float total = static_cast<float>(denominator + static_cast<double>(exp_f32(sink - max)));
  for (int64_t c = 0; c < dim; ++c) out[c] = to_bf16(static_cast<float>(sum[static_cast<size_t>(c)]) / total);
}

}  // namespace

void attention(ThreadPool& pool, const ops::AttentionArgs& a) {
  const int64_t n_slots = a.window + a.topk;
  pool.parallel_for(a.rows.n, 1, [&](int64_t begin, int64_t end) {
    Slots slots{std::vector<float>(static_cast<size_t>(n_slots * a.head_dim)), {}};
    std::vector<float> q(static_cast<size_t>(a.head_dim));
    for (int64_t t = begin; t < end; ++t) {
      slots.used.assign(static_cast<size_t>(n_slots), false);
      gather_window(a, t, slots);
      gather_selected(a, t, slots);
      for (int64_t h = 0; h < a.n_heads; ++h) {
        const int64_t offset = (t * a.n_heads + h) * a.head_dim;
        to_float(a.q + offset, q.data(), a.head_dim);
        attend(a, slots, q.data(), a.sink[h], a.out + offset);
        rotate_tail(a.out + offset, a.head_dim, a.rope, a.rows.position[t], true);
      }
    }
  });
}

}  // namespace deepinfer::ref
