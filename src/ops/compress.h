#pragma once

#include "kv/layout.h"
#include "ops/types.h"

namespace deepinfer::ops {

/// Global KV of a Full layer. The row at position p completes entry j = (p + 1) / r - 1 when (p + 1) % r == 0:
///   r = 2: c = wkv x, z = wgate x in fp32; per channel softmax of z over the group's two tokens weights c; latent =
///          RMSNorm(bf16(pooled)). Every row leaves its (c, z) in the tail; the partner of a row comes from
///          this step or from the tail.
///   r = 1: latent = RMSNorm(bf16(wkv x)).
/// From the latent: index key = mxfp4( rope( RMSNorm_k(wk latent) ) ); compressed entry = nvfp4( rope(latent) ), both
/// at position j * r. Both are written to the sequence's blocks, which must exist.
/// Shapes   x [n_rows, dim] bf16; wkv, wgate [head_dim, dim] (wgate null iff r = 1); wk [index_dim, head_dim]
/// Source   spec 4.3, 5, 3.3, 3.4
struct CompressArgs {
  Rows rows;
  const Bf16* x = nullptr;
  Bf16Matrix wkv;
  Bf16Matrix wgate;
  const Bf16* norm = nullptr;
  Bf16Matrix wk;
  const Bf16* k_norm = nullptr;
  float rms_eps = 0;
  Rope rope;          // n_pairs = rope_dim / 2, of the latent's and of the key's last channels alike
  kv::TailView tail;  // r = 2 only
  kv::GlobalView out;
};

}  // namespace deepinfer::ops
