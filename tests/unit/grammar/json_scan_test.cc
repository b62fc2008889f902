// What may stand in JSON text, and where a member's value ends.
#include "grammar/json_scan.h"

#include <gtest/gtest.h>

#include <string_view>

namespace deepinfer::grammar {
namespace {

struct Scanned {
  bool may_be_json, ended_member;
};

Scanned scan(JsonScan::Start start, std::string_view text) {
  JsonScan scan(start);
  for (const char c : text)
    if (!scan.step(static_cast<uint8_t>(c))) return {false, scan.ended_member()};
  return {true, scan.ended_member()};
}

TEST(JsonScan, TellsWhatFollowsAString) {
  for (const char* text : {"",
                           ":",
                           " :\n",
                           ",",
                           ",\"",
                           ",\"a\":",
                           ",\"a\",1",
                           "}",
                           "]",
                           "]]}",
                           "},{\"a",
                           "}],\"b\":{",
                           ":{\"a\":[1,{\"",
                           ":1",
                           ":-0.5e+3,",
                           ":tru",
                           ":null}",
                           ":\"a\\n\\u00e9",
                           ",[[",
                           ",{}",
                           ",null,\"",
                           ": [ ] }",
                           ",\"\xC3\xA9"})
    EXPECT_TRUE(scan(JsonScan::Start::kBehindString, text).may_be_json) << text;
  for (const char* text : {"a",   ")",     ";",      "\"",  "::",       ":,",       ":}",  ",,",          ",}",  ",]",
                           "{",   "[",     "1",      ":{1", ":{\"a\"}", ":{\"a\",", ":[}", ":[1}",        ":{]", ":tx",
                           ":+1", ":\"\n", ":\"\\x", ",:",  "},:",      "}:",       ":1:", ":{\"a\":1,2", "\xC3"})
    EXPECT_FALSE(scan(JsonScan::Start::kBehindString, text).may_be_json) << text;
}

TEST(JsonScan, TellsWhatStandsBetweenTokens) {
  for (const char* text : {"",    " ", "{",    "{\"", "[",  "[[1,", "\"", "\"a\":1", "\"a\",", "\"a\"]", ":",
                           ": {", ",", ", \"", "}",   "}]", "},{",  "t",  "false,",  "-",      "12]",    "null}"})
    EXPECT_TRUE(scan(JsonScan::Start::kBetweenTokens, text).may_be_json) << text;
  for (const char* text : {"a", "+", ".", "tt", "{1", "[}", ":]", "'", "(", "]1", "}\"", "falsely", "nullable", "{}^"})
    EXPECT_FALSE(scan(JsonScan::Start::kBetweenTokens, text).may_be_json) << text;
}

TEST(JsonScan, TellsWhereTheValueOfAMemberEnds) {
  for (const char* text :
       {":null", ":true,", ":\"\"", ":{}", ":[1,2]", ":1,", ":1 ", ":1}", ":{\"a\":{}}", ": \"a\" , \"b"})
    EXPECT_TRUE(scan(JsonScan::Start::kBehindString, text).ended_member) << text;
  for (const char* text : {"", ":", ": ", ":1", ":-", ":nul", ":\"a", ":{\"a\":1", ":[[]", ",\"a\"", "}", "],[]"})
    EXPECT_FALSE(scan(JsonScan::Start::kBehindString, text).ended_member) << text;
}

}  // namespace
}  // namespace deepinfer::grammar
