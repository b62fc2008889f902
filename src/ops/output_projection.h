#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// Grouped low-rank output projection: u_g = wo_a[g] o_g for each of n_groups groups of consecutive heads, then y =
/// wo_b fp8(concat u). wo_a's weights are used as bf16 (exact) and its input is not quantised.
/// Shapes   o [n_rows, n_groups * wo_a.n_in]; wo_a [n_groups * Ro, H*D/n_groups]; wo_b [dim, n_groups * Ro]; y [n_rows,
///          dim]
/// Source   spec 4.5
struct OutputProjectionArgs {
  int32_t n_rows = 0;
  int32_t n_groups = 0;
  const Bf16* o = nullptr;
  Fp8Matrix wo_a;
  Fp8Matrix wo_b;
  Bf16* y = nullptr;
};

}  // namespace deepinfer::ops
