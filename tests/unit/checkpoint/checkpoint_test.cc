#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/unit/checkpoint/test_support.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;
using test::data_file;
using test::OwnedTensor;
using test::SyntheticCheckpoint;
using test::TempDir;

constexpr const char* kTensor = "layers.2.attn.wq_a.weight";
constexpr const char* kScale = "layers.2.attn.wq_a.scale";
constexpr int64_t kPageBytes = 4096;

class CheckpointTest : public ::testing::Test {
 protected:
  void write_tiny() { SyntheticCheckpoint(data_file("tiny_config.json")).write(dir_.path()); }
  std::string shard_path(const std::string& tensor) const { return dir_.path(test::shard_of(dir_.path(), tensor)); }

  Result<Checkpoint> open(SectionSet sections = {Section::kText}) const {
    return Checkpoint::open(dir_.path(), sections);
  }

  /// Opening fails, on one line, and the message has all of `parts`.
  void expect_refused(std::initializer_list<std::string> parts, SectionSet sections = {Section::kText}) const {
    const auto checkpoint = open(sections);
    ASSERT_FALSE(checkpoint.ok());
    const std::string& message = checkpoint.error().message;
    EXPECT_EQ(checkpoint.error().code, Code::kBadModelFile);
    EXPECT_NE(message.find(dir_.path()), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  /// Opening works with exactly one warning, which has `part`.
  void expect_warning(const std::string& part) const {
    const auto checkpoint = open();
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->warnings().size(), 1U);
    EXPECT_NE(checkpoint->warnings()[0].find(part), std::string::npos) << checkpoint->warnings()[0];
  }
  static void expect_bytes(const Checkpoint& checkpoint, const OwnedTensor& expected) {
    const auto view = checkpoint.find(expected.name);
    ASSERT_TRUE(view.ok()) << view.error().message;
    EXPECT_EQ(view->shape, expected.shape);
    EXPECT_EQ(view->dtype, expected.dtype);
    ASSERT_EQ(view->n_bytes(), static_cast<int64_t>(expected.bytes.size()));
    EXPECT_EQ(std::memcmp(view->data, expected.bytes.data(), expected.bytes.size()), 0) << expected.name;
  }

  TempDir dir_;
};

TEST_F(CheckpointTest, WhatWasWrittenIsRead) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.write(dir_.path());
  auto opened = open({Section::kText, Section::kDrafter});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  Checkpoint checkpoint = *std::move(opened);
  EXPECT_TRUE(checkpoint.warnings().empty());
  EXPECT_GE(dir_.files().size(), 5U);
  ASSERT_TRUE(checkpoint.load({Section::kText, Section::kDrafter, Section::kVision}).ok());
  int64_t total_bytes = 0;
  for (const ExpectedTensor& expected : checkpoint.catalog()) {
    expect_bytes(checkpoint, synthetic.tensor(expected.name));
    total_bytes += expected.n_bytes();
  }
  EXPECT_EQ(checkpoint.total_bytes(), total_bytes);
  EXPECT_EQ(checkpoint.entries().size(), checkpoint.catalog().size());
  EXPECT_TRUE(checkpoint.has(Section::kDrafter));
  EXPECT_FALSE(checkpoint.has(Section::kVision));
  EXPECT_EQ(checkpoint.config().hidden_size, 64);
}

TEST_F(CheckpointTest, SingleFileNeedsNoIndex) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.write_single(dir_.path());
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->warnings().empty());
  expect_bytes(*checkpoint, synthetic.tensor(kTensor));
}

TEST_F(CheckpointTest, UnknownNamesAreErrors) {
  write_tiny();
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_FALSE(checkpoint->contains("nope"));
  EXPECT_EQ(checkpoint->entry("nope"), nullptr);
  EXPECT_NE(checkpoint->find("nope").error().message.find("missing tensor nope"), std::string::npos);
  const std::string names[] = {"nope", kTensor, "neither"};
  const Status status = checkpoint->load_tensors(names);
  EXPECT_NE(status.error().message.find("missing tensor nope; missing tensor neither"), std::string::npos);
}

TEST_F(CheckpointTest, DirectoryWithoutAModelIsRefused) {
  EXPECT_NE(Checkpoint::open(dir_.path("none")).error().message.find("No such file"), std::string::npos);
  expect_refused({"config.json: No such file"});
  test::write_file(dir_.path("config.json"), data_file("tiny_config.json"));
  expect_refused({"has neither model.safetensors.index.json nor model.safetensors"});
  EXPECT_NE(Checkpoint::open(dir_.path("config.json")).error().message.find("not a directory"), std::string::npos);
}

