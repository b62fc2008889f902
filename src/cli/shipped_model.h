// Where the model that comes with the program lies: beside the executable, whatever the working directory is. Knows
// nothing of what is in its files. Main thread, at the start.
#pragma once

#include <string>

#include "deepinfer/status.h"

namespace deepinfer::cli {

/// The folder, from the real path of the executable: ../models/mini (source tree), else ../share/deepinfer/models/mini
/// (installed). Its files may be missing.
/// Errors   kBadModelFile names the places where it is not
Result<std::string> shipped_model_dir();

/// What --model says, turned into a directory: empty and "mini" are the shipped model, all else stays.
/// Errors   kBadModelFile when the shipped model is meant and it or its weights are not there
Status resolve_model(std::string& model_dir);

}  // namespace deepinfer::cli
