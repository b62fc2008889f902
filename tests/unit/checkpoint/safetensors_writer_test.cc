#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <cstring>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "tests/unit/checkpoint/test_support.h"

namespace deepinfer {
namespace {

using test::read_file;
using test::TempDir;

constexpr std::array<float, 3> kFloats = {1.5F, -2.0F, 3.25F};
constexpr std::array<uint8_t, 5> kCodes = {1, 2, 3, 4, 5};

TensorView floats() { return {std::as_bytes(std::span(kFloats)).data(), DType::kF32, {3}}; }
TensorView codes() { return {std::as_bytes(std::span(kCodes)).data(), DType::kF8E4m3, {5, 1}}; }

Result<SafetensorsHeader> header_of(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), static_cast<int64_t>(file.size()));
}

TEST(SafetensorsWriter, RoundTrips) {
  const TempDir dir;
  const NamedTensor tensors[] = {{"codes", codes()}, {"flo\"ats\n\xC3\xA9", floats()}};
  ASSERT_TRUE(write_safetensors(dir.path("a"), tensors, {{"k", "v\\"}, {"format", "pt"}}).ok());
  const std::string file = read_file(dir.path("a"));
  const auto header = header_of(file);
  ASSERT_TRUE(header.ok()) << header.error().message;
  ASSERT_EQ(header->entries.size(), 2U);
  EXPECT_EQ(header->entries[0].name, "flo\"ats\n\xC3\xA9");  // widest element first
  EXPECT_EQ(std::memcmp(file.data() + header->entries[0].offset_bytes, kFloats.data(), 12), 0);
  EXPECT_EQ(header->entries[1].shape, (Shape{5, 1}));
  EXPECT_EQ(std::memcmp(file.data() + header->entries[1].offset_bytes, kCodes.data(), 5), 0);
  EXPECT_EQ(header->data_offset_bytes % 64, 0);
  EXPECT_EQ(header->metadata[0].second, "v\\");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
}

TEST(SafetensorsWriter, WritesEmptyFilesAndEmptyTensors) {
  const TempDir dir;
  ASSERT_TRUE(write_safetensors(dir.path("none"), {}, {}).ok());
  EXPECT_TRUE(header_of(read_file(dir.path("none"))).ok());
  const NamedTensor tensors[] = {{"empty", {nullptr, DType::kBf16, {0, 7}}}};
  ASSERT_TRUE(write_safetensors(dir.path("empty"), tensors).ok());
  EXPECT_EQ(header_of(read_file(dir.path("empty")))->entries[0].shape, (Shape{0, 7}));
}

TEST(SafetensorsWriter, TakesPiecesInAnyOrder) {
  const TempDir dir;
  const TensorSpec specs[] = {{"codes", DType::kF8E4m3, {5, 1}}, {"floats", DType::kF32, {3}}};
  auto writer = SafetensorsWriter::create(dir.path("a"), specs);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write(1, 4, floats().bytes().subspan(4)).ok());
  ASSERT_TRUE(writer->write(0, 0, codes().bytes()).ok());
  ASSERT_TRUE(writer->write(1, 0, floats().bytes().first(4)).ok());
  ASSERT_TRUE(writer->finish().ok());
  const NamedTensor tensors[] = {{"codes", codes()}, {"floats", floats()}};
  ASSERT_TRUE(write_safetensors(dir.path("b"), tensors).ok());
  EXPECT_EQ(read_file(dir.path("a")), read_file(dir.path("b")));
}

TEST(SafetensorsWriter, RefusesBadTensorLists) {
  const TempDir dir;
  const auto refused = [&](std::vector<TensorSpec> specs, const char* message) {
    const auto writer = SafetensorsWriter::create(dir.path("a"), specs);
    ASSERT_FALSE(writer.ok());
    EXPECT_EQ(writer.error().code, Code::kInvalidArgument);
    EXPECT_NE(writer.error().message.find(message), std::string::npos) << writer.error().message;
  };
  refused({{"x", DType::kF32, {1}}, {"x", DType::kBf16, {1}}}, "tensor x is there twice");
  refused({{"", DType::kF32, {1}}}, "cannot be stored");
  refused({{"__metadata__", DType::kF32, {1}}}, "cannot be stored");
  for (const char* name : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "a\xE2\x82"}) {
    refused({{name, DType::kF32, {1}}}, "not valid UTF-8");
  }
  EXPECT_TRUE(dir.files().empty());
}

