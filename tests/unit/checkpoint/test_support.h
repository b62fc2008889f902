// Shared by the tests of this folder: temporary folders, patched configs, and synthetic checkpoints one can damage.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace deepinfer::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string path(std::string_view name = "") const;
  [[nodiscard]] std::vector<std::string> files() const;  // sorted

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

/// A file of tests/unit/checkpoint/data.
std::string data_file(std::string_view name);

/// `json` with the value at a JSON pointer replaced (or added); "" removes it.
std::string patched(const std::string& json, const std::string& pointer, const std::string& value_json);
/// tiny_config.json with one patch.
std::string tiny_config(const std::string& pointer, const std::string& value_json);
/// tiny_config.json with a small vision tower.
std::string tiny_vision_config();

struct OwnedTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

/// All tensors of a config, each filled with a pattern of its own, to be edited and then written.
class SyntheticCheckpoint {
 public:
  explicit SyntheticCheckpoint(std::string config_json);

  OwnedTensor& tensor(std::string_view name);
  void remove(std::string_view name);
  void remove_section(Section section);
  void add(OwnedTensor tensor) { tensors_.push_back(std::move(tensor)); }
  /// Gives it another shape (and bytes to match).
  void reshape(std::string_view name, DType dtype, Shape shape);

  /// Some five shards.
  void write(const std::string& dir) const;
  void write_single(const std::string& dir) const;

 private:
  [[nodiscard]] std::vector<NamedTensor> views() const;

  std::string config_json_;
  std::vector<OwnedTensor> tensors_;
};

/// The shard that the index in `dir` names for a tensor.
std::string shard_of(const std::string& dir, const std::string& tensor);
/// Changes one entry of weight_map; "" removes it.
void set_shard(const std::string& dir, const std::string& tensor, const std::string& file);

/// Rewrites a shard with tensors added to what it has.
void add_to_shard(const std::string& path, const std::vector<OwnedTensor>& added);

}  // namespace deepinfer::test
