// The definition: every operation as plain loops with the model's rounding points and double-precision sums. Other
// backends are compared with it. Slow on purpose, but rows and outputs are spread over threads.
#pragma once

#include <memory>

#include "ops/backend.h"

namespace deepinfer {

/// n_threads >= 1. Results do not depend on it.
std::unique_ptr<ops::Backend> make_ref_backend(int n_threads);

}  // namespace deepinfer
