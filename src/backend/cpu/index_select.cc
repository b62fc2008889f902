// Rows are taken in waves whose scores fit a fixed buffer. In a wave first all scores are computed, in tasks of some
// entries by the rows of one sequence (which share the decoded keys), then every row selects. A row whose selection
// does not depend on scores computes none; a filtered row scores only its candidates, numbered 0.. in ascending order.
#include <algorithm>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/row_math.h"
#include "backend/cpu/top_k.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::cpu {

namespace {

constexpr int64_t kScoresMax = int64_t{1} << 25;  // scores of one wave, unless a single row has more
constexpr int64_t kEntriesPerTask = 1024;
constexpr int64_t kTileEntries = 64;  // keys decoded at a time
constexpr int64_t kKeyPadding = 16;

/// What one row scores and selects from.
struct RowPlan {
  int32_t visible;         // entries
  int32_t n_scored;        // 0: no scores needed
  int32_t n_candidates;    // entries the selection is made from
  bool scores_candidates;  // scores are of the candidates only
  int64_t score_offset;
};

/// Rows [first_row, first_row + n_rows) of one sequence that score the same entries, as tasks from first_task on.
struct Group {
  int32_t first_row;
  int32_t n_rows;
  int32_t n_scored;
  int64_t first_task;
};

/// Rows [first, first + n) of a call and their queries.
struct Chunk {
  const ops::IndexSelectArgs* args;
  int64_t first;
  int64_t n;
  const float* query;  // [n, n_heads, query_stride]
  const float* g;      // [n, n_heads]
  RowPlan* plan;       // [n]
  Group* group;        // [n]
  uint16_t* score;     // of the wave
};

int64_t query_stride(int64_t head_dim) { return head_dim + kKeyPadding; }

/// Entry of candidate i of a row.
int32_t candidate_entry(const ops::IndexSelectArgs& a, int64_t t, int32_t i) {
  const int32_t* blocks = a.use + t * a.candidate_topk_blocks;
  return blocks[i / a.candidate_block_size] * a.candidate_block_size + i % a.candidate_block_size;
}

/// Visible entries in the published blocks of row t. All blocks but the last are whole.
int32_t count_candidates(const ops::IndexSelectArgs& a, int64_t t, int32_t visible) {
  const int32_t* blocks = a.use + t * a.candidate_topk_blocks;
  int32_t n = 0;
  for (int32_t b = 0; b < a.candidate_topk_blocks && blocks[b] >= 0; ++b) {
    n += std::clamp(visible - blocks[b] * a.candidate_block_size, 0, a.candidate_block_size);
  }
  return n;
}

RowPlan plan_row(const ops::IndexSelectArgs& a, int64_t t) {
  RowPlan p{};
  p.visible = (a.rows.position[t] + 1) / a.keys.layout.ratio;
  p.n_candidates = a.use != nullptr ? count_candidates(a, t, p.visible) : p.visible;
  const int32_t n_blocks = a.publish != nullptr ? (p.visible + a.candidate_block_size - 1) / a.candidate_block_size : 0;
  const bool needed = p.n_candidates > a.topk || n_blocks > a.candidate_topk_blocks;
  p.scores_candidates = a.use != nullptr && a.scores_out == nullptr;
  if (a.scores_out != nullptr) {
    p.n_scored = p.visible;
  } else if (needed) {
    p.n_scored = p.n_candidates;
  }
  return p;
}

/// Queries in fp32 and head weights of the chunk.
void make_queries(Context& ctx, const Chunk& c, float* query, float* g) {
  const ops::IndexSelectArgs& a = *c.args;
  const Arena::Scope scope(ctx.arena);
  const int64_t dim = a.head_dim;
  const int64_t width = a.n_heads * dim;
  Bf16* projected = ctx.arena.take<Bf16>(c.n * width);
  Bf16* weight = ctx.arena.take<Bf16>(c.n * a.n_heads);
  const ops::QuantizedRows low{a.low.codes + c.first * a.low.width, a.low.scales + c.first * (a.low.width / kFp8Block),
                               a.low.width};
  linear(ctx, a.wq_b, low, c.n, projected);
  linear(ctx, a.weights_proj, a.x + c.first * a.weights_proj.n_in, c.n, weight);
  ctx.pool.run(c.n, [&](int64_t r) {
    Arena& arena = ctx.thread_arena();
    const Arena::Scope thread_scope(arena);
    SinCos* angles = arena.take<SinCos>(a.rope.n_pairs);
    uint8_t* packed = arena.take<uint8_t>(dim / 2);
    uint8_t* scales = arena.take<uint8_t>(dim / kFp8Block);
    rope_angles(a.rope, a.rows.position[c.first + r], angles);
    for (int64_t h = 0; h < a.n_heads; ++h) {
      Bf16* q = projected + r * width + h * dim;
      float* out = query + (r * a.n_heads + h) * query_stride(dim);
      rotate_tail(q, dim, angles, a.rope.n_pairs, false);
      quantize_mxfp4_block32(q, dim, packed, scales);
      ctx.kernels.decode_mxfp4(packed, scales, dim, out);
      if (a.query_out != nullptr)
        dequantize_mxfp4_block32(packed, scales, dim, a.query_out + ((c.first + r) * a.n_heads + h) * dim);
      g[r * a.n_heads + h] = to_float(to_bf16(to_float(weight[r * a.n_heads + h]) * a.weight_scale));
    }
  });
}

/// Scores [begin, end) of a group's rows.
void score_entries(Context& ctx, const Chunk& c, const Group& group, int64_t begin, int64_t end) {
  const ops::IndexSelectArgs& a = *c.args;
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  const int64_t dim = a.head_dim;
  const int64_t stride = query_stride(dim);
  const bool mapped = c.plan[group.first_row].scores_candidates;
  float* key = arena.take<float>(kTileEntries * stride);
  float* dot = arena.take<float>(int64_t{a.n_heads} * kTileOutputs);
  const float** q = arena.take<const float*>(a.n_heads);
  float* scratch = arena.take<float>(kGemmScratchFloats);
  std::fill_n(dot, int64_t{a.n_heads} * kTileOutputs, 0.0F);
  const WeightRows keys = weight_rows(key, dim, stride);
  const int64_t first_t = c.first + group.first_row;
  for (int64_t tile = begin; tile < end; tile += kTileEntries) {
    const int64_t n_keys = std::min(kTileEntries, end - tile);
    for (int64_t i = 0; i < n_keys; ++i) {
      const int32_t j = static_cast<int32_t>(tile + i);
      const kv::PackedRow row = a.keys.index_key(a.rows.slot[first_t], mapped ? candidate_entry(a, first_t, j) : j);
      ctx.kernels.decode_mxfp4(row.values, row.scales, dim, key + i * stride);
    }
    for (int32_t r = group.first_row; r < group.first_row + group.n_rows; ++r) {
      const int64_t n = std::min<int64_t>(n_keys, c.plan[r].n_scored - tile);
      for (int32_t h = 0; h < a.n_heads; ++h) q[h] = c.query + (int64_t{r} * a.n_heads + h) * stride;
      for (int64_t i = 0; i < n; i += kTileOutputs) {
        for (int32_t h = 0; h < a.n_heads; h += kTileRows) {
          const GemmTile args{.w = keys,
                              .n_begin = i,
                              .n_outputs = static_cast<int32_t>(std::min<int64_t>(kTileOutputs, n - i)),
                              .n_rows = std::min(kTileRows, a.n_heads - h),
                              .x = q + h,
                              .out = dot + int64_t{h} * kTileOutputs,
                              .out_stride = kTileOutputs,
                              .scratch = scratch};
          ctx.kernels.gemm(&args);
        }
        const IndexScores scores{.dot = dot,
                                 .g = c.g + int64_t{r} * a.n_heads,
                                 .n_heads = a.n_heads,
                                 .score = c.score + c.plan[r].score_offset + tile + i};
        ctx.kernels.index_scores(&scores);
      }
    }
  }
}

/// Scores of rows [begin, end) of the chunk.
void score_wave(Context& ctx, const Chunk& c, int32_t begin, int32_t end) {
  const ops::IndexSelectArgs& a = *c.args;
  int32_t n_groups = 0;
  int64_t n_tasks = 0;
  for (int32_t r = begin; r < end;) {
    Group group{r, 1, c.plan[r].n_scored, n_tasks};
    if (!c.plan[r].scores_candidates) {  // entries are numbered alike in all rows of a sequence
      while (r + group.n_rows < end && a.rows.begin[c.first + r + group.n_rows] == a.rows.begin[c.first + r]) {
        group.n_scored = std::max(group.n_scored, c.plan[r + group.n_rows].n_scored);
        ++group.n_rows;
      }
    }
    r += group.n_rows;
    if (group.n_scored == 0) continue;
    n_tasks += (group.n_scored + kEntriesPerTask - 1) / kEntriesPerTask;
    c.group[n_groups++] = group;
  }
  ctx.pool.run(n_tasks, [&](int64_t task) {
    const Group* after = std::upper_bound(c.group, c.group + n_groups, task,
                                          [](int64_t value, const Group& group) { return value < group.first_task; });
    const Group& group = after[-1];
    const int64_t first = (task - group.first_task) * kEntriesPerTask;
    score_entries(ctx, c, group, first, std::min<int64_t>(first + kEntriesPerTask, group.n_scored));
  });
}

void write_scores(const ops::IndexSelectArgs& a, int64_t t, const uint16_t* score, int32_t n) {
  float* out = a.scores_out + t * a.scores_stride;
  std::fill_n(out, a.scores_stride, -std::numeric_limits<float>::infinity());
  for (int32_t j = 0; j < n; ++j) out[j] = to_float(Bf16{score[j]});
}

/// Publishes the best blocks of a row; key null when all blocks fit.
void publish_blocks(Arena& arena, const ops::IndexSelectArgs& a, int64_t t, int32_t visible, const uint16_t* key) {
  const Arena::Scope scope(arena);
  const int32_t size = a.candidate_block_size;
  const int32_t n_blocks = (visible + size - 1) / size;
  int32_t* out = a.publish + t * a.candidate_topk_blocks;
  int32_t n = 0;
  if (n_blocks <= a.candidate_topk_blocks) {
    for (; n < n_blocks; ++n) out[n] = n;
  } else {
    uint16_t* best = arena.take<uint16_t>(n_blocks);
    for (int32_t b = 0; b < n_blocks; ++b) {
      best[b] = *std::max_element(key + int64_t{b} * size, key + std::min<int64_t>(int64_t{b + 1} * size, visible));
    }
    best[n_blocks - 1] = std::numeric_limits<uint16_t>::max();  // the newest visible block is always in
    n = select_top(best, n_blocks, a.candidate_topk_blocks, out);
  }
  std::fill(out + n, out + a.candidate_topk_blocks, -1);
}

/// Selection of one row from its scores, which become keys.
void select_row(Context& ctx, const Chunk& c, int32_t r) {
  const ops::IndexSelectArgs& a = *c.args;
  Arena& arena = ctx.thread_arena();
  const Arena::Scope scope(arena);
  const RowPlan& p = c.plan[r];
  const int64_t t = c.first + r;
  uint16_t* key = c.score + p.score_offset;
  if (a.scores_out != nullptr) write_scores(a, t, key, p.n_scored);
  for (int32_t j = 0; j < p.n_scored; ++j) key[j] = score_key(key[j]);
  if (a.publish != nullptr) publish_blocks(arena, a, t, p.visible, key);

  int32_t* out = a.selected + t * int64_t{a.topk};
  int32_t n = 0;
  if (p.n_candidates <= a.topk) {
    for (; n < p.n_candidates; ++n) out[n] = n;
  } else {
    if (a.use != nullptr && !p.scores_candidates) {  // ascending candidates: moving down never overtakes
      for (int32_t i = 0; i < p.n_candidates; ++i) key[i] = key[candidate_entry(a, t, i)];
    }
    n = select_top(key, p.n_candidates, a.topk, out);
  }
  if (a.use != nullptr) {
    for (int32_t i = 0; i < n; ++i) out[i] = candidate_entry(a, t, out[i]);
  }
  std::fill(out + n, out + a.topk, -1);
}

int64_t score_space(int32_t n_scored) { return (n_scored + kTileOutputs - 1) / kTileOutputs * kTileOutputs; }

void select_chunk(Context& ctx, const ops::IndexSelectArgs& a, int64_t first, int64_t n) {
  const Arena::Scope scope(ctx.arena);
  Chunk c{.args = &a,
          .first = first,
          .n = n,
          .query = nullptr,
          .g = nullptr,
          .plan = nullptr,
          .group = nullptr,
          .score = nullptr};
  c.plan = ctx.arena.take<RowPlan>(n);
  c.group = ctx.arena.take<Group>(n);
  bool any = a.query_out != nullptr;
  for (int64_t r = 0; r < n; ++r) {
    c.plan[r] = plan_row(a, first + r);
    any = any || c.plan[r].n_scored > 0;
  }
  if (any) {
    float* query = ctx.arena.take<float>(n * a.n_heads * query_stride(a.head_dim));
    float* g = ctx.arena.take<float>(n * a.n_heads);
    make_queries(ctx, c, query, g);
    c.query = query;
    c.g = g;
  }
  for (int32_t begin = 0; begin < n;) {
    const Arena::Scope wave_scope(ctx.arena);
    int64_t n_scores = 0;
    int32_t end = begin;
    while (end < n && (end == begin || n_scores + score_space(c.plan[end].n_scored) <= kScoresMax)) {
      c.plan[end].score_offset = n_scores;
      n_scores += score_space(c.plan[end++].n_scored);
    }
    c.score = ctx.arena.take<uint16_t>(n_scores);
    score_wave(ctx, c, begin, end);
    ctx.pool.run(end - begin, [&](int64_t i) { select_row(ctx, c, begin + static_cast<int32_t>(i)); });
    begin = end;
  }
}

}  // namespace

