// Counts heap allocations of the test program: allocations.cc replaces operator new and wraps malloc and its kin.
#pragma once

#include <cstdint>

namespace deepinfer {

/// Calls by any thread since the program started.
int64_t n_allocations();

}  // namespace deepinfer
