// Grouped experts. The (row, expert) pairs of a step are sorted by expert, the shared expert is one more group that has
// every row; both halves of all groups are two parallel loops over tiles of outputs, so that few rows of many experts
// fill the threads as well as many rows of few. Between the halves a tile goes through SwiGLU and FP8 in place.
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "base/check.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

namespace {

constexpr int64_t kMoeRows = 2048;  // rows a pass: bounds the workspace, shares an expert's weights among many rows
constexpr int64_t kUpOutputs = 32;  // one FP8 block of the hidden layer
constexpr int64_t kDownOutputs = 64;

/// The pairs [begin, end) of one expert.
struct Group {
  WeightRows w1, w3, w2;
  int32_t begin;
  int32_t end;
};

/// One pass. Pairs 0..n_rows-1 are the shared expert's, the routed ones follow, sorted by (expert, row).
struct Pass {
  const ops::MoeArgs* args;
  int64_t first_row;
  int64_t n_rows;
  int64_t n_pairs;
  int64_t n_groups;
  Group* group;      // [n_groups], the shared expert first: the longest tasks start early
  const float** x;   // [n_pairs] packed input
  float* weight;     // [n_pairs]
  int32_t* pair_of;  // [n_rows, n_active]
  float** hidden;    // [n_pairs] packed
  Bf16* y;           // [n_pairs, dim]
  int64_t dim;
  int64_t inner;
};

void sort_pairs(Arena& arena, const PackedRows& fp4, const PackedRows& fp8, Pass& p) {
  const ops::MoeArgs& a = *p.args;
  const int32_t* expert = a.expert + p.first_row * a.n_active;
  const float* weight = a.weight + p.first_row * a.n_active;
  p.group = arena.take<Group>(int64_t{a.n_experts} + 1);
  p.x = arena.take<const float*>(p.n_pairs);
  p.weight = arena.take<float>(p.n_pairs);
  p.pair_of = arena.take<int32_t>(p.n_rows * a.n_active);
  int32_t* next = arena.take<int32_t>(int64_t{a.n_experts} + 1);  // first count of the expert before, then place

  for (int64_t r = 0; r < p.n_rows; ++r) {
    p.x[r] = fp8.row[r];
    p.weight[r] = 1;
  }
  const int32_t n_rows = static_cast<int32_t>(p.n_rows);
  p.group[0] = {weight_rows(a.shared.w1), weight_rows(a.shared.w3), weight_rows(a.shared.w2), 0, n_rows};
  p.n_groups = 1;
  std::fill_n(next, a.n_experts + 1, 0);
  for (int64_t i = 0; i < p.n_rows * a.n_active; ++i) {
    DI_CHECK(expert[i] >= 0 && expert[i] < a.n_experts);
    ++next[expert[i] + 1];
  }
  next[0] = n_rows;
  for (int32_t e = 0; e < a.n_experts; ++e) {
    const int32_t count = next[e + 1];
    next[e + 1] += next[e];
    if (count == 0) continue;
    const ops::RoutedExpert& w = a.experts[e];
    p.group[p.n_groups++] = {weight_rows(w.w1), weight_rows(w.w3), weight_rows(w.w2), next[e], next[e + 1]};
  }
  for (int64_t i = 0; i < p.n_rows * a.n_active; ++i) {
    const int32_t pair = next[expert[i]]++;
    p.pair_of[i] = pair;
    p.x[pair] = fp4.row[i / a.n_active];
    p.weight[pair] = weight[i];
  }
}

/// Hidden columns [block * 32, block * 32 + 32) of a group: w1, w3, SwiGLU, FP8, packed for w2.
void up_tile(Context& ctx, const Pass& p, const Group& g, int64_t block) {
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  Bf16* gate = arena.take<Bf16>(kTileRows * kUpOutputs);
  Bf16* up = arena.take<Bf16>(kTileRows * kUpOutputs);
  const int64_t begin = block * kUpOutputs;
  for (int64_t first = g.begin; first < g.end; first += kTileRows) {
    const PackedRows x{p.x + first, std::min<int64_t>(kTileRows, g.end - first)};
    multiply_outputs(ctx, g.w1, begin, begin + kUpOutputs, x,
                     {.bf16 = gate, .stride = kUpOutputs, .first_output = begin});
    multiply_outputs(ctx, g.w3, begin, begin + kUpOutputs, x,
                     {.bf16 = up, .stride = kUpOutputs, .first_output = begin});
    for (int64_t r = 0; r < x.n_rows; ++r) {
      Bf16 activated[kUpOutputs];
      const SwiGlu swiglu{.gate = &gate[r * kUpOutputs].bits,
                          .up = &up[r * kUpOutputs].bits,
                          .out = &activated[0].bits,
                          .limit = p.args->swiglu_limit,
                          .weight = p.weight[first + r],
                          .n = kUpOutputs};
      ctx.kernels.swiglu(&swiglu);
      uint8_t codes[kUpOutputs];
      uint8_t scale = 0;
      quantize_fp8_block32(activated, kUpOutputs, codes, &scale);
      ctx.kernels.pack_fp8(g.w2.format, codes, &scale, kUpOutputs, p.hidden[first + r] + begin);
    }
  }
}

/// y of one row: its experts' outputs by ascending id, then the shared expert's, one rounding.
void combine_row(Context& ctx, const Pass& p, int64_t r) {
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  const int32_t n_active = p.args->n_active;
  const int32_t* pair_of = p.pair_of + r * n_active;
  int32_t* pair = arena.take<int32_t>(n_active);
  std::copy_n(pair_of, n_active, pair);
  std::sort(pair, pair + n_active);  // pairs are numbered by ascending expert
  float* sum = arena.take<float>(p.dim);
  std::fill_n(sum, p.dim, 0.0F);
  for (int32_t i = 0; i < n_active; ++i) {
    const Bf16* y = p.y + pair[i] * p.dim;
    for (int64_t c = 0; c < p.dim; ++c) sum[c] += to_float(y[c]);
  }
  const Bf16* shared = p.y + r * p.dim;
  Bf16* out = p.args->y + (p.first_row + r) * p.dim;
  for (int64_t c = 0; c < p.dim; ++c) out[c] = to_bf16(sum[c] + to_float(shared[c]));
}

void moe_rows(Context& ctx, const ops::MoeArgs& a, int64_t first_row, int64_t n_rows) {
  const Arena::Scope scope(ctx.arena);
  Pass p{};
  p.args = &a;
  p.first_row = first_row;
  p.n_rows = n_rows;
  p.n_pairs = n_rows * (int64_t{a.n_active} + 1);
  p.dim = a.x.width;
  p.inner = a.shared.w1.n_out;
  const ops::QuantizedRows x{a.x.codes + first_row * p.dim, a.x.scales + first_row * (p.dim / kFp8Block), p.dim};
  sort_pairs(ctx.arena, pack_rows(ctx, WeightFormat::kFp4, x, n_rows), pack_rows(ctx, WeightFormat::kFp8, x, n_rows),
             p);
  const int64_t hidden_stride = packed_stride(p.inner);
  float* hidden = ctx.arena.take<float>(p.n_pairs * hidden_stride);
  p.hidden = ctx.arena.take<float*>(p.n_pairs);
  for (int64_t i = 0; i < p.n_pairs; ++i) p.hidden[i] = hidden + i * hidden_stride;
  p.y = ctx.arena.take<Bf16>(p.n_pairs * p.dim);

  const int64_t n_blocks = p.inner / kUpOutputs;
  ctx.pool.run(p.n_groups * n_blocks,
               [&](int64_t task) { up_tile(ctx, p, p.group[task / n_blocks], task % n_blocks); });
  const int64_t n_tiles = (p.dim + kDownOutputs - 1) / kDownOutputs;
  ctx.pool.run(p.n_groups * n_tiles, [&](int64_t task) {
    const Group& g = p.group[task / n_tiles];
    const int64_t begin = task % n_tiles * kDownOutputs;
    multiply_outputs(ctx, g.w2, begin, std::min(p.dim, begin + kDownOutputs), {p.hidden + g.begin, g.end - g.begin},
                     {.bf16 = p.y + g.begin * p.dim, .stride = p.dim});
  });
  ctx.pool.run(n_rows, [&](int64_t r) { combine_row(ctx, p, r); });
}

}  // namespace

