#pragma once

#include "kv/layout.h"
#include "ops/types.h"

namespace deepinfer::ops {

/// Sparse attention of one layer: each row attends to its window (positions max(floor, p-W+1)..p; from the ring before
/// the step, from the step's rows after) and to its selected compressed entries, with a per-head sink in the
/// denominator, then the inverse rotation of the output's last channels.
/// Slots    0..W-1 the window positions ascending, packed from slot 0; W..W+topk-1 the selected entries ascending,
///          packed; the rest masked. Online softmax over blocks of 64 slots: running maximum from -1e30, probabilities
///          relative to it rounded to bf16 for P.V, the denominator sums them unrounded in fp32; sink added after the
///          last block.
/// Shapes   q, out [n_rows, n_heads, head_dim]; sink [n_heads] fp32; selected [n_rows, topk], ascending then -1
/// Types    bf16 operands, fp32 (or wider) sums, out bf16, once before and once after the inverse rotation
/// Source   spec 4.4, 4.5
struct AttentionArgs {
  Rows rows;
  const int32_t* window_floor = nullptr;  // [n] first position whose window row may be read; null: 0
  const Bf16* q = nullptr;
  int32_t n_heads = 0;
  int32_t head_dim = 0;
  float softmax_scale = 0;  // fp32(head_dim^-0.5)
  int32_t window = 0;
  kv::RingView ring;
  kv::WindowRows step;
  int32_t topk = 0;  // 0: no compressed part
  const int32_t* selected = nullptr;
  kv::GlobalView global;
  const float* sink = nullptr;
  Rope rope;
  Bf16* out = nullptr;
};

/// Slots per block of the online softmax.
inline constexpr int32_t kAttentionBlock = 64;

}  // namespace deepinfer::ops
