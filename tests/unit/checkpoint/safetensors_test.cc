#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace deepinfer {
namespace {

/// A file image: length, JSON, `n_data` bytes.
std::string image(const std::string& json, size_t n_data) {
  const uint64_t length = json.size();
  std::string out(sizeof(length), '\0');
  std::memcpy(out.data(), &length, sizeof(length));
  return out + json + std::string(n_data, 'd');
}

Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), static_cast<int64_t>(file.size()));
}

TEST(SafetensorsHeader, ReadsTensorsByOffset) {
  const auto header = parse(image(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"data_offsets":[0,4],"shape":[],"dtype":"F32"},"z":{"dtype":"I8","shape":[3,0],"data_offsets":[16,16]}}   )",
      16));
  ASSERT_TRUE(header.ok()) << header.error().message;
  ASSERT_EQ(header->entries.size(), 3U);
  EXPECT_EQ(header->entries[0].name, "a");
  EXPECT_EQ(header->entries[0].shape, Shape{});
  EXPECT_EQ(header->entries[1].name, "b");
  EXPECT_EQ(header->entries[1].dtype, DType::kBf16);
  EXPECT_EQ(header->entries[1].shape, (Shape{2, 3}));
  EXPECT_EQ(header->entries[1].offset_bytes, header->data_offset_bytes + 4);
  EXPECT_EQ(header->entries[1].size_bytes, 12);
  EXPECT_EQ(header->entries[2].size_bytes, 0);
  ASSERT_EQ(header->metadata.size(), 1U);
  EXPECT_EQ(header->metadata[0].second, "pt");
}

TEST(SafetensorsHeader, KeepsUnknownTypes) {
  const auto header = parse(image(R"({"a":{"dtype":"F4_NEW","shape":[7],"data_offsets":[0,3]}})", 3));
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->entries[0].dtype_tag, "F4_NEW");
  EXPECT_EQ(header->entries[0].dtype, std::nullopt);
}

TEST(SafetensorsHeader, UnescapesNames) {
  const auto header = parse(image(R"({"a\u00e9\"":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->entries[0].name, "a\xC3\xA9\"");
}

TEST(SafetensorsHeader, AcceptsNoTensors) {
  EXPECT_TRUE(parse(image("{}", 0)).ok());
  EXPECT_TRUE(parse(image(R"({"__metadata__":{}})", 0)).ok());
}

struct BadHeader {
  const char* json;
  size_t n_data;
  const char* message;  // a part of it
};

class SafetensorsBadHeader : public ::testing::TestWithParam<BadHeader> {};

TEST_P(SafetensorsBadHeader, IsRefused) {
  const auto header = parse(image(GetParam().json, GetParam().n_data));
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().code, Code::kBadModelFile);
  EXPECT_NE(header.error().message.find(GetParam().message), std::string::npos) << header.error().message;
  EXPECT_EQ(header.error().message.find('\n'), std::string::npos);
}

