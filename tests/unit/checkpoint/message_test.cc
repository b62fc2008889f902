#include "checkpoint/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

TEST(Printable, EscapesControlBytes) { EXPECT_EQ(printable(std::string_view("a\n\0b\x7F", 5)), "a\\x0a\\x00b\\x7f"); }

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("a\xE2\x82\xAC", 3), "a...");
  EXPECT_EQ(printable("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
}

TEST(Problems, NoneIsSuccess) { EXPECT_TRUE(problems_status("t", {}).ok()); }

TEST(Problems, SpellsOutTwenty) {
  std::vector<std::string> problems;
  for (int i = 0; i < 23; ++i) problems.push_back("p" + std::to_string(i));
  const Status status = problems_status("dir", problems);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kBadModelFile);
  EXPECT_TRUE(status.error().message.starts_with("dir: p0; p1; "));
  EXPECT_TRUE(status.error().message.ends_with("; p19 and 3 more"));
}

TEST(JsonQuoted, Escapes) { EXPECT_EQ(json_quoted("a\"\\\n\xC3\xA9"), "\"a\\\"\\\\\\u000a\xC3\xA9\""); }

}  // namespace
}  // namespace deepinfer
