#include "text/unicode.h"

#include <gtest/gtest.h>

#include <vector>

namespace deepinfer {
namespace {

std::string folded(char32_t code_point) {
  std::string text;
  append_folded(code_point, text);
  return text;
}

TEST(Unicode, KnowsCategories) {
  EXPECT_EQ(category(U'a'), Category::kLl);
  EXPECT_EQ(category(U'A'), Category::kLu);
  EXPECT_EQ(category(U'_'), Category::kPc);
  EXPECT_EQ(category(U'\n'), Category::kCc);
  EXPECT_EQ(category(0x4E00), Category::kLo);
  EXPECT_EQ(category(0x3007), Category::kNl);
  EXPECT_EQ(category(0x20AC), Category::kSc);
  EXPECT_EQ(category(0x0903), Category::kMc);
  EXPECT_EQ(category(0xD800), Category::kCs);
  EXPECT_EQ(category(0x10FFFD), Category::kCo);
  EXPECT_EQ(category(0x10FFFF), Category::kCn);
}

TEST(Unicode, IsVersion16) {
  EXPECT_EQ(category(0x1C89), Category::kLu);   // new in 16.0
  EXPECT_EQ(category(0x10D4A), Category::kLo);  // new in 16.0
  EXPECT_EQ(category(0xA7CE), Category::kCn);   // new in 17.0
}

TEST(Unicode, HasWhiteSpaceOf25CodePoints) {
  std::vector<char32_t> spaces;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if ((char_flags(c) & kCharSpace) != 0) spaces.push_back(c);
  }
  EXPECT_EQ(spaces, (std::vector<char32_t>{0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,   0xA0,   0x1680,
                                           0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                           0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}));
}

TEST(Unicode, GivesAtMostOneClassToACodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    const uint16_t flags = char_flags(c);
    ASSERT_EQ(flags & (flags - 1), 0) << static_cast<uint32_t>(c);
  }
}

TEST(Unicode, Folds) {
  EXPECT_EQ(folded(U'a'), "a");
  EXPECT_EQ(folded(U'Z'), "z");
  EXPECT_EQ(folded(0x00C9), "e");             // É
  EXPECT_EQ(folded(0x0130), "i");             // İ
  EXPECT_EQ(folded(0x03A3), "σ");             // never the final form
  EXPECT_EQ(folded(0x0301), "");              // a mark
  EXPECT_EQ(folded(0x00BD), "1\u20442");      // ½
  EXPECT_EQ(folded(0xFB03), "ffi");           // ligature
  EXPECT_EQ(folded(0xFF21), "a");             // full-width A
  EXPECT_EQ(folded(0x3000), " ");             // ideographic space
  EXPECT_EQ(folded(0x1D400), "a");            // mathematical bold A
  EXPECT_EQ(folded(0xF900), "\u8C48");        // compatibility ideograph
  EXPECT_EQ(folded(0xAC00), "\u1100\u1161");  // Hangul without tail
  EXPECT_EQ(folded(0xD7A3), "\u1112\u1175\u11C2");
  EXPECT_EQ(folded(0x10FFFF), "\U0010FFFF");
}

}  // namespace
}  // namespace deepinfer
