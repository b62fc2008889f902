// The files of a model directory against its SHA256SUMS, the list that `sha256sum` writes. Knows no format of the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

struct ChecksumReport {
  int64_t n_files = 0;                // that the list names
  int64_t n_bytes = 0;                // of those that could be read
  std::vector<std::string> problems;  // one a file, in the list's order: "config.json is changed"; empty: all is right
};

/// Reads every listed file once. Files that are not listed do not count.
/// Errors   kBadModelFile: the list is missing or is no list of plain file names; kIo, kOutOfCapacity
Result<ChecksumReport> verify_checksums(const std::string& model_dir);

}  // namespace deepinfer
