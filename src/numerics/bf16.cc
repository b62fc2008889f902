#include "numerics/bf16.h"

namespace deepinfer {

void to_float(const Bf16* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
}

void to_bf16(const float* x, Bf16* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(x[i]);
}

}  // namespace deepinfer
