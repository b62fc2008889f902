#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/ref/math.h"
#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "kv/layout.h"
#include "numerics/block_quant.h"

namespace deepinfer::ref {

namespace {

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

/// Ids of the k best scores above -inf (-0 equals +0, ties to the lowest id), ascending, padded with -1 to n_out.
void select_top(const std::vector<float>& score, int32_t k, int32_t n_out, int32_t* out) {
  std::vector<int32_t> id(score.size());
  std::iota(id.begin(), id.end(), 0);
  std::erase_if(id, [&](int32_t i) { return score[static_cast<size_t>(i)] == kNegInf; });
  std::stable_sort(id.begin(), id.end(),
                   [&](int32_t a, int32_t b) { return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)]; });
  if (id.size() > static_cast<size_t>(k)) id.resize(static_cast<size_t>(k));
  std::sort(id.begin(), id.end());
  std::fill_n(out, n_out, -1);
  std::copy(id.begin(), id.end(), out);
}

void publish_blocks(const ops::IndexSelectArgs& a, const std::vector<float>& score, int32_t* out) {
  const int64_t size = a.candidate_block_size;
  const int64_t visible = static_cast<int64_t>(score.size());
  std::vector<float> best(static_cast<size_t>((visible + size - 1) / size), kNegInf);
  for (int64_t j = 0; j < visible; ++j) {
    float& block = best[static_cast<size_t>(j / size)];
    block = std::max(block, score[static_cast<size_t>(j)]);
  }
  if (!best.empty()) best.back() = std::numeric_limits<float>::infinity();  // the newest visible block is always in
  select_top(best, a.candidate_topk_blocks, a.candidate_topk_blocks, out);
}

void keep_candidates(const ops::IndexSelectArgs& a, const int32_t* blocks, std::vector<float>& score) {
  std::vector<bool> in(score.size(), false);
  for (int32_t b = 0; b < a.candidate_topk_blocks && blocks[b] >= 0; ++b) {
    const int64_t first = static_cast<int64_t>(blocks[b]) * a.candidate_block_size;
    for (int64_t j = first; j < first + a.candidate_block_size && j < static_cast<int64_t>(in.size()); ++j) {
      in[static_cast<size_t>(j)] = true;
    }
  }
  for (size_t j = 0; j < score.size(); ++j) {
    if (!in[j]) score[j] = kNegInf;
  }
}

/// Scores of the visible entries of one row; query [Hi, Di], head_weight [Hi].
std::vector<float> score_row(const ops::IndexSelectArgs& a, int64_t t, const float* query, const float* head_weight) {
  const int64_t dim = a.head_dim;
  const int64_t visible = (static_cast<int64_t>(a.rows.position[t]) + 1) / a.keys.layout.ratio;
  std::vector<float> score(static_cast<size_t>(visible));
  std::vector<float> key(static_cast<size_t>(dim));
  for (int64_t j = 0; j < visible; ++j) {
    const kv::PackedRow packed = a.keys.index_key(a.rows.slot[t], static_cast<int32_t>(j));
    dequantize_mxfp4_block32(packed.values, packed.scales, dim, key.data());
    float sum = 0;
    for (int64_t h = 0; h < a.n_heads; ++h) {
      const float product = to_float(to_bf16(static_cast<float>(dot(query + h * dim, key.data(), dim))));
      sum += to_float(to_bf16(head_weight[h] * std::max(product, 0.0F)));
    }
    score[static_cast<size_t>(j)] = to_float(to_bf16(sum));
  }
  return score;
}

}  // namespace

void index_select(ThreadPool& pool, const ops::IndexSelectArgs& a) {
  const int64_t n = a.rows.n;
  const int64_t width = static_cast<int64_t>(a.n_heads) * a.head_dim;
  DI_CHECK(a.wq_b.n_out == width && a.weights_proj.n_out == a.n_heads);
  DI_CHECK(a.publish == nullptr || a.use == nullptr);

  std::vector<Bf16> query(static_cast<size_t>(n * width));
  multiply_to_bf16(pool, decode_rows(a.low, n), n, a.wq_b, query.data());
  for (int64_t i = 0; i < n * a.n_heads; ++i) {
    rotate_tail(query.data() + i * a.head_dim, a.head_dim, a.rope, a.rows.position[i / a.n_heads], false);
  }
  std::vector<uint8_t> packed(query.size() / 2);
  std::vector<uint8_t> scales(query.size() / 32);
  quantize_mxfp4_block32(query.data(), n * width, packed.data(), scales.data());
  std::vector<float> q(query.size());
  dequantize_mxfp4_block32(packed.data(), scales.data(), n * width, q.data());
  if (a.query_out != nullptr) to_bf16(q.data(), a.query_out, n * width);

  std::vector<float> head_weight(static_cast<size_t>(n * a.n_heads));
  multiply(pool, decode_rows(a.x, n, a.weights_proj.n_in), n, a.weights_proj, [&](int64_t t, int64_t h, double sum) {
    const float projected = to_float(to_bf16(static_cast<float>(sum)));
    head_weight[static_cast<size_t>(t * a.n_heads + h)] = to_float(to_bf16(projected * a.weight_scale));
  });

  pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      std::vector<float> score = score_row(a, t, q.data() + t * width, head_weight.data() + t * a.n_heads);
      if (a.scores_out != nullptr) {
        float* out = a.scores_out + t * a.scores_stride;
        std::fill_n(out, a.scores_stride, kNegInf);
        std::copy(score.begin(), score.end(), out);
      }
      if (a.publish != nullptr) {
        publish_blocks(a, score, a.publish + t * a.candidate_topk_blocks);
      }
      if (a.use != nullptr) keep_candidates(a, a.use + t * a.candidate_topk_blocks, score);
      select_top(score, a.topk, a.topk, a.selected + t * a.topk);
    }
  });
}

}  // namespace deepinfer::ref
