#include "numerics/functions.h"

#include <cmath>

namespace deepinfer {

namespace {
float exp_f32(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }
}  // namespace

float sigmoid(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

float silu(float x) { return x / (1.0f + exp_f32(-x)); }

float softplus_sqrt(float x) {
  return std::sqrt(x > 20.0f ? x : static_cast<float>(std::log1p(static_cast<double>(exp_f32(x)))));
}

float inverse_sqrt(float x) { return 1.0f / std::sqrt(x); }

}  // namespace deepinfer
