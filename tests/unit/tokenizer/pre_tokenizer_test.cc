#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace deepinfer {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const std::string& text) {
  std::vector<uint32_t> ends;
  split_pieces(text, ends);
  Pieces pieces;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

TEST(PreTokenizer, CutsWords) {
  EXPECT_EQ(pieces_of(""), Pieces{});
  EXPECT_EQ(pieces_of("The capital"), (Pieces{"The", " capital"}));
  EXPECT_EQ(pieces_of("don't"), (Pieces{"don", "'t"}));
  EXPECT_EQ(pieces_of("x.café"), (Pieces{"x", ".caf", "é"}));  // punctuation takes ASCII letters only
  EXPECT_EQ(pieces_of("a\u00A0b\tc"), (Pieces{"a", "\u00A0b", "\tc"}));
  EXPECT_EQ(pieces_of("e\u0301 \u0301"), (Pieces{"e\u0301", " \u0301"}));
}

TEST(PreTokenizer, CutsNumbersByThree) {
  EXPECT_EQ(pieces_of("1234567"), (Pieces{"123", "456", "7"}));
  EXPECT_EQ(pieces_of("  5"), (Pieces{"  ", "5"}));  // the number ends the segment of the blanks
  EXPECT_EQ(pieces_of("a½²③b"), (Pieces{"a", "½²③", "b"}));
  EXPECT_EQ(pieces_of("1,000.5"), (Pieces{"1", ",", "000", ".", "5"}));
}

TEST(PreTokenizer, CutsCjkRuns) {
  EXPECT_EQ(pieces_of("你好abc世界"), (Pieces{"你好", "abc", "世界"}));
  EXPECT_EQ(pieces_of(" 你"), (Pieces{" ", "你"}));
  EXPECT_EQ(pieces_of("東京タワーは333"), (Pieces{"東京タワーは", "333"}));
  EXPECT_EQ(pieces_of("タ・ー"), (Pieces{"タ", "・", "ー"}));              // the third split works inside the run
  EXPECT_EQ(pieces_of("\u3040の\u3040"), (Pieces{"\u3040の", "\u3040"}));  // unassigned: a prefix, then a gap
  EXPECT_EQ(pieces_of("龥龦"), (Pieces{"龥", "龦"}));                      // the range ends at U+9FA5
}

TEST(PreTokenizer, CutsBlanksAndLineEnds) {
  EXPECT_EQ(pieces_of("a   b"), (Pieces{"a", "  ", " b"}));
  EXPECT_EQ(pieces_of("abc   "), (Pieces{"abc", "   "}));
  EXPECT_EQ(pieces_of("\n\n  x"), (Pieces{"\n\n", " ", " x"}));
  EXPECT_EQ(pieces_of("a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(pieces_of("a \u2028.b"), (Pieces{"a", " ", "\u2028", ".b"}));
  EXPECT_EQ(pieces_of("\n.\r\n\r\nx"), (Pieces{"\n", ".\r\n\r\n", "x"}));
}

TEST(PreTokenizer, CutsSignsAndKeepsGapsTogether) {
  EXPECT_EQ(pieces_of("a != b"), (Pieces{"a", " !=", " b"}));
  EXPECT_EQ(pieces_of("(...)x"), (Pieces{"(...)", "x"}));
  EXPECT_EQ(pieces_of("(x"), (Pieces{"(x"}));
  EXPECT_EQ(pieces_of(std::string("\0\0\0x", 4)), (Pieces{std::string("\0\0", 2), std::string("\0x", 2)}));
  EXPECT_EQ(pieces_of("\u200B\u200B!"), (Pieces{"\u200B\u200B", "!"}));
  EXPECT_EQ(pieces_of("\u200B1"), (Pieces{"\u200B", "1"}));
}

}  // namespace
}  // namespace deepinfer
