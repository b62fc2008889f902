#pragma once

#include <cstdint>

#include "numerics/bf16.h"

namespace deepinfer::ref {

/// out [dim] = bf16( sum_s carried[s] * streams[s, :] ), s ascending, fp32.
void collapse_row(const Bf16* streams, const float* carried, int64_t n_streams, int64_t dim, Bf16* out);

}  // namespace deepinfer::ref
