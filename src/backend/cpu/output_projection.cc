#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "base/check.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

namespace {

/// low [n_rows, wo_a.n_out] = the groups' products of rows [first, first + n_rows) of o.
void project_groups(Context& ctx, const ops::OutputProjectionArgs& a, int64_t first, int64_t n_rows, Bf16* low) {
  const Arena::Scope scope(ctx.arena);
  const int64_t group_in = a.wo_a.n_in;
  const int64_t group_out = a.wo_a.n_out / a.n_groups;
  // [n_rows, n_groups] in memory; the table of addresses is by group.
  const PackedRows packed =
      pack_rows(ctx, WeightFormat::kFp8, a.o + first * a.n_groups * group_in, n_rows * a.n_groups, group_in);
  const float** by_group = ctx.arena.take<const float*>(n_rows * a.n_groups);
  for (int64_t i = 0; i < n_rows * a.n_groups; ++i) {
    by_group[i % a.n_groups * n_rows + i / a.n_groups] = packed.row[i];
  }
  const WeightRows w = weight_rows(a.wo_a);
  const int64_t tiles_per_group = (group_out + kTileOutputs - 1) / kTileOutputs;
  ctx.pool.run(tiles_per_group * a.n_groups, [&](int64_t task) {
    const int64_t group = task / tiles_per_group;
    const int64_t begin = group * group_out + task % tiles_per_group * kTileOutputs;
    const int64_t end = std::min(begin + kTileOutputs, (group + 1) * group_out);
    multiply_outputs(ctx, w, begin, end, {by_group + group * n_rows, n_rows}, {.bf16 = low, .stride = a.wo_a.n_out});
  });
}

}  // namespace

void output_projection(Context& ctx, const ops::OutputProjectionArgs& a) {
  DI_CHECK(a.wo_b.n_in == a.wo_a.n_out);
  DI_CHECK(a.wo_a.n_out / a.n_groups % kFp8Block == 0);
  const int64_t width = a.wo_a.n_out;
  for (int64_t first = 0; first < a.n_rows; first += kRowChunk) {
    const Arena::Scope scope(ctx.arena);
    const int64_t n_rows = std::min<int64_t>(kRowChunk, a.n_rows - first);
    Bf16* low = ctx.arena.take<Bf16>(n_rows * width);
    uint8_t* codes = ctx.arena.take<uint8_t>(n_rows * width);
    uint8_t* scales = ctx.arena.take<uint8_t>(n_rows * (width / kFp8Block));
    project_groups(ctx, a, first, n_rows, low);
    ctx.pool.run(n_rows, [&](int64_t t) {
      quantize_fp8_block32(low + t * width, width, codes + t * width, scales + t * (width / kFp8Block));
    });
    linear(ctx, a.wo_b, {codes, scales, width}, n_rows, a.y + first * a.wo_b.n_out);
  }
}

Demand output_projection_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  const int64_t n_rows = std::min<int64_t>(kRowChunk, limits.n_rows_max);
  const int64_t width = int64_t{config.o_groups} * config.o_lora_rank;
  const int64_t group_in = int64_t{config.n_heads} * config.head_dim / config.o_groups;
  const int64_t groups =
      pack_rows_bytes(n_rows * config.o_groups, group_in) + Arena::bytes<const float*>(n_rows * config.o_groups);
  return {Arena::bytes<Bf16>(n_rows * width) + Arena::bytes<uint8_t>(n_rows * width) +
              Arena::bytes<uint8_t>(n_rows * (width / kFp8Block)) + std::max(groups, linear_bytes(n_rows, width)),
          multiply_outputs_bytes()};
}

}  // namespace deepinfer::cpu