TEST_F(CheckpointTest, BadConfigIsRefused) {
  write_tiny();
  test::write_file(dir_.path("config.json"), test::tiny_config("/text_config/hidden_act", "\"relu\""));
  expect_refused({"config.json: text_config.hidden_act is \"relu\""});
}

TEST_F(CheckpointTest, UnknownConfigKeyIsAWarning) {
  SyntheticCheckpoint(test::tiny_config("/text_config/new_gate", "1")).write(dir_.path());
  expect_warning("unknown key text_config.new_gate");
}

// ---------------------------------------------------------------- DC-45: index and shards disagree

TEST_F(CheckpointTest, MissingShardIsRefused) {
  write_tiny();
  fs::remove(shard_path(kTensor));
  expect_refused({shard_path(kTensor) + ": No such file"});
}

TEST_F(CheckpointTest, ShardThatLacksATensorIsRefused) {
  write_tiny();
  const std::string other = test::shard_of(dir_.path(), "head.weight");
  ASSERT_NE(test::shard_of(dir_.path(), kTensor), other);
  test::set_shard(dir_.path(), kTensor, other);
  expect_refused({std::string("tensor ") + kTensor + " is not in " + other});
}

TEST_F(CheckpointTest, IndexDecidesBetweenTwoShards) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.write(dir_.path());
  OwnedTensor wrong = synthetic.tensor(kTensor);
  for (std::byte& byte : wrong.bytes) byte = ~byte;
  test::add_to_shard(shard_path("head.weight"), {wrong});  // a later shard, so that "last one wins" would show
  expect_warning("has tensors that the index takes from other files, ignored: " + std::string(kTensor));
  const auto checkpoint = open();
  expect_bytes(*checkpoint, synthetic.tensor(kTensor));
}

TEST_F(CheckpointTest, RequiredTensorNotInTheIndexIsRefused) {
  write_tiny();
  const std::string shard = test::shard_of(dir_.path(), kTensor);
  test::set_shard(dir_.path(), kTensor, "");
  expect_refused({std::string("missing tensor ") + kTensor + " (" + shard + " has it but the index does not name it)"});
}

TEST_F(CheckpointTest, MissingTensorIsRefused) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.remove("layers.1.attn.compressor.wgate.weight");
  synthetic.write(dir_.path());
  expect_refused({"missing tensor layers.1.attn.compressor.wgate.weight"});
}

TEST_F(CheckpointTest, MissingScaleIsRefused) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.remove(kScale);
  synthetic.write(dir_.path());
  expect_refused({std::string("missing tensor ") + kScale});
}

TEST_F(CheckpointTest, UnusedTensorIsAWarning) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.add({"layers.0.attn.rotary.inv_freq", DType::kF32, {1}, std::vector<std::byte>(4)});
  synthetic.write(dir_.path());
  expect_warning("tensors this model does not use, ignored: layers.0.attn.rotary.inv_freq");
}

TEST_F(CheckpointTest, StrayFileIsAWarning) {
  write_tiny();
  test::write_file(dir_.path("consolidated.safetensors"), "rubbish");
  expect_warning("files that the index does not name, ignored: consolidated.safetensors");
}

TEST_F(CheckpointTest, WrongTypeOrShapeIsRefused) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.reshape(kTensor, DType::kBf16, {32, 64});
  synthetic.reshape("norm.weight", DType::kBf16, {63});
  synthetic.reshape("layers.0.hc_attn_scale", DType::kF32, {3, 1});
  synthetic.write(dir_.path());
  expect_refused({std::string("tensor ") + kTensor + " has type BF16, must be F8_E4M3",
                  "tensor norm.weight has shape [63], must be [64]",
                  "tensor layers.0.hc_attn_scale has shape [3, 1], must be [3]"});
}

TEST_F(CheckpointTest, UnknownTypeOfANeededTensorIsRefused) {
  write_tiny();
  const std::string path = shard_path(kTensor);
  std::string content = test::read_file(path);
  const size_t at = content.find("\"F8_E4M3\"", content.find(kTensor));
  content.replace(at, 9, "\"F8_NEW\" ");
  test::write_file(path, content);
  expect_refused({std::string("tensor ") + kTensor + " has type F8_NEW, must be F8_E4M3"});
}

