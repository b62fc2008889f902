#pragma once

#include "kv/layout.h"
#include "ops/types.h"

namespace deepinfer::ops {

/// Lightning indexer: which compressed entries each row attends to.
///   query    mxfp4( rope( wq_b low ) ) per index head
///   g        bf16( bf16(weights_proj x) * fp32(weight_scale) ), one a head, signed
///   score    of entry j: sum over heads of g * ReLU(query . key_j), rounded to bf16 after the dot product, the product
///            with g and the sum (fp32, heads ascending)
///   visible  j < (position + 1) / r
///   selected the top-k of the visible scores, -0 equal to +0, ties to the lowest entry; ascending, then -1
/// Candidate filter (publish or use; both null in layers without it). publish: per row the best candidate_topk_blocks
/// blocks of candidate_block_size entries by their largest visible score, the newest visible block always among them,
/// ties to the lowest block; ascending, then -1; the layer's own selection is not filtered. use: entries outside the
/// published blocks are not selectable.
/// Shapes   low width Rq; x [n_rows, dim]; wq_b [Hi*Di, Rq]; weights_proj [Hi, dim]; selected [n_rows, topk];
///          candidates [n_rows, candidate_topk_blocks]
/// Cost     2*Hi*Di FLOPs a row and visible entry
/// Source   spec 5
struct IndexSelectArgs {
  Rows rows;
  QuantizedRows low;
  const Bf16* x = nullptr;
  Fp8Matrix wq_b;
  Bf16Matrix weights_proj;
  float weight_scale = 0;  // fp32( Di^-0.5 * Hi^-0.5 )
  int32_t n_heads = 0;     // Hi
  int32_t head_dim = 0;    // Di
  Rope rope;
  kv::GlobalView keys;
  int32_t topk = 0;
  int32_t* selected = nullptr;
  int32_t candidate_topk_blocks = 0;
  int32_t candidate_block_size = 0;
  int32_t* publish = nullptr;
  const int32_t* use = nullptr;

  // For tests and traces; null otherwise.
  Bf16* query_out = nullptr;    // [n_rows, Hi, Di] de-quantised query
  float* scores_out = nullptr;  // [n_rows, scores_stride] unfiltered scores, -inf where not visible
  int64_t scores_stride = 0;
};

}  // namespace deepinfer::ops
