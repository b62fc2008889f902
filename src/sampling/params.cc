#include "sampling/params.h"

#include <cmath>
#include <cstdio>
#include <string>

namespace deepinfer {
namespace {

Error out_of_range(const char* field, double value, const char* limit) {
  char text[96];
  std::snprintf(text, sizeof text, "%s is %g, must be %s", field, value, limit);
  return Error{Code::kInvalidArgument, text};
}

/// False for NaN.
bool in_unit_interval(float x) { return x >= 0 && x <= 1; }

}  // namespace

Status validate(const SamplingParams& params) {
  if (!(params.temperature >= 0 && std::isfinite(params.temperature))) {
    return out_of_range("temperature", params.temperature, "a finite number, at least 0");
  }
  if (params.top_k < -1) {
    return Error{Code::kInvalidArgument,
                 "top_k is " + std::to_string(params.top_k) + ", must be at least -1 (-1 and 0 switch it off)"};
  }
  if (!in_unit_interval(params.top_p)) return out_of_range("top_p", params.top_p, "between 0 and 1");
  if (!in_unit_interval(params.min_p)) return out_of_range("min_p", params.min_p, "between 0 and 1");
  return {};
}

bool is_greedy(const SamplingParams& params) {
  return params.temperature < kGreedyTemperature || params.top_k == 1 || params.top_p == 0 || params.min_p == 1;
}

}  // namespace deepinfer
