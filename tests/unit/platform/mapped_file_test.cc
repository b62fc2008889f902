#include "platform/mapped_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "mapped_file_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  std::string write(const std::string& name, size_t size) const {
    std::ofstream(path(name), std::ios::binary) << std::string(size, 'x');
    return path(name);
  }
  static void expect_refused(const std::string& path, const std::string& reason) {
    const auto file = MappedFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::kBadModelFile);
    EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  }

  fs::path dir_;
};

TEST_F(MappedFileTest, ShowsTheBytes) {
  std::ofstream(path("a"), std::ios::binary) << "hello";
  const auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 5);
  EXPECT_EQ(static_cast<char>(file->bytes()[4]), 'o');
  EXPECT_TRUE(file->prefault(0, 5).ok());
  EXPECT_TRUE(file->prefault(1, 3, MappedFile::Prefault::kRead).ok());
  EXPECT_TRUE(file->prefault(5, 0).ok());
  EXPECT_TRUE(file->verify_size().ok());
}

TEST_F(MappedFileTest, MovesOwnership) {
  auto first = MappedFile::open(write("a", 10));
  ASSERT_TRUE(first.ok());
  MappedFile second = *std::move(first);
  auto third = MappedFile::open(write("b", 20));
  ASSERT_TRUE(third.ok());
  second = *std::move(third);
  EXPECT_EQ(second.size(), 20);
  EXPECT_EQ(second.bytes().size(), 20U);
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
  expect_refused(path("missing"), "No such file");
  expect_refused(dir_.string(), "is a directory");
  expect_refused(write("empty", 0), "empty (0 bytes)");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(path("pipe"), "not a regular file");
  fs::create_symlink("nowhere", path("dangling"));
  expect_refused(path("dangling"), "link to a file that does not exist");
  fs::create_symlink("loop", path("loop"));
  expect_refused(path("loop"), "symbolic links");
  expect_refused("/dev/null", "not a regular file");
}

TEST_F(MappedFileTest, FollowsLinks) {
  write("target", 7);
  fs::create_symlink("target", path("link"));
  const auto file = MappedFile::open(path("link"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 7);
}

TEST_F(MappedFileTest, CutFileIsAnErrorNotASignal) {
  constexpr int64_t kSize = 1 << 20;
  for (const auto method : {MappedFile::Prefault::kAuto, MappedFile::Prefault::kRead}) {
    const auto file = MappedFile::open(write("a", kSize));
    ASSERT_TRUE(file.ok());
    fs::resize_file(path("a"), kSize / 2);
    EXPECT_TRUE(file->prefault(0, kSize / 2, method).ok());
    const Status status = file->prefault(kSize / 4, kSize / 2, method);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kBadModelFile);
    EXPECT_NE(status.error().message.find("expected 1048576 bytes, found 524288"), std::string::npos)
        << status.error().message;
  }
}

TEST_F(MappedFileTest, CutInsideTheLastPageIsFoundByItsSize) {
  const auto file = MappedFile::open(write("a", 5000));
  ASSERT_TRUE(file.ok());
  fs::resize_file(path("a"), 4999);
  (void)file->prefault(0, 5000);
  const Status status = file->verify_size();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("expected 5000 bytes, found 4999"), std::string::npos);
}

TEST_F(MappedFileTest, GrownFileIsFoundByItsSize) {
  const auto file = MappedFile::open(write("a", 100));
  ASSERT_TRUE(file.ok());
  fs::resize_file(path("a"), 101);
  EXPECT_FALSE(file->verify_size().ok());
}

TEST_F(MappedFileTest, ReplacedNameLeavesTheMappedFileAlone) {
  const auto file = MappedFile::open(write("a", 100));
  ASSERT_TRUE(file.ok());
  fs::rename(write("b", 5), path("a"));
  EXPECT_TRUE(file->verify_size().ok());
  EXPECT_EQ(static_cast<char>(file->bytes()[99]), 'x');
}

TEST_F(MappedFileTest, ReadsSpotsWithoutTheMap) {
  std::ofstream(path("a"), std::ios::binary) << "0123456789";
  const auto file = MappedFile::open(path("a"));
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> out(3);
  ASSERT_TRUE(file->read_at(4, out).ok());
  EXPECT_EQ(static_cast<char>(out[0]), '4');
  fs::resize_file(path("a"), 5);
  EXPECT_FALSE(file->read_at(4, out).ok());
}

TEST_F(MappedFileTest, NoticesHoles) {
  write("full", 100000);
  EXPECT_FALSE(MappedFile::open(path("full"))->has_holes());
  write("holes", 1);
  fs::resize_file(path("holes"), 1 << 20);
  EXPECT_TRUE(MappedFile::open(path("holes"))->has_holes());
}

using MappedFileDeathTest = MappedFileTest;

TEST_F(MappedFileDeathTest, RangeOutsideIsABug) {
  const auto file = MappedFile::open(write("a", 10));
  ASSERT_TRUE(file.ok());
  EXPECT_DEATH((void)file->prefault(8, 3), "check failed");
  EXPECT_DEATH((void)file->prefault(-1, 1), "check failed");
}

}  // namespace
}  // namespace deepinfer
