#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// Expert choice: s = sqrt(softplus(gate x)) in fp32; the n_active experts of largest s + bias, ties to the lowest id;
/// weight = s / (sum of chosen s + 1e-20) * scaling (without the division if !normalize).
/// Shapes   x [n_rows, dim]; gate [E, dim]; bias, bias_image [E]; expert, weight [n_rows, n_active], descending s +
///          bias
/// Source   spec 9
struct RouterArgs {
  int32_t n_rows = 0;
  const Bf16* x = nullptr;
  Bf16Matrix gate;
  const float* bias = nullptr;
  const float* bias_image = nullptr;  // used for rows with is_image; may be null when is_image is
  const uint8_t* is_image = nullptr;  // [n_rows]; null: none is
  int32_t n_active = 0;
  bool normalize = true;
  float scaling = 1;
  int32_t* expert = nullptr;
  float* weight = nullptr;
};

struct RoutedExpert {
  Fp4Matrix w1, w3, w2;
};
struct SharedExpert {
  Fp8Matrix w1, w3, w2;
};

/// y = bf16( sum over the row's experts, ascending id, of bf16(expert output) + bf16(shared output) ), fp32 sum.
/// Expert: g = min(bf16(w1 x), limit); u = clamp(bf16(w3 x), -limit, limit); a = silu(g) * u * weight (fp32; weight 1
/// for the shared expert) -> bf16 -> FP8; output w2 a.
/// Shapes   x width dim; expert, weight [n_rows, n_active]; experts [n_experts] host array of weight views; y [n_rows,
///          dim]
/// Source   spec 9
struct MoeArgs {
  int32_t n_rows = 0;
  QuantizedRows x;
  int32_t n_active = 0;
  const int32_t* expert = nullptr;
  const float* weight = nullptr;
  const RoutedExpert* experts = nullptr;
  int32_t n_experts = 0;
  SharedExpert shared;
  float swiglu_limit = 0;
  Bf16* y = nullptr;
};

}  // namespace deepinfer::ops
