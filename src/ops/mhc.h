#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// Writes a sublayer's output back into the residual streams:
/// streams[t, k, :] = bf16( post[t, k] * y[t, :] + sum_j comb[t, j, k] * streams[t, j, :] ), j ascending, fp32 inside.
/// Shapes   y [n_rows, dim]; post [n_rows, S]; comb [n_rows, S(j = input), S(k = output)]; streams [n_rows, S, dim] in
///          place
/// Source   spec 7 (expand)
struct MhcExpandArgs {
  int32_t n_rows = 0;
  int32_t n_streams = 0;
  int64_t dim = 0;
  const Bf16* y = nullptr;
  const float* post = nullptr;
  const float* comb = nullptr;
  Bf16* streams = nullptr;
};

/// One hyper-connection site. In this order, per row:
///   1. if expand.y: the expand above, of the previous sublayer;
///   2. the mix of this site from the streams: pre, post, comb (20 Sinkhorn rounds, ending on columns);
///   3. x = RMSNorm( bf16( sum_s carried[t, s] * streams[t, s, :] ) ), rounded once to bf16, and its FP8 form.
/// Note that the collapse uses the *carried* mix of the previous site, not this site's own (single-pass mHC).
/// Shapes   fn [(2+S)*S, S*dim]; base [(2+S)*S]; scale [3]; carried, pre, post [n_rows, S]; comb [n_rows, S, S];
///          norm_weight [dim]; x [n_rows, dim]; x_quantized width dim. The expand's n_rows, n_streams, dim and streams
///          are the site's. pre/post/comb must not overlap carried or the expand's post/comb.
/// Types    parameters and mix fp32; streams, x bf16
/// Source   spec 7, 3.6
struct MhcSiteArgs {
  MhcExpandArgs expand;
  const float* fn = nullptr;
  const float* base = nullptr;
  const float* scale = nullptr;
  int32_t sinkhorn_iters = 0;
  float hc_eps = 0;
  float rms_eps = 0;
  const float* carried = nullptr;
  float* pre = nullptr;
  float* post = nullptr;
  float* comb = nullptr;
  const Bf16* norm_weight = nullptr;
  Bf16* x = nullptr;
  QuantizedRows x_quantized;
};

}  // namespace deepinfer::ops