TEST_F(CheckpointTest, FileOutsideTheDirectoryIsRefused) {
  for (const char* file : {"../x.safetensors", "/etc/passwd", "..", "sub/x.safetensors"}) {
    write_tiny();
    test::set_shard(dir_.path(), kTensor, file);
    expect_refused({"index names the file \"" + std::string(file) + "\", which is not inside the directory"});
    EXPECT_EQ(open().error().message.find("missing tensor"), std::string::npos);  // said once is enough
  }
}

TEST_F(CheckpointTest, HubCacheLinksWork) {
  const TempDir hub;
  fs::create_directories(hub.path("blobs"));
  const std::string snapshot = hub.path("snapshots/0123");
  fs::create_directories(snapshot);
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.write(snapshot);
  int n_files = 0;
  for (const auto& entry : fs::directory_iterator(snapshot)) {
    const std::string blob = "blob" + std::to_string(n_files++);
    fs::rename(entry.path(), hub.path("blobs/" + blob));
    fs::create_symlink("../../blobs/" + blob, entry.path());
  }
  auto checkpoint = Checkpoint::open(snapshot);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->warnings().empty());
  ASSERT_TRUE(checkpoint->load({Section::kText}).ok());
  expect_bytes(*checkpoint, synthetic.tensor(kTensor));

  fs::remove(hub.path("blobs/blob0"));
  EXPECT_NE(Checkpoint::open(snapshot).error().message.find("link to a file that does not exist"), std::string::npos);
}

TEST_F(CheckpointTest, DanglingIndexIsNotTakenForNone) {
  SyntheticCheckpoint(data_file("tiny_config.json")).write_single(dir_.path());
  fs::create_symlink("nowhere", dir_.path("model.safetensors.index.json"));
  expect_refused({"model.safetensors.index.json: link to a file that does not exist"});
}

TEST_F(CheckpointTest, IndexWinsOverASingleFile) {
  write_tiny();
  test::write_file(dir_.path("model.safetensors"), "rubbish");
  expect_warning("files that the index does not name, ignored: model.safetensors");
}

TEST_F(CheckpointTest, BadIndexIsRefused) {
  write_tiny();
  test::write_file(dir_.path("model.safetensors.index.json"), "{\"weight_map\": 3}");
  expect_refused({"model.safetensors.index.json: index has a weight_map that is no object"});
}

TEST_F(CheckpointTest, WrongTotalIsAWarning) {
  write_tiny();
  std::string index = test::read_file(dir_.path("model.safetensors.index.json"));
  index.replace(index.find("\"total_size\": "), 14, "\"total_size\": 1");
  test::write_file(dir_.path("model.safetensors.index.json"), index);
  expect_warning("bytes of tensors, files have");
}

TEST_F(CheckpointTest, AllProblemsAreListedTogether) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.remove(kScale);
  synthetic.reshape("norm.weight", DType::kBf16, {65});
  synthetic.write(dir_.path());
  const std::string missing_shard = shard_path("layers.0.engram.embed.weight");
  fs::remove(missing_shard);
  test::set_shard(dir_.path(), "head.weight", "../head");
  expect_refused({missing_shard + ": No such file", "\"../head\"", std::string("missing tensor ") + kScale,
                  "tensor norm.weight has shape [65]"});
}

TEST_F(CheckpointTest, LongListsAreCut) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  const auto config = parse_model_config(data_file("tiny_config.json"));
  int n_removed = 0;
  for (const ExpectedTensor& expected : expected_tensors(*config)) {
    if (expected.name.starts_with("layers.3.") && n_removed < 25) {
      synthetic.remove(expected.name);
      ++n_removed;
    }
  }
  synthetic.write(dir_.path());
  expect_refused({"missing tensor layers.3.", " and 5 more"});
}

// ---------------------------------------------------------------- sections

TEST_F(CheckpointTest, AbsentDrafterMattersOnlyWhenAskedFor) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.remove_section(Section::kDrafter);
  synthetic.write(dir_.path());
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->has(Section::kDrafter));
  expect_refused({"missing tensor mtp.0.attn_norm.weight"}, {Section::kText, Section::kDrafter});
  EXPECT_FALSE(check_catalog(*checkpoint, {Section::kDrafter}).problems.empty());
  EXPECT_TRUE(check_catalog(*checkpoint, {Section::kText}).problems.empty());
}