void moe(Context& ctx, const ops::MoeArgs& a) {
  DI_CHECK(a.shared.w1.n_in == a.x.width && a.shared.w2.n_out == a.x.width);
  DI_CHECK(a.shared.w1.n_out % kUpOutputs == 0);
  for (int64_t first = 0; first < a.n_rows; first += kMoeRows) {
    moe_rows(ctx, a, first, std::min<int64_t>(kMoeRows, a.n_rows - first));
  }
}

Demand moe_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n_rows = std::min<int64_t>(kMoeRows, limits.n_rows_max);
  const int64_t n_experts = std::max(config.n_routed_experts, config.dspark_n_routed_experts);
  const int64_t n_active = std::max(config.n_experts_per_token, config.dspark_n_experts_per_token);
  const int64_t n_pairs = n_rows * (n_active + 1);
  const int64_t dim = config.hidden_size;
  const int64_t sorting = Arena::bytes<Group>(n_experts + 1) + Arena::bytes<const float*>(n_pairs) +
                          Arena::bytes<float>(n_pairs) + Arena::bytes<int32_t>(n_rows * n_active) +
                          Arena::bytes<int32_t>(n_experts + 1);
  const int64_t hidden = Arena::bytes<float>(n_pairs * packed_stride(config.moe_intermediate_size)) +
                         Arena::bytes<float*>(n_pairs) + Arena::bytes<Bf16>(n_pairs * dim);
  const int64_t tile = 2 * Arena::bytes<Bf16>(kTileRows * kUpOutputs) + multiply_outputs_bytes();
  return {2 * pack_rows_bytes(n_rows, dim) + sorting + hidden,
          std::max(tile, Arena::bytes<int32_t>(n_active) + Arena::bytes<float>(dim))};
}

}  // namespace deepinfer::cpu
