#include "text/utf8.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

const std::string kBad(kReplacementCharacter);

TEST(Utf8, FindsFirstIllFormedByte) {
  EXPECT_EQ(find_ill_formed(""), std::nullopt);
  EXPECT_EQ(find_ill_formed("plain ASCII of more than eight bytes"), std::nullopt);
  EXPECT_EQ(find_ill_formed("é中🌶\U0010FFFF"), std::nullopt);
  EXPECT_EQ(find_ill_formed("0123456789\x80"), 10U);
  EXPECT_EQ(find_ill_formed("é\xC3"), 2U);             // unfinished
  EXPECT_EQ(find_ill_formed("\xC0\xAF"), 0U);          // overlong
  EXPECT_EQ(find_ill_formed("a\xED\xA0\x80"), 1U);     // surrogate
  EXPECT_EQ(find_ill_formed("\xF4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(find_ill_formed("\xF0\x8F\xBF\xBF"), 0U);  // overlong
}

// The examples of the Unicode Standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ReplacesEachMaximalSubpart) {
  EXPECT_EQ(replace_ill_formed("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                               "A"),
            kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(replace_ill_formed("\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
                               "A"),
            kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(replace_ill_formed("\xF4\x91\x92\x93\xFF"
                               "A\x80\xBF"
                               "B"),
            kBad + kBad + kBad + kBad + kBad + "A" + kBad + kBad + "B");
  EXPECT_EQ(replace_ill_formed("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                               "A"),
            kBad + kBad + kBad + kBad + "A");
  EXPECT_EQ(replace_ill_formed("ok\xE4\xB8"), "ok" + kBad);
}

TEST(Utf8, DecodesWhatItEncodes) {
  for (char32_t c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    ASSERT_EQ(find_ill_formed(text), std::nullopt) << static_cast<uint32_t>(c);
    ASSERT_EQ(decode_utf8(text.data()).value, c);
    ASSERT_EQ(decode_utf8(text.data()).n_bytes, text.size());
  }
}

}  // namespace
}  // namespace deepinfer
