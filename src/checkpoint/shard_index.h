// model.safetensors.index.json: which file holds which tensor. A pure function over its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

struct ShardFile {
  std::string name;
  bool is_allowed = true;  // false: the name would leave the directory (reported); never to be opened
};

struct ShardIndex {
  std::vector<ShardFile> files;                        // in order of first mention
  std::map<std::string, size_t, std::less<>> file_of;  // tensor name -> position in `files`
  std::optional<int64_t> total_size_bytes;             // metadata.total_size
};

/// Parses an index. Things that make it unusable as a whole are the error; what is wrong with single lines (a tensor
/// twice, a file name that would leave the directory) goes to `problems`, and those lines are left out.
Result<ShardIndex> parse_shard_index(std::string_view json, std::vector<std::string>& problems);

/// "model-00001-of-00048.safetensors" is fine; empty names, ".", "..", anything with a '/' or a control character is
/// not: a shard lies in the model directory itself.
bool is_plain_file_name(std::string_view name);

}  // namespace deepinfer