TEST_F(CheckpointTest, HalfADrafterIsRefused) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.remove("mtp.0.main_norm.weight");
  synthetic.write(dir_.path());
  expect_refused({"missing tensor mtp.0.main_norm.weight"});
}

TEST_F(CheckpointTest, SectionsTheConfigLacksAreRefused) {
  SyntheticCheckpoint(data_file("tiny_config.json")).write(dir_.path());
  expect_refused({"vision is asked for but config.json has no vision_config"}, {Section::kText, Section::kVision});
  const TempDir no_drafter;
  std::string json = test::tiny_config("/text_config/num_nextn_predict_layers", "0");
  json = test::patched(json, "/text_config/compress_ratios", "[0,2,1,1]");
  SyntheticCheckpoint(json).write(no_drafter.path());
  EXPECT_TRUE(Checkpoint::open(no_drafter.path()).ok());
  EXPECT_NE(Checkpoint::open(no_drafter.path(), {Section::kDrafter}).error().message.find("the drafter is asked for"),
            std::string::npos);
}

TEST_F(CheckpointTest, VisionIsCheckedWhenPresent) {
  SyntheticCheckpoint complete(test::tiny_vision_config());
  complete.write(dir_.path());
  auto checkpoint = open({Section::kText, Section::kVision});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->has(Section::kVision));
  EXPECT_TRUE(checkpoint->contains("layers.0.ffn.gate.bias_vl"));

  const TempDir partial;
  SyntheticCheckpoint without_end(test::tiny_vision_config());
  without_end.remove("image_end");
  without_end.write(partial.path());
  EXPECT_NE(Checkpoint::open(partial.path()).error().message.find("missing tensor image_end"), std::string::npos);

  const TempDir absent;
  SyntheticCheckpoint without_vision(test::tiny_vision_config());
  without_vision.remove_section(Section::kVision);
  without_vision.write(absent.path());
  EXPECT_TRUE(Checkpoint::open(absent.path()).ok());
}

TEST_F(CheckpointTest, CatalogCheckNamesExtras) {
  SyntheticCheckpoint synthetic(data_file("tiny_config.json"));
  synthetic.add({"mtp.9.x", DType::kF32, {1}, std::vector<std::byte>(4)});
  synthetic.write(dir_.path());
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(check_catalog(*checkpoint, {Section::kText}).extras, std::vector<std::string>{"mtp.9.x"});
}

// ---------------------------------------------------------------- DC-46: files of another size

TEST_F(CheckpointTest, ShortShardIsRefusedWithItsSizes) {
  write_tiny();
  const std::string path = shard_path("layers.0.engram.embed.weight");
  const std::string content = test::read_file(path);
  const auto size = static_cast<int64_t>(content.size());
  ASSERT_GT(size, 2 * kPageBytes);
  for (const int64_t actual : {size - 1, size - kPageBytes, size / 2}) {
    test::write_file(path, content);
    fs::resize_file(path, static_cast<uintmax_t>(actual));
    expect_refused({path + ": file is shorter than its header says: expected " + std::to_string(size) +
                    " bytes, found " + std::to_string(actual)});
  }
  fs::resize_file(path, 100);
  expect_refused({path + ": file is shorter than its header: expected at least ", "bytes, found 100"});
  fs::resize_file(path, 5);
  expect_refused({path + ": file of 5 bytes is too short"});
  fs::resize_file(path, 0);
  expect_refused({path + ": file is empty (0 bytes)"});
}

TEST_F(CheckpointTest, LongShardIsRefused) {
  write_tiny();
  const std::string path = shard_path(kTensor);
  fs::resize_file(path, fs::file_size(path) + 1);
  expect_refused({path + ": file is longer than its header says"});
}

TEST_F(CheckpointTest, SparseShardIsAWarning) {
  write_tiny();
  const std::string path = shard_path("layers.0.engram.embed.weight");
  const auto size = fs::file_size(path);
  fs::resize_file(path, size / 2);
  fs::resize_file(path, size);  // the size is right again, the second half is a hole
  expect_warning("has unwritten holes on disk");
}

