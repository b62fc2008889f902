// A row's selected entries are decoded 64 slots at a time into fp32, each block is used by all heads of the task. One
// task is one row, or, when there are fewer rows than threads, some heads of one row.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "base/check.h"

namespace deepinfer::cpu {

namespace {

static_assert(ops::kAttentionBlock == kSoftmaxSlots);

constexpr int64_t kSlotPadding = 16;  // floats: decoded slots do not fall on the same cache sets
constexpr int64_t kHeadsPerTaskMin = 4;

/// Scratch of one task.
struct Work {
  float* slot;         // [kSoftmaxSlots, head_dim + kSlotPadding] decoded entries
  const float** q;     // [n_heads] packed
  float* sum;          // [n_heads, head_dim]
  float* score;        // [n_heads, kSoftmaxSlots]
  float* max;          // [n_heads]
  float* denominator;  // [n_heads]
  float* rescale;      // [n_heads]
  float* gemm_scratch;
  SinCos* angles;
};

Work take_work(Arena& arena, int64_t n_heads, int64_t head_dim, int64_t n_pairs) {
  Work w{};
  w.slot = arena.take<float>(kSoftmaxSlots * (head_dim + kSlotPadding));
  w.q = arena.take<const float*>(n_heads);
  w.sum = arena.take<float>(n_heads * head_dim);
  w.score = arena.take<float>(n_heads * kSoftmaxSlots);
  w.max = arena.take<float>(n_heads);
  w.denominator = arena.take<float>(n_heads);
  w.rescale = arena.take<float>(n_heads);
  w.gemm_scratch = arena.take<float>(kGemmScratchFloats);
  w.angles = arena.take<SinCos>(n_pairs);
  return w;
}

int64_t work_bytes(int64_t n_heads, int64_t head_dim, int64_t n_pairs) {
  return Arena::bytes<float>(kSoftmaxSlots * (head_dim + kSlotPadding)) + Arena::bytes<const float*>(n_heads) +
         Arena::bytes<float>(n_heads * head_dim) + Arena::bytes<float>(n_heads * kSoftmaxSlots) +
         3 * Arena::bytes<float>(n_heads) + Arena::bytes<float>(kGemmScratchFloats) + Arena::bytes<SinCos>(n_pairs) +
         Arena::bytes<float>(n_heads * packed_stride(head_dim));
}

/// The window positions of a row.
struct Window {
  int32_t first;
  int32_t n;
  int32_t step_start;  // first position of the row's sequence in this step
};

Window window_of(const ops::AttentionArgs& a, int64_t t) {
  const int32_t position = a.rows.position[t];
  const int32_t floor = a.window_floor != nullptr ? a.window_floor[t] : 0;
  const int32_t first = std::max({floor, position - a.window + 1, 0});
  return {first, position - first + 1, position - static_cast<int32_t>(t - a.rows.begin[t])};
}

/// Decodes the occupied slots of [begin, begin + 64), packed in slot order; returns how many.
int32_t decode_slots(const Kernels& k, const ops::AttentionArgs& a, int64_t t, const Window& window, int32_t n_selected,
                     int32_t begin, float* out) {
  const int64_t stride = a.head_dim + kSlotPadding;
  const int32_t end = begin + kSoftmaxSlots;
  int32_t n = 0;
  for (int32_t s = begin; s < std::min(end, window.n); ++s, ++n) {
    const int32_t p = window.first + s;
    const kv::PackedRow row =
        p < window.step_start ? a.ring.row(a.rows.slot[t], p) : a.step.row(a.rows.begin[t] + (p - window.step_start));
    k.decode_fp8(row.values, row.scales, a.head_dim, out + n * stride);
  }
  const int32_t* selected = a.selected + t * int64_t{a.topk};
  for (int32_t i = std::max(begin - a.window, 0); i < std::min(end - a.window, n_selected); ++i, ++n) {
    const kv::PackedRow row = a.global.value(a.rows.slot[t], selected[i]);
    k.decode_nvfp4(row.values, row.scales, a.head_dim, out + n * stride);
  }
  return n;
}

/// score [n_heads, kSoftmaxSlots] = q . slots.
void score_slots(const Kernels& k, const Work& w, int64_t n_heads, int64_t head_dim, int32_t n_slots) {
  const WeightRows slots = weight_rows(w.slot, head_dim, head_dim + kSlotPadding);
  for (int64_t h = 0; h < n_heads; h += kTileRows) {
    for (int32_t s = 0; s < n_slots; s += kTileOutputs) {
      const GemmTile tile{.w = slots,
                          .n_begin = s,
                          .n_outputs = std::min(kTileOutputs, n_slots - s),
                          .n_rows = static_cast<int32_t>(std::min<int64_t>(kTileRows, n_heads - h)),
                          .x = w.q + h,
                          .out = w.score + h * kSoftmaxSlots + s,
                          .out_stride = kSoftmaxSlots,
                          .scratch = w.gemm_scratch};
      k.gemm(&tile);
    }
  }
}

/// One block of the online softmax of all heads.
void add_block(const Kernels& k, const ops::AttentionArgs& a, const Work& w, int64_t n_heads, int32_t n_slots) {
  score_slots(k, w, n_heads, a.head_dim, n_slots);
  for (int64_t h = 0; h < n_heads; ++h) {
    SoftmaxBlock block{.score = w.score + h * kSoftmaxSlots,
                       .n_slots = n_slots,
                       .scale = a.softmax_scale,
                       .max = w.max[h],
                       .sum = w.denominator[h],
                       .rescale = 0};
    k.softmax(&block);
    w.max[h] = block.max;
    w.denominator[h] = block.sum;
    w.rescale[h] = block.rescale;
  }
  const WeightedSum sum{.p = w.score,
                        .rescale = w.rescale,
                        .v = w.slot,
                        .out = w.sum,
                        .p_stride = kSoftmaxSlots,
                        .v_stride = a.head_dim + kSlotPadding,
                        .dim = a.head_dim,
                        .n_heads = static_cast<int32_t>(n_heads),
                        .n_slots = n_slots};
  k.weighted_sum(&sum);
}

/// Heads [first, first + n_heads) of row t.
void attend(Context& ctx, const ops::AttentionArgs& a, int64_t t, int64_t first, int64_t n_heads) {
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  const Kernels& k = ctx.kernels;
  const int64_t dim = a.head_dim;
  const Work w = take_work(arena, n_heads, dim, a.rope.n_pairs);
  const int64_t q_stride = packed_stride(dim);
  float* q = arena.take<float>(n_heads * q_stride);
  const int64_t row_offset = (t * a.n_heads + first) * dim;
  for (int64_t h = 0; h < n_heads; ++h) {
    k.pack_bf16(WeightFormat::kF32, &a.q[row_offset + h * dim].bits, dim, q + h * q_stride);
    w.q[h] = q + h * q_stride;
  }
  std::fill_n(w.sum, n_heads * dim, 0.0F);
  std::fill_n(w.max, n_heads, -1e30F);
  std::fill_n(w.denominator, n_heads, 0.0F);

  const Window window = window_of(a, t);
  int32_t n_selected = 0;
  while (n_selected < a.topk && a.selected[t * int64_t{a.topk} + n_selected] >= 0) ++n_selected;
  const int32_t n_slots = n_selected > 0 ? a.window + n_selected : window.n;
  for (int32_t begin = 0; begin < n_slots; begin += kSoftmaxSlots) {
    const int32_t n = decode_slots(k, a, t, window, n_selected, begin, w.slot);
    if (n > 0) add_block(k, a, w, n_heads, n);
  }

  rope_angles(a.rope, a.rows.position[t], w.angles);
  for (int64_t h = 0; h < n_heads; ++h) {
    const float sink = static_cast<float>(std::exp(static_cast<double>(a.sink[first + h] - w.max[h])));
    const float total = w.denominator[h] + sink;
    Bf16* out = a.out + row_offset + h * dim;
    const float* sum = w.sum + h * dim;
    for (int64_t c = 0; c < dim; ++c) out[c] = to_bf16(sum[c] / total);
    rotate_tail(out, dim, w.angles, a.rope.n_pairs, true);
  }
}

}  // namespace

void attention(Context& ctx, const ops::AttentionArgs& a) {
  DI_CHECK(a.head_dim % 32 == 0);
  DI_CHECK(a.topk == 0 || a.selected != nullptr);
  // Splitting heads repeats the decoding, so only as far as threads would idle.
  const int64_t wanted = a.rows.n == 0 ? 1 : (ctx.pool.n_threads() + a.rows.n - 1) / a.rows.n;
  const int64_t heads = std::max<int64_t>((a.n_heads + wanted - 1) / wanted, kHeadsPerTaskMin);
  const int64_t n_splits = (a.n_heads + heads - 1) / heads;
  ctx.pool.run(a.rows.n * n_splits, [&](int64_t task) {
    const int64_t first = task % n_splits * heads;
    attend(ctx, a, task / n_splits, first, std::min(heads, a.n_heads - first));
  });
}

Demand attention_demand(const ModelConfig& config, const ops::StepLimits&) {
  return {0, work_bytes(config.n_heads, config.head_dim, config.rope_dim / 2)};
}

}  // namespace deepinfer::cpu
