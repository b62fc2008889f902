// The writing half of checkpoint/checkpoint.h: a model directory in Hugging Face layout.
#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_set>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file_io.h"
#include "checkpoint/message.h"

namespace deepinfer {
namespace {

std::string shard_name(size_t shard_idx, size_t n_shards) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", shard_idx + 1, n_shards);
  return name.data();
}

/// Consecutive runs of tensors of at most `shard_bytes_max` (a larger tensor stands alone).
std::vector<std::span<const NamedTensor>> split(std::span<const NamedTensor> tensors, int64_t shard_bytes_max) {
  std::vector<std::span<const NamedTensor>> shards;
  size_t begin = 0;
  int64_t shard_bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t n_bytes = tensors[i].view.n_bytes();
    if (i > begin && n_bytes > shard_bytes_max - shard_bytes) {
      shards.push_back(tensors.subspan(begin, i - begin));
      begin = i;
      shard_bytes = 0;
    }
    shard_bytes += n_bytes;
  }
  shards.push_back(tensors.subspan(begin));
  return shards;
}

}  // namespace

Status write_checkpoint(const std::string& dir, std::span<const NamedTensor> tensors,
                        const CheckpointWriteOptions& options) {
  std::unordered_set<std::string_view> names;  // a name twice in two files would pass the file writer
  int64_t total_bytes = 0;
  for (const NamedTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return Error{Code::kInvalidArgument, "tensor " + printable(tensor.name) + " is there twice"};
    }
    total_bytes += tensor.view.n_bytes();
  }

  const auto shards = split(tensors, options.shard_bytes_max);
  std::string index = "{\n \"metadata\": {\"total_size\": " + std::to_string(total_bytes) + "},\n \"weight_map\": {";
  const char* separator = "\n  ";
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string file_name = shard_name(i, shards.size());
    DI_RETURN_IF_ERROR(write_safetensors(dir + "/" + file_name, shards[i]));
    for (const NamedTensor& tensor : shards[i]) {
      index += separator + json_quoted(tensor.name) + ": " + json_quoted(file_name);
      separator = ",\n  ";
    }
  }
  index += "\n }\n}\n";
  if (!options.config_json.empty()) {
    DI_RETURN_IF_ERROR(write_text_file(dir + "/config.json", options.config_json));
  }
  return write_text_file(dir + "/model.safetensors.index.json", index);
}

}  // namespace deepinfer
