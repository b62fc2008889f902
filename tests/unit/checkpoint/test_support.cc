#include "tests/unit/checkpoint/test_support.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace deepinfer::test {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kIndexName = "/model.safetensors.index.json";

std::vector<std::byte> pattern(std::string_view name, int64_t n_bytes) {
  std::vector<std::byte> bytes(static_cast<size_t>(n_bytes));
  uint64_t state = std::hash<std::string_view>{}(name);
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>((state >> 56U) & 0x3fU);  // finite in every type
  }
  return bytes;
}

}  // namespace

TempDir::TempDir() {
  // Memory if possible: every file written is synced, which costs milliseconds on a disk.
  const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = (parent / "checkpoint_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempDir::~TempDir() { fs::remove_all(path_); }

std::string TempDir::path(std::string_view name) const {
  return name.empty() ? path_.string() : (path_ / name).string();
}

std::vector<std::string> TempDir::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file(const std::string& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

std::string data_file(std::string_view name) {
  return read_file(DI_TESTS_DIR "/unit/checkpoint/data/" + std::string(name));
}

std::string patched(const std::string& json, const std::string& pointer, const std::string& value_json) {
  Json document = Json::parse(json);
  const Json::json_pointer where(pointer);
  if (value_json.empty()) {
    document.at(where.parent_pointer()).erase(where.back());
  } else {
    document[where] = Json::parse(value_json);
  }
  return document.dump();
}

std::string tiny_config(const std::string& pointer, const std::string& value_json) {
  return patched(data_file("tiny_config.json"), pointer, value_json);
}

std::string tiny_vision_config() {
  return tiny_config("/vision_config", R"({"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2,
      "intermediate_size": 24, "patch_size": 2, "rope_theta": 10000, "downsample_ratio": 2, "max_image_tokens": 64,
      "min_pixels": 16, "max_wh_ratio": null})");
}

SyntheticCheckpoint::SyntheticCheckpoint(std::string config_json) : config_json_(std::move(config_json)) {
  const auto config = parse_model_config(config_json_);
  EXPECT_TRUE(config.ok()) << config.error().message;
  for (const ExpectedTensor& expected : expected_tensors(*config)) {
    tensors_.push_back({expected.name, expected.dtype, expected.shape, pattern(expected.name, expected.n_bytes())});
  }
}

OwnedTensor& SyntheticCheckpoint::tensor(std::string_view name) {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const OwnedTensor& tensor) { return tensor.name == name; });
  if (found == tensors_.end()) std::abort();
  return *found;
}

void SyntheticCheckpoint::remove(std::string_view name) {
  EXPECT_EQ(std::erase_if(tensors_, [&](const OwnedTensor& tensor) { return tensor.name == name; }), 1U) << name;
}

void SyntheticCheckpoint::remove_section(Section section) {
  for (const ExpectedTensor& expected : expected_tensors(*parse_model_config(config_json_))) {
    if (expected.section == section) remove(expected.name);
  }
}

void SyntheticCheckpoint::reshape(std::string_view name, DType dtype, Shape shape) {
  OwnedTensor& changed = tensor(name);
  changed.dtype = dtype;
  changed.shape = shape;
  changed.bytes = pattern(name, shape.n_elements() * element_bytes(dtype));
}

std::vector<NamedTensor> SyntheticCheckpoint::views() const {
  std::vector<NamedTensor> views;
  for (const OwnedTensor& tensor : tensors_) {
    views.push_back({tensor.name, {tensor.bytes.data(), tensor.dtype, tensor.shape}});
  }
  return views;
}

void SyntheticCheckpoint::write(const std::string& dir) const {
  CheckpointWriteOptions options;
  options.config_json = config_json_;
  options.shard_bytes_max = 60000;
  const Status status = write_checkpoint(dir, views(), options);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

void SyntheticCheckpoint::write_single(const std::string& dir) const {
  write_file(dir + "/config.json", config_json_);
  const Status status = write_safetensors(dir + "/model.safetensors", views());
  EXPECT_TRUE(status.ok()) << status.error().message;
}

std::string shard_of(const std::string& dir, const std::string& tensor) {
  return Json::parse(read_file(dir + kIndexName)).at("weight_map").at(tensor);
}

void set_shard(const std::string& dir, const std::string& tensor, const std::string& file) {
  Json index = Json::parse(read_file(dir + kIndexName));
  if (file.empty()) {
    EXPECT_EQ(index["weight_map"].erase(tensor), 1U);
  } else {
    index["weight_map"][tensor] = file;
  }
  write_file(dir + kIndexName, index.dump());
}

void add_to_shard(const std::string& path, const std::vector<OwnedTensor>& added) {
  const std::string content = read_file(path);
  const auto bytes = std::as_bytes(std::span(content));
  const auto header = parse_safetensors_header(bytes, static_cast<int64_t>(content.size()));
  ASSERT_TRUE(header.ok()) << header.error().message;
  std::vector<NamedTensor> tensors;
  for (const SafetensorsEntry& entry : header->entries) {
    tensors.push_back({entry.name, {bytes.data() + entry.offset_bytes, *entry.dtype, entry.shape}});
  }
  for (const OwnedTensor& tensor : added) {
    tensors.push_back({tensor.name, {tensor.bytes.data(), tensor.dtype, tensor.shape}});
  }
  const Status status = write_safetensors(path, tensors);
  ASSERT_TRUE(status.ok()) << status.error().message;
}

}  // namespace deepinfer::test
