#include "checkpoint/checksums.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/unit/checkpoint/test_support.h"

namespace deepinfer {
namespace {

constexpr const char* kSumOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kSumOfHello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

class ChecksumsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write("a.json", "abc");
    write("b.safetensors", "hello");
    write("SHA256SUMS", std::string(kSumOfAbc) + "  a.json\n" + kSumOfHello + " *b.safetensors\n");
  }

  void write(const std::string& name, const std::string& text) const { test::write_file(dir_.path(name), text); }
  std::vector<std::string> problems() const {
    const auto report = verify_checksums(dir_.path());
    return report.ok() ? report->problems : std::vector<std::string>{"no report: " + report.error().message};
  }
  void expect_no_list(const std::string& reason) const {
    const auto report = verify_checksums(dir_.path());
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, Code::kBadModelFile);
    EXPECT_NE(report.error().message.find("SHA256SUMS"), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find(reason), std::string::npos) << report.error().message;
  }

  test::TempDir dir_;
};

TEST_F(ChecksumsTest, FindsNothingWrongWithWhatIsListed) {
  write("notes.txt", "not listed");
  const auto report = verify_checksums(dir_.path());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->n_files, 2);
  EXPECT_EQ(report->n_bytes, 8);
  EXPECT_TRUE(report->problems.empty());
}

TEST_F(ChecksumsTest, NamesAFileThatChanged) {
  write("b.safetensors", "hellp");
  EXPECT_EQ(problems(), std::vector<std::string>{"b.safetensors is changed"});
}

TEST_F(ChecksumsTest, NamesEveryFile) {
  write("a.json", "abcd");
  std::filesystem::remove(dir_.path("b.safetensors"));
  EXPECT_EQ(problems(), (std::vector<std::string>{"a.json is changed", "b.safetensors is missing"}));
}

TEST_F(ChecksumsTest, NamesAFileThatCannotBeRead) {
  write("a.json", "");
  std::filesystem::remove(dir_.path("b.safetensors"));
  std::filesystem::create_directory(dir_.path("b.safetensors"));
  const std::vector<std::string> found = problems();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find("a.json: file is empty"), std::string::npos) << found[0];
  EXPECT_NE(found[1].find("b.safetensors: is a directory"), std::string::npos) << found[1];
}

TEST_F(ChecksumsTest, RefusesWhatIsNoList) {
  std::filesystem::remove(dir_.path("SHA256SUMS"));
  expect_no_list("No such file");
  const std::string sum = kSumOfAbc;
  for (const std::string& line :
       {sum, sum + "  \n", sum + "  a.json", sum + " a.json\n", sum.substr(1) + "  a.json\n", sum + "  ../a.json\n",
        sum + "  ..\n", sum + "  a.json\r\n", "X" + sum.substr(1) + "  a.json\n"}) {
    write("SHA256SUMS", line);
    expect_no_list("line 1");
    write("SHA256SUMS", sum + "  a.json\n" + line);
    expect_no_list("line 2");
  }
  write("SHA256SUMS", "");
  expect_no_list("empty");
}

}  // namespace
}  // namespace deepinfer
