#include "checkpoint/shard_index.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(ShardIndex, ReadsTheWeightMap) {
  std::vector<std::string> problems;
  const auto index = parse_shard_index(
      R"({"metadata":{"total_size":12,"x":1},"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"1.safetensors"}})",
      problems);
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(index->total_size_bytes, 12);
  ASSERT_EQ(index->files.size(), 2U);
  EXPECT_EQ(index->files[1].name, "2.safetensors");
  EXPECT_EQ(index->file_of.at("c"), 0U);
}

TEST(ShardIndex, NeedsNoMetadata) {
  std::vector<std::string> problems;
  for (const char* json : {R"({"weight_map":{}})", R"({"metadata":null,"weight_map":{}})",
                           R"({"metadata":{"total_size":1.5},"weight_map":{}})"}) {
    const auto index = parse_shard_index(json, problems);
    ASSERT_TRUE(index.ok()) << json;
    EXPECT_EQ(index->total_size_bytes, std::nullopt);
  }
}

TEST(ShardIndex, RefusesWhatIsNoIndex) {
  std::vector<std::string> problems;
  for (const char* json : {"", "[]", "3", "{", "{}", R"({"weight_map":[]})", R"({"weight_map":{},"weight_map":{}})"}) {
    EXPECT_FALSE(parse_shard_index(json, problems).ok()) << json;
  }
}

TEST(ShardIndex, ReportsSingleLines) {
  std::vector<std::string> problems;
  const auto index = parse_shard_index(
      R"({"weight_map":{"a":"../x","b":"/etc/passwd","c":"../x","d":"f","d":"f","e":3,"f":"","g":"s/ub","h":"\n"}})",
      problems);
  ASSERT_TRUE(index.ok());
  const std::vector<std::string> expected = {
      "index names the file \"../x\", which is not inside the directory",
      "index names the file \"/etc/passwd\", which is not inside the directory",
      "index names tensor d twice",
      "index gives tensor e a file that is not a string",
      "index names the file \"\", which is not inside the directory",
      "index names the file \"s/ub\", which is not inside the directory",
      "index names the file \"\\x0a\", which is not inside the directory",
  };
  EXPECT_EQ(problems, expected);
  EXPECT_FALSE(index->files[index->file_of.at("a")].is_allowed);
  EXPECT_TRUE(index->files[index->file_of.at("d")].is_allowed);
}

}  // namespace
}  // namespace deepinfer
