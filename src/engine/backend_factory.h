// The one place that turns a backend's name into a backend. Nothing else in the tree knows which ones exist.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deepinfer/options.h"
#include "deepinfer/status.h"
#include "ops/backend.h"

namespace deepinfer {

/// Backends of this build, best first.
std::vector<std::string> available_backends();

/// Resolves `auto` (ref when numerics asks for the reference, else the best) and makes the backend.
/// kInvalidArgument for an unknown name or one that does not offer the numerics.
Result<std::unique_ptr<ops::Backend>> make_backend(const std::string& name, Numerics numerics, int n_threads);

}  // namespace deepinfer
