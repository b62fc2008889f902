#include "deepinfer/tokenize_service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tiny_tokenizer.h"

namespace deepinfer {
namespace {

class TokenizeService : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::from_json(TinyTokenizer{.merges = {{"a", "b"}}, .added = {{"<s>"}}}.json());
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_.emplace(*std::move(tokenizer));
  }

  std::string answer(std::string_view line) {
    bool ok = true;
    std::string text = answer_line(*tokenizer_, line, &ok);
    EXPECT_TRUE(ok) << line << "\n" << text;
    return text;
  }

  std::string error_of(std::string_view line) {
    bool ok = true;
    const auto record = nlohmann::json::parse(answer_line(*tokenizer_, line, &ok));
    EXPECT_FALSE(ok) << line;
    EXPECT_EQ(record["error"]["kind"], "invalid_argument");
    return record["error"]["message"];
  }

  std::optional<Tokenizer> tokenizer_;
};

TEST_F(TokenizeService, Encodes) {
  EXPECT_EQ(answer(R"({"text":"ab<s>c"})"), R"({"ids":[256,257,99]})");
  EXPECT_EQ(answer(R"({"text":"<s>","special":false})"), R"({"ids":[60,115,62]})");
  EXPECT_EQ(answer(R"({"text":""})"), R"({"ids":[]})");
  EXPECT_EQ(answer(R"({"bytes":"YWI="})"), R"({"ids":[256]})");
  EXPECT_EQ(answer(R"({"text":"\u0000\ud83c\udf36"})"), R"({"ids":[0,240,159,140,182]})");
}

TEST_F(TokenizeService, Decodes) {
  EXPECT_EQ(answer(R"({"ids":[256,257,99]})"), R"({"text":"ab<s>c"})");
  EXPECT_EQ(answer(R"({"ids":[256,257],"skip_special":true})"), R"({"text":"ab"})");
  EXPECT_EQ(answer(R"({"ids":[]})"), R"({"text":""})");
  EXPECT_EQ(answer(R"({"ids":[34,92,10,127]})"), R"({"text":"\"\\\u000a\u007f"})");
  EXPECT_EQ(answer(R"({"ids":[195,97]})"), "{\"text\":\"\uFFFDa\",\"bytes\":\"w2E=\"}");
  EXPECT_EQ(answer(R"({"ids":[195,169,195],"stream":true})"),
            "{\"text\":\"é\uFFFD\",\"bytes\":\"w6nD\",\"pieces\":[\"\",\"é\",\"\",\"\uFFFD\"]}");
}

TEST_F(TokenizeService, RefusesByName) {
  EXPECT_EQ(error_of(R"({"ids":[1,258]})"), "ids[1] = 258 is outside [0, 258)");
  EXPECT_EQ(error_of(R"({"ids":[-1]})"), "ids[0] = -1 is outside [0, 258)");
  EXPECT_EQ(error_of(R"({"ids":[1.5]})"), "ids[0] is not a whole number of 64 bits");
  EXPECT_EQ(error_of(R"({"ids":7})"), "ids is not an array");
  EXPECT_EQ(error_of(R"({"text":7})"), "text is not a string");
  EXPECT_EQ(error_of(R"({"bytes":"w"})"), "bytes is not valid base64");
  EXPECT_EQ(error_of(R"({"bytes":"YcM="})"), "text is not valid UTF-8 at byte 1");
  EXPECT_EQ(error_of(R"({"text":"a","special":1})"), "special is not true or false");
  EXPECT_EQ(error_of(R"({"text":"a","ids":[]})"), "exactly one of text, bytes and ids is needed");
  EXPECT_EQ(error_of(R"({"text":"a","text":"b"})"), "text or bytes is given twice");
  EXPECT_EQ(error_of(R"({"special":true})"), "exactly one of text, bytes and ids is needed");
  EXPECT_EQ(error_of(R"({"text":"a","stream":true})"), "skip_special and stream go with ids");
  EXPECT_EQ(error_of(R"({"ids":[],"special":true})"), "special goes with text or bytes");
  EXPECT_EQ(error_of(R"({"text":"a","x\"":1})"), "unknown member \"x\"\"");
  EXPECT_EQ(error_of("[1]"), "line is not a JSON object");
  for (const char* line : {"", "{", R"({"text":"\ud800"})", R"({"text":"\udc00"})", R"({"text":"\udc00\ud800"})",
                           "{\"text\":\"\xC3\"}", R"({"text":"a"} x)", R"({"text":NaN})"})
    EXPECT_NE(error_of(line), "") << line;
}

}  // namespace
}  // namespace deepinfer