const BadHeader kBadHeaders[] = {
    {"", 0, "does not start with '{'"},
    {" {}", 0, "does not start with '{'"},
    {"[]", 0, "does not start with '{'"},
    {"{", 0, "not valid JSON"},
    {"{} {}", 0, "not valid JSON"},
    {"{\"a\xFF\":{}}", 0, "not valid JSON"},
    {R"({"a":3})", 0, "tensor a is not described by an object"},
    {R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "lacks dtype, shape or data_offsets"},
    {R"({"a":{"dtype":"I8","data_offsets":[0,1]}})", 1, "lacks dtype, shape or data_offsets"},
    {R"({"a":{"dtype":"I8","shape":[1]}})", 1, "lacks dtype, shape or data_offsets"},
    {R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", 1, "dtype that is not a string"},
    {R"({"a":{"dtype":"I8","shape":1,"data_offsets":[0,1]}})", 1, "shape that is not an array"},
    {R"({"a":{"dtype":"I8","shape":[1.0],"data_offsets":[0,1]}})", 1, "not a non-negative integer"},
    {R"({"a":{"dtype":"I8","shape":["1"],"data_offsets":[0,1]}})", 1, "not a non-negative integer"},
    {R"({"a":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}})", 1, "not a non-negative integer"},
    {R"({"a":{"dtype":"I8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1, "not a non-negative integer"},
    {R"({"a":{"dtype":"I8","shape":[1,1,1,1,1],"data_offsets":[0,1]}})", 1, "5 dimensions, at most 4"},
    {R"({"a":{"dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,1]}})", 1, "overflows 64 bits"},
    {R"({"a":{"dtype":"I8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0, "overflows 64 bits"},
    {R"({"a":{"dtype":"X","shape":[4294967296,4294967296],"data_offsets":[0,1]}})", 1, "overflows 64 bits"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,1]}})", 1, "overflows 64 bits"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0]}})", 1, "not two numbers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1,2]}})", 1, "not two numbers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":"01"}})", 1, "not two numbers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1.5]}})", 1, "not non-negative integers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[-1,0]}})", 1, "not non-negative integers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,18446744073709551615]}})", 1, "not non-negative integers"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[2,1]}})", 2, "end before they begin"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "needs 8 bytes but its data_offsets span 4"},
    {R"({"a":{"dtype":"X","shape":[1],"data_offsets":[0,9223372036854775807]}})", 1, "beyond any possible file"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})", 2, "1 bytes before tensor a belong to no tensor"},
    {R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}})", 3,
     "tensor b overlaps"},
    {R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})", 2,
     "tensor b overlaps"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})", 2,
     "the key \"a\" twice"},
    {R"({"a":{"dtype":"I8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1, "\"dtype\" twice"},
    {R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1],"x\n":1}})", 1, "unknown field \"x\\x0a\""},
    {R"({"__metadata__":3})", 0, "__metadata__ is not an object"},
    {R"({"__metadata__":{"a":3}})", 0, "__metadata__ \"a\" is not a string"},
    {R"({"a":{"dtype":"I8","shape":[9],"data_offsets":[0,9]}})", 8, "shorter than its header says"},
    {R"({"a":{"dtype":"I8","shape":[9],"data_offsets":[0,9]}})", 10, "longer than its header says"},
    {"{}", 1, "longer than its header says"},
};

INSTANTIATE_TEST_SUITE_P(Table, SafetensorsBadHeader, ::testing::ValuesIn(kBadHeaders));

TEST(SafetensorsHeader, SaysExpectedAndActualSize) {
  std::string file = image(R"({"a":{"dtype":"I8","shape":[100],"data_offsets":[0,100]}})", 100);
  const std::string expected = std::to_string(file.size());
  file.resize(file.size() - 30);
  const auto header = parse(file);
  ASSERT_FALSE(header.ok());
  EXPECT_NE(header.error().message.find("expected " + expected + " bytes, found " + std::to_string(file.size())),
            std::string::npos)
      << header.error().message;
}

TEST(SafetensorsHeader, ChecksTheLength) {
  EXPECT_NE(parse("1234567").error().message.find("file of 7 bytes is too short"), std::string::npos);
  EXPECT_NE(parse("").error().message.find("file of 0 bytes is too short"), std::string::npos);
  std::string huge(16, '\xFF');
  EXPECT_NE(parse(huge).error().message.find("over the limit of 100000000"), std::string::npos);
  std::string cut = image("{}", 0);
  cut.pop_back();
  EXPECT_NE(parse(cut).error().message.find("expected at least 10 bytes, found 9"), std::string::npos);
}

TEST(SafetensorsHeader, EveryCutIsRefused) {
  const std::string file = image(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  ASSERT_TRUE(parse(file).ok());
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
}

TEST(SafetensorsHeader, NeedsOnlyTheHeaderBytes) {
  const std::string file = image(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  const auto bytes = std::as_bytes(std::span(file));
  EXPECT_TRUE(parse_safetensors_header(bytes.first(file.size() - 8), static_cast<int64_t>(file.size())).ok());
  EXPECT_FALSE(parse_safetensors_header(bytes.first(20), static_cast<int64_t>(file.size())).ok());
}

}  // namespace
}  // namespace deepinfer