TEST(SafetensorsWriter, RefusesWritesOutsideATensor) {
  const TempDir dir;
  const TensorSpec specs[] = {{"codes", DType::kF8E4m3, {5}}};
  auto writer = SafetensorsWriter::create(dir.path("a"), specs);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->write(0, 1, codes().bytes()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(writer->write(0, -1, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(writer->write(0, 6, {}).error().code, Code::kInvalidArgument);
}

TEST(SafetensorsWriter, UnfinishedFileDoesNotAppear) {
  const TempDir dir;
  const TensorSpec specs[] = {{"codes", DType::kF8E4m3, {5}}};
  {
    auto writer = SafetensorsWriter::create(dir.path("a"), specs);
    ASSERT_TRUE(writer.ok());
    const Status status = writer->finish();
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("got 0 of its 5 bytes"), std::string::npos);
    auto dropped = SafetensorsWriter::create(dir.path("b"), specs);
    ASSERT_TRUE(dropped.ok());
    EXPECT_EQ(dir.files().size(), 1U);  // the temporary
  }
  EXPECT_TRUE(dir.files().empty());
}

TEST(SafetensorsWriter, MissingFolderIsAnError) {
  const TempDir dir;
  const Status status = write_safetensors(dir.path("no/such/file"), {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("no/such/file: cannot create"), std::string::npos);
}

/// Files may grow to `n_bytes` only while this lives: what a full disk does, without one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) {
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    old_handler_ = signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {n_bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(SafetensorsWriter, FailedWriteKeepsTheOldFileAndLeavesNoPart) {
  const TempDir dir;
  test::write_file(dir.path("a"), "old content");
  const std::vector<std::byte> big(100000);
  const NamedTensor tensors[] = {{"big", {big.data(), DType::kPackedFp4, {100000}}}};
  Status status;
  {
    const FileSizeLimit limit(50000);
    status = write_safetensors(dir.path("a"), tensors);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_NE(status.error().message.find("writing failed"), std::string::npos) << status.error().message;
  EXPECT_EQ(read_file(dir.path("a")), "old content");
  EXPECT_EQ(dir.files(), std::vector<std::string>{"a"});
}

TEST(WriteCheckpoint, FailureLeavesNoIndex) {
  const TempDir dir;
  const std::vector<std::byte> big(100000);
  const NamedTensor tensors[] = {{"codes", codes()}, {"big", {big.data(), DType::kPackedFp4, {100000}}}};
  CheckpointWriteOptions options;
  options.shard_bytes_max = 10;
  {
    const FileSizeLimit limit(50000);
    EXPECT_FALSE(write_checkpoint(dir.path(), tensors, options).ok());
  }
  EXPECT_EQ(dir.files(), std::vector<std::string>{"model-00001-of-00002.safetensors"});
}

TEST(WriteCheckpoint, SplitsBySizeAndSumsUp) {
  const TempDir dir;
  const NamedTensor tensors[] = {{"a", codes()}, {"b", codes()}, {"c", floats()}, {"d", codes()}};
  CheckpointWriteOptions options;
  options.shard_bytes_max = 11;
  ASSERT_TRUE(write_checkpoint(dir.path(), tensors, options).ok());
  EXPECT_EQ(dir.files(),
            (std::vector<std::string>{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                      "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  EXPECT_EQ(test::shard_of(dir.path(), "b"), "model-00001-of-00003.safetensors");
  EXPECT_EQ(test::shard_of(dir.path(), "c"), "model-00002-of-00003.safetensors");
  EXPECT_EQ(test::shard_of(dir.path(), "d"), "model-00003-of-00003.safetensors");
  EXPECT_NE(read_file(dir.path("model.safetensors.index.json")).find("\"total_size\": 27"), std::string::npos);
}

TEST(WriteCheckpoint, RefusesATensorInTwoFiles) {
  const TempDir dir;
  const NamedTensor tensors[] = {{"a", codes()}, {"a", codes()}};
  CheckpointWriteOptions options;
  options.shard_bytes_max = 1;
  EXPECT_EQ(write_checkpoint(dir.path(), tensors, options).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(dir.files().empty());
}

}  // namespace
}  // namespace deepinfer
