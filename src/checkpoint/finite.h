// Whether stored numbers are all numbers: a NaN or an infinity in a weight is a damaged file. Pure functions, any thread.
#pragma once

#include "tensor/tensor.h"

namespace deepinfer {

/// False when the tensor holds a NaN or infinity of its type (E4M3 0x7f and 0xff, E8M0 255). FP4 and integers always
/// pass. Cost: one pass at memory speed. Precondition: view.data is aligned for its type.
bool all_finite(const TensorView& view);

}  // namespace deepinfer