TEST_F(CheckpointTest, FileCutWhileLoadingIsAnError) {
  for (const int64_t cut_bytes : {int64_t{1}, kPageBytes, int64_t{-1}}) {
    write_tiny();
    auto checkpoint = open();
    ASSERT_TRUE(checkpoint.ok());
    const std::string path = shard_path("head.weight");
    const auto size = static_cast<int64_t>(fs::file_size(path));
    const int64_t actual = cut_bytes < 0 ? size / 2 : size - cut_bytes;
    bool is_cut = false;
    const Status status = checkpoint->load({Section::kText, Section::kDrafter}, [&](int64_t, int64_t) {
      if (!is_cut) fs::resize_file(path, static_cast<uintmax_t>(actual));
      is_cut = true;
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kBadModelFile);
    EXPECT_NE(
        status.error().message.find("expected " + std::to_string(size) + " bytes, found " + std::to_string(actual)),
        std::string::npos)
        << status.error().message;
  }
}

TEST_F(CheckpointTest, FileCutAfterLoadingIsNoticedOnRequest) {
  write_tiny();
  auto checkpoint = open();
  ASSERT_TRUE(checkpoint->load({Section::kText}).ok());
  EXPECT_TRUE(checkpoint->verify_sizes().ok());
  fs::resize_file(shard_path("head.weight"), 1000);
  EXPECT_FALSE(checkpoint->verify_sizes().ok());
}

// ---------------------------------------------------------------- loading

TEST_F(CheckpointTest, ProgressEndsAtTheTotal) {
  write_tiny();
  auto checkpoint = open();
  int64_t expected_total = 0;
  for (const ExpectedTensor& tensor : checkpoint->catalog()) {
    if (tensor.section == Section::kText && !tensor.random_access) expected_total += tensor.n_bytes();
  }
  int64_t last = -1;
  int64_t total = 0;
  ASSERT_TRUE(checkpoint
                  ->load({Section::kText},
                         [&](int64_t done, int64_t all) {
                           EXPECT_EQ(last < 0 ? 0 : done, done);
                           EXPECT_GT(done, last);
                           last = done;
                           total = all;
                         })
                  .ok());
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, expected_total);
}

TEST_F(CheckpointTest, TensorsNamedTwiceAreLoadedOnce) {
  write_tiny();
  auto checkpoint = open();
  const std::string names[] = {kTensor, kScale, kTensor, "layers.0.engram.embed.weight"};
  int64_t total = 0;
  ASSERT_TRUE(checkpoint->load_tensors(names, [&](int64_t, int64_t all) { total = all; }).ok());
  EXPECT_EQ(total, 32 * 64 + 1 * 2 + 1650 * 32);
}

/// The golden files hold F32 and BF16 tensors behind scales of odd length.
TEST(GoldenCheckpoint, LoadsUnalignedTensorsAligned) {
  const std::string dir = DI_TESTS_DIR "/golden/golden-v41/checkpoint";
  auto checkpoint = Checkpoint::open(dir, {Section::kText, Section::kDrafter});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->warnings().empty());
  EXPECT_EQ(checkpoint->total_bytes(), 4612281);

  const ExpectedTensor* unaligned = nullptr;
  for (const ExpectedTensor& expected : checkpoint->catalog()) {
    if (checkpoint->entry(expected.name)->offset_bytes % element_bytes(expected.dtype) != 0) unaligned = &expected;
  }
  ASSERT_NE(unaligned, nullptr);
  EXPECT_NE(checkpoint->find(unaligned->name).error().message.find("has to be loaded first"), std::string::npos);

  ASSERT_TRUE(checkpoint->load({Section::kText, Section::kDrafter}).ok());
  for (const char* shard : {"/model-00001-of-00002.safetensors", "/model-00002-of-00002.safetensors"}) {
    const std::string file = test::read_file(dir + shard);
    const auto header = parse_safetensors_header(std::as_bytes(std::span(file)), static_cast<int64_t>(file.size()));
    ASSERT_TRUE(header.ok());
    for (const SafetensorsEntry& entry : header->entries) {
      const auto view = checkpoint->find(entry.name);
      ASSERT_TRUE(view.ok()) << view.error().message;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % static_cast<uintptr_t>(element_bytes(view->dtype)), 0U);
      EXPECT_EQ(std::memcmp(view->data, file.data() + entry.offset_bytes, static_cast<size_t>(entry.size_bytes)), 0);
    }
  }
}

}  // namespace
}  // namespace deepinfer
