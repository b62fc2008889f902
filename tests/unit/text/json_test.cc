#include "text/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace deepinfer::json {
namespace {

std::string rewritten(std::string_view text, Style style) {
  const Result<Value> value = parse(text);
  return value.ok() ? to_string(*value, style) : "refused: " + value.error().message;
}

void expect_refused(std::string_view text, std::string_view why) {
  const Result<Value> value = parse(text);
  ASSERT_FALSE(value.ok()) << text;
  EXPECT_NE(value.error().message.find(why), std::string::npos) << value.error().message;
  EXPECT_EQ(value.error().message.find('\n'), std::string::npos);
}

TEST(Json, KeepsOrderRepeatedKeysAndSpelling) {
  const Result<Value> value = parse(R"({"b":1,"a":2.50,"b":1E5})");
  ASSERT_TRUE(value.ok());
  ASSERT_EQ(value->members.size(), 3U);
  EXPECT_EQ(value->members[0].key, "b");
  EXPECT_EQ(value->find("b")->text, "1E5");
  EXPECT_EQ(value->find("c"), nullptr);
  EXPECT_EQ(to_string(*value, Style::kCompact), R"({"b":1E5,"a":2.50})");
  EXPECT_EQ(to_string(*value, Style::kPython), R"({"b": 100000.0, "a": 2.5})");
}

TEST(Json, WritesWhatPythonWrites) {
  EXPECT_EQ(
      rewritten(R"([1E2,1.50,0.00001,1e-9,12345678901234567890,123456789012345678901,-0,-0.0,5e22])", Style::kPython),
      "[100.0, 1.5, 1e-05, 1e-09, 12345678901234567890, 1.2345678901234568e+20, -0.0, -0.0, 5e+22]");
  EXPECT_EQ(
      rewritten("[1e15,1e16,123456789012345680,9007199254740993.0,1e-4,0.0001234,1e308,5e-324,1e-400]", Style::kPython),
      "[1000000000000000.0, 1e+16, 123456789012345680, 9007199254740992.0, 0.0001, 0.0001234, 1e+308, 5e-324, 0.0]");
  EXPECT_EQ(rewritten("[18446744073709551615,18446744073709551616,-9223372036854775808,-9223372036854775809]",
                      Style::kPython),
            "[18446744073709551615, 1.8446744073709552e+19, -9223372036854775808, -9.223372036854776e+18]");
  EXPECT_EQ(rewritten("[true,false,null,{},[],\"\"]", Style::kPython), "[true, false, null, {}, [], \"\"]");
}

TEST(Json, EscapesWhatMustBe) {
  EXPECT_EQ(rewritten(R"(["\u00fc\n\u0007\u001f\"\\\/\u007f\ud83d\ude00\b\f\r\t"])", Style::kCompact),
            "[\"ü\\n\\u0007\\u001f\\\"\\\\/\x7F😀\\b\\f\\r\\t\"]");
}

TEST(Json, RefusesWithPlaceAndReason) {
  expect_refused("", "the text ends at line 1 column 1");
  expect_refused("{\"a\":1,\n \"b\":}", "\"}\" at line 2 column 6");
  expect_refused("[1,]", "\"]\" at line 1 column 4");
  expect_refused("{\"a\":1,}", "a key in quotes");
  expect_refused("{a:1}", "a key in quotes");
  expect_refused("[1 2]", "',' or ']'");
  expect_refused("{} x", "the end");
  expect_refused("nul", "a value");
  expect_refused("01", "leading zero");
  expect_refused("-", "a value");
  expect_refused("1.", "a digit");
  expect_refused("1e", "a digit");
  expect_refused("NaN", "a value");
  expect_refused("-Infinity", "a value");
  expect_refused("\"\t\"", "control characters");
  expect_refused("\"\\x\"", "an escape");
  expect_refused("\"\\u12g4\"", "four hex digits");
  expect_refused("\"abc", "the text ends");
  expect_refused("1e400", "64-bit float");
  expect_refused("[" + std::string(400, '9') + "]", "64-bit float");
  expect_refused("\"\xff\"", "ill-formed UTF-8 at byte 1");
  expect_refused("\xEF\xBB\xBF{}", "a value");  // a byte order mark is no JSON
}

TEST(Json, RefusesLoneSurrogates) {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\n")", R"("\ud800\u0041")",
                           R"("\udc00\ud800")", R"({"\udfff":1})"}) {
    expect_refused(text, "lone surrogate");
  }
  EXPECT_EQ(rewritten(R"("\\ud800")", Style::kCompact), R"("\\ud800")");
}

TEST(Json, HoldsItsLimits) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse(nested(127)).ok());
  expect_refused(nested(128), "deeper than 127 levels");
  expect_refused(std::string(10'000'000, '['), "deeper than 127 levels");
  EXPECT_FALSE(parse("[1,2,3]", {.n_values_max = 3}).ok());
  EXPECT_TRUE(parse("[1,2,3]", {.n_values_max = 4}).ok());
  EXPECT_FALSE(parse("[1,2,3]", {.n_bytes_max = 6}).ok());
}

TEST(Json, ReadsTheSameTextsAsAnotherParser) {
  const std::string_view alphabet = "{}[]\",:01-.eE+truefalsn \n\\u0041d8";
  std::mt19937 random(7);
  int n_accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    const size_t n = 1 + random() % 9;
    for (size_t i = 0; i < n; ++i) text += alphabet[random() % alphabet.size()];
    const bool accepted = parse(text).ok();
    EXPECT_EQ(accepted, nlohmann::json::accept(text)) << text;
    n_accepted += accepted ? 1 : 0;
  }
  EXPECT_GT(n_accepted, 1000);
}

}  // namespace
}  // namespace deepinfer::json