void index_select(Context& ctx, const ops::IndexSelectArgs& a) {
  DI_CHECK(a.wq_b.n_out == static_cast<int64_t>(a.n_heads) * a.head_dim && a.weights_proj.n_out == a.n_heads);
  DI_CHECK(a.low.width == a.wq_b.n_in);
  DI_CHECK(a.publish == nullptr || a.use == nullptr);
  for (int64_t first = 0; first < a.rows.n; first += kRowChunk) {
    select_chunk(ctx, a, first, std::min<int64_t>(kRowChunk, a.rows.n - first));
  }
}

Demand index_select_demand(const ModelConfig& config, const ops::StepLimits& limits) {
  if (config.index_source_layer_ids.empty()) return {};
  const int64_t n = std::min<int64_t>(kRowChunk, limits.n_rows_max);
  const int64_t heads = config.index_n_heads;
  const int64_t dim = config.index_head_dim;
  const int64_t row_scores = limits.n_context_max + kTileOutputs;
  const int64_t plans = Arena::bytes<RowPlan>(n) + Arena::bytes<Group>(n) +
                        Arena::bytes<float>(n * heads * query_stride(dim)) + Arena::bytes<float>(n * heads);
  const int64_t queries = Arena::bytes<Bf16>(n * heads * dim) + Arena::bytes<Bf16>(n * heads) +
                          linear_bytes(n, std::max(config.q_lora_rank, config.hidden_size));
  const int64_t scores = Arena::bytes<uint16_t>(std::min(n * row_scores, std::max(kScoresMax, row_scores)));
  const int64_t blocks = config.candidate_block_size > 0
                             ? Arena::bytes<uint16_t>(limits.n_context_max / config.candidate_block_size + 1)
                             : 0;
  const int64_t scoring = Arena::bytes<float>(kTileEntries * query_stride(dim)) +
                          Arena::bytes<float>(heads * kTileOutputs) + Arena::bytes<const float*>(heads) +
                          Arena::bytes<float>(kGemmScratchFloats);
  const int64_t rotation = Arena::bytes<SinCos>(config.rope_dim / 2) + Arena::bytes<uint8_t>(dim / 2) +
                           Arena::bytes<uint8_t>(dim / kFp8Block);
  return {plans + std::max(queries, scores), std::max({multiply_outputs_bytes(), blocks, scoring, rotation})};
}

}  // namespace deepinfer::cpu
