#pragma once

#include "kv/layout.h"
#include "ops/types.h"

namespace deepinfer::ops {

/// Window latent of the step's rows: k = fp8( rope( RMSNorm(wkv x) ) ), packed; K and V of every head.
/// Shapes   x width dim; wkv [head_dim, dim]; out: n rows of head_dim + head_dim/32 bytes
/// Types    bf16 after linear, norm and rotation; then E4M3 with E8M0 per 32
/// Source   spec 4.2, 3.2
struct WindowKvArgs {
  Rows rows;
  QuantizedRows x;
  Fp8Matrix wkv;
  const Bf16* kv_norm = nullptr;
  float rms_eps = 0;
  Rope rope;
  kv::WindowRows out;
};

/// Copies the step's packed rows into the rings, after attention has read the rings' older rows. Of a sequence with
/// more rows than the ring only the last ring.n_rows are stored.
struct WindowCommitArgs {
  Rows rows;
  kv::WindowRows step;
  kv::RingView ring;
};

}  // namespace deepinfer::ops
