#include "numerics/functions.h"

#include <cmath>

namespace deepinfer {

float sigmoid(float x) { return static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(x)))); }

float silu(float x) {
  const double t = x;
  return static_cast<float>(t / (1.0 + std::exp(-t)));
}

float softplus_sqrt(float x) {
  const double t = x;
  return static_cast<float>(std::sqrt(x > 20.0f ? t : std::log1p(std::exp(t))));
}

}  // namespace deepinfer
