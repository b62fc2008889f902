#include "grammar/regex.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::grammar {
namespace {

// Answers of V8 (node 20, flag u; without it where a pattern is lenient) for every pattern and text: four texts per
// hexadecimal digit, most significant bit first. `search`: some part matches; `whole`: ^(?:pattern)$ does.
struct Case {
  std::string_view pattern, search, whole;
};

const std::vector<std::string_view> kTexts = {"",
                                              "a",
                                              "b",
                                              "ab",
                                              "ba",
                                              "abc",
                                              "ac",
                                              "bc",
                                              "c",
                                              "x",
                                              "axx",
                                              "xxb",
                                              "xax",
                                              "bx",
                                              " ",
                                              "   ",
                                              " a ",
                                              "x y",
                                              "foo",
                                              "a foo.",
                                              "foob",
                                              "zoo",
                                              "oo",
                                              "--",
                                              "a-b",
                                              "a--b",
                                              "a-",
                                              "-a",
                                              "1a2",
                                              "abc1",
                                              "ab1",
                                              "foo bar",
                                              "mode",
                                              "Mode x",
                                              "x,y",
                                              "a,x,b",
                                              ",x",
                                              "xx",
                                              "a, a",
                                              "/a/b",
                                              "a/b",
                                              "/",
                                              "ok!",
                                              "ok\\!",
                                              "\012",
                                              "\015",
                                              "\342\200\250",
                                              "\302\240",
                                              "\357\273\277",
                                              "\343\200\200",
                                              "\011",
                                              "\013",
                                              "\010",
                                              std::string_view("\0", 1),
                                              "\303\251",
                                              "\303\211",
                                              "\303\211a",
                                              "\360\237\230\200",
                                              "\360\237\230\202\303\251",
                                              "\360\237\230\203",
                                              "\316\261",
                                              "\316\251",
                                              "\331\243",
                                              "_",
                                              "9",
                                              "42",
                                              "aa",
                                              "aaa",
                                              "aaaa",
                                              "abab",
                                              "aab",
                                              "aaab",
                                              "abcd",
                                              "acd",
                                              "abbcd",
                                              "AB\012",
                                              "/.*",
                                              "a\012c",
                                              "a\342\200\250c",
                                              "a\360\237\230\200c",
                                              "-",
                                              "]",
                                              "cd",
                                              "cda",
                                              "xa",
                                              "bxa",
                                              "aaa,",
                                              "12",
                                              "b-",
                                              "a1 b",
                                              "\341\240\216",
                                              "\342\200\213"};

const Case kCases[] = {
    {"^a|b$", "763018e6138000003fe7024", "60000000000000000000000"},
    {"\\S", "7ffcfffffff00ffffffffff", "60c0000000400f5f8000c03"},
    {"^a(?=b)c$", "00000000000000000000000", "00000000000000000000000"},
    {"^ok\\!$", "00000000002000000000000", "00000000002000000000000"},
    {"(^|,)x(,|$)", "00400000380000000000000", "00400000080000000000000"},
    {"^$", "80000000000000000000000", "80000000000000000000000"},
    {"$^", "80000000000000000000000", "80000000000000000000000"},
    {"a$|^b", "690400100200008038001c8", "60000000000000000000000"},
    {"(^a|b)c", "070000040000000000e0000", "03000000000000000000000"},
    {"^(a|b$)", "762010e6128000003fe7024", "60000000000000000000000"},
    {"\\bfoo\\b", "00003001000000000000000", "00002000000000000000000"},
    {"\\Boo\\b", "00003401000000000000000", "00000000000000000000000"},
    {"^\\w+\\b.\\b\\w+$", "00004081608000000001004", "00004081608000000001004"},
    {"a\\b", "480090f01380008038071e0", "40000000000000000000000"},
    {"^(?!.*--)[a-z-]+$", "7ffc2eb0840000003fe0bc8", "7ffc2eb0840000003fe0bc8"},
    {"^(?=.*\\d)(?=.*[a-z]).{3,}$", "0000000e000000000000004", "0000000e000000000000004"},
    {"^((?!foo).)*$", "ffffc7fefff1ffffffe9fff", "ffffc7fefff1ffffffe9fff"},
    {"^((?!mode)(?!Mode).)*$", "ffffffff3ff1ffffffe9fff", "ffffffff3ff1ffffffe9fff"},
    {"(?<=a)b", "140000060000000007a0000", "00000000000000000000000"},
    {"(?<!a)b", "291408c111800000002004c", "20000000000000000000000"},
    {"^[a-z-]+(?<!-)$", "7ffc2ed0840000003fe03c0", "7ffc2ed0840000003fe03c0"},
    {"(?<=^|,)x", "005840003c0000000000080", "00400000000000000000000"},
    {"(^|, )a+(?=,|$)", "40000000120000003800020", "40000000000000003800000"},
    {"^(\\/?(a|b)*($|\\/))*$", "f800000001c000003f00000", "f800000001c000003f00000"},
    {"^(x|$)+$", "80400000040000000000000", "80400000040000000000000"},
    {"[^\\d]", "7fffffffffffffff3ffffef", "60c20000004fff5f0000c03"},
    {"^[\\w-]+$", "7ffc2ffe84000001ffe0bd8", "7ffc2ffe84000001ffe0bd8"},
    {"^[\\]\\-a]+$", "40000130000000003800c00", "40000130000000003800c00"},
    {"^[^]$", "60c20000004fff5f8000c03", "60c20000004fff5f8000c03"},
    {"[]", "00000000000000000000000", "00000000000000000000000"},
    {"^.$", "60c200000041ff5f8000c03", "60c200000041ff5f8000c03"},
    {"^[\\s\\S]$", "60c20000004fff5f8000c03", "60c20000004fff5f8000c03"},
    {"^\\s+$", "00030000000ff0000000000", "00030000000ff0000000000"},
    {"^\\S+$", "7ffc2ffebdf00fffffe9ffb", "7ffc2ffebdf00fffffe9ffb"},
    {"^\\d+$", "0000000000000000c000010", "0000000000000000c000010"},
    {"^\\W$", "00020000004fff5e0000c03", "00020000004fff5e0000c03"},
    {"^a{2}$", "00000000000000002000000", "00000000000000002000000"},
    {"^a{2,}$", "00000000000000003800000", "00000000000000003800000"},
    {"^a{1,3}?$", "40000000000000003000000", "40000000000000003000000"},
    {"^(ab){2}$", "00000000000000000400000", "00000000000000000400000"},
    {"^(a*)*b$", "30000000000000000300000", "30000000000000000300000"},
    {"^(a|ab)(c|bcd)$", "060000000000000000a0000", "060000000000000000a0000"},
    {"^\\u0041\\x42\\cJ$", "00000000000000000010000", "00000000000000000010000"},
    {"^\\u{1F600}$", "00000000000000400000000", "00000000000000400000000"},
    {"^\\uD83D\\uDE00$", "00000000000000400000000", "00000000000000400000000"},
    {"^[\\u{1F600}-\\u{1F602}]$", "00000000000000400000000", "00000000000000400000000"},
    {"^[\360\237\230\200-\360\237\230\202]\303\251?$", "00000000000000600000000", "00000000000000600000000"},
    {"^\\p{Lu}\\p{L}*$", "00000000000001840000000", "00000000000001840000000"},
    {"^\\P{L}$", "00020000004ffc538000c03", "00020000004ffc538000c03"},
    {"^\\p{Script=Greek}+$", "000000000000000c0000000", "000000000000000c0000000"},
    {"^[\\p{Nd}_]+$", "0000000000000003c000010", "0000000000000003c000010"},
    {"^(?<year>\\d{2})$", "00000000000000004000010", "00000000000000004000010"},
    {"^\\/\\.\\*$", "00000000000000000008000", "00000000000000000008000"},
    {"^[\\b]$", "00000000000008000000000", "00000000000008000000000"},
    {"^a.c$", "04000000000000000001000", "04000000000000000001000"},
    {"^(?:a|(?=b)b)c$", "03000000000000000000000", "03000000000000000000000"},
    {"^(?!(?:ab|cd)$).*$", "effffffffff1ffffffe9dff", "effffffffff1ffffffe9dff"},
    {"^(?:(?<!x)a|b)+$", "78000000000000003f00000", "78000000000000003f00000"},
    {"(?!a)b|^c", "3d9408c71180000007a034c", "20800000000000000000000"},
    {"^(a(?!c)|b){0,3}$", "f8000000000000003200000", "f8000000000000003200000"},
    {"\\0|[\\t]", "00000000000024000000000", "00000000000024000000000"},
};

bool bit_of(std::string_view digits, size_t i) {
  const char c = digits[i / 4];
  const int value = c <= '9' ? c - '0' : c - 'a' + 10;
  return (value >> (3 - i % 4) & 1) != 0;
}

TEST(Regex, AnswersLikeEcma262) {
  for (const Case& item : kCases) {
    Languages languages;
    const Result<Lang> search = parse_regex(languages, item.pattern, Match::kSearch);
    const Result<Lang> whole = parse_regex(languages, item.pattern, Match::kWhole);
    ASSERT_TRUE(search.ok()) << search.error().message;
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    for (size_t i = 0; i < kTexts.size(); ++i) {
      EXPECT_EQ(languages.accepts(*search, kTexts[i]), bit_of(item.search, i)) << item.pattern << " in " << kTexts[i];
      EXPECT_EQ(languages.accepts(*whole, kTexts[i]), bit_of(item.whole, i)) << item.pattern << " is " << kTexts[i];
    }
  }
}

TEST(Regex, RefusesWhatIsNotEcma262OrNotRegular) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"^(a)\\1$", "character 5: back-references are not regular"},
      {"\\k<x>", "back-references"},
      {"^[z-a]$", "character 3: this range is in the wrong order"},
      {"^(a$", "character 2: this group is not closed"},
      {"a)", "character 2: this bracket closes no group"},
      {"[a", "this class is not closed"},
      {"*a", "nothing stands here"},
      {"a**", "nothing stands here"},
      {"a{2}{3}", "nothing stands here"},
      {"^*", "nothing stands here"},
      {"(?=a)*", "nothing stands here"},
      {"{2}", "nothing stands here"},
      {"a{3,2}", "wrong order"},
      {"a{,3}", "{,n}"},
      {"a{9999999999}", "above 1000000000"},
      {"a++", "possessive"},
      {"(?i)a", "flags"},
      {"(?i:a)", "flags"},
      {"(?P<n>a)", "(?P"},
      {"(?>a)", "atomic"},
      {"(?#a)", "comments"},
      {"(?<1>a)", "name of a group"},
      {"\\Z", "no such escape"},
      {"\\a", "no such escape"},
      {"\\x1", "hexadecimal"},
      {"\\u12", "hexadecimal"},
      {"\\u{110000}", "no such character"},
      {"\\u{}", "hexadecimal"},
      {"\\c1", "letter"},
      {"\\01", "octal"},
      {"\\", "backslash at the end"},
      {"\\p{Nope}", "property"},
      {"\\pL", "property"},
      {"\\p{Script_Extensions=Latin}", "property"},
      {"(?<=ab)c", "look-behind"},
      {"(\\ba)*", "unlimited repeat"},
      {"((?=a)[ab]c)+", "unlimited repeat"},
      {"(\\ba){20}", "so many times"},
      {"\xFF", "UTF-8"},
  };
  for (const auto& [pattern, message] : cases) {
    Languages languages;
    const Result<Lang> lang = parse_regex(languages, pattern, Match::kSearch);
    ASSERT_FALSE(lang.ok()) << pattern;
    EXPECT_EQ(lang.error().code, Code::kInvalidArgument);
    EXPECT_NE(lang.error().message.find(message), std::string::npos) << pattern << ": " << lang.error().message;
  }
}

TEST(Regex, FindsAnyTextWhereAllIsAllowed) {
  for (const std::string_view pattern :
       {"", ".*", "^", "$", "a*", "(.|\\n)*", "^[^]*$", "x|", "(?!a)|a", "^[\\s\\S]*$"}) {
    Languages languages;
    EXPECT_EQ(*parse_regex(languages, pattern, Match::kSearch), kAnyText) << pattern;
  }
  Languages languages;
  EXPECT_EQ(*parse_regex(languages, "^(?=a)b$", Match::kSearch) == kNothing ||
                languages.is_empty(*parse_regex(languages, "^(?=a)b$", Match::kSearch)),
            true);
  EXPECT_EQ(*parse_regex(languages, "a^", Match::kSearch), kNothing);
}

std::string repeated(std::string_view text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

/// Patterns that are made to hurt, on a stack of 256 KiB: answered or refused within the fuel.
void* hostile_patterns(void*) {
  const std::vector<std::string> patterns = {
      repeated("(", 60000) + "a" + repeated(")", 60000),
      repeated("(?:", 60000) + "a" + repeated(")*", 60000),
      repeated("(a", 60000) + repeated(")?", 60000),
      repeated("(a|b", 60000) + repeated(")", 60000),
      repeated("(a|b", 200) + repeated(")", 200),
      repeated("(a|b", 70) + repeated(")*", 70),
      repeated("(?=", 60000) + "a" + repeated(")", 60000),
      repeated("(?=a|b", 99) + repeated(")", 99),
      repeated("(^a", 60000) + repeated(")", 60000),
      repeated("(", 60000),
      repeated(")", 60000),
      repeated("[", 60000),
      repeated("a?", 3000) + repeated("a", 3000),
      repeated("(?:", 8) + "\\bx" + repeated("){0,16}", 8),
      "(a|b)*a(a|b){24}",
      "a{1000000}",
      "(a{1000}){1000}",
      "((a{0,1000}b?){0,1000}c?){0,1000}",
      "(a|a|aa|aaa){0,100000}",
      "(?=(aa)*$)(?=(aaa)*$)(?=(a{5})*$)(?=(a{7})*$)(?=(a{11})*$)(?=(a{13})*$)(?=(a{17})*$)a+",
  };
  for (const std::string& pattern : patterns) {
    Languages languages;
    Fuel fuel(300'000, std::chrono::seconds(5));
    languages.set_fuel(&fuel);
    const Result<Lang> lang = parse_regex(languages, pattern, Match::kWhole);
    if (!lang.ok()) continue;
    Lang at = *lang;
    for (int i = 0; i < 200 && at != kNothing; ++i) at = languages.next(at, i % 7 == 6 ? 'b' : 'a');
    languages.is_empty(*lang);
    languages.shortest(*lang);
  }
  return nullptr;
}

TEST(Regex, HostilePatternsEndOnASmallStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, hostile_patterns, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Regex, CountsStaySmall) {
  Languages languages;
  const Lang wide = *parse_regex(languages, "(a|b)*a(a|b){24}", Match::kWhole);
  EXPECT_TRUE(languages.accepts(wide, "bbab" + std::string(23, 'a')));
  EXPECT_FALSE(languages.accepts(wide, "bbba" + std::string(22, 'a')));
  const Lang nullable = *parse_regex(languages, "(a*)*b", Match::kWhole);
  for (const char* text : {"b", "ab", "aaab"}) EXPECT_TRUE(languages.accepts(nullable, text));
  const Lang square = *parse_regex(languages, "(a{1000}){1000}", Match::kWhole);
  EXPECT_EQ(languages.shortest(square), 1'000'000);
  EXPECT_LT(languages.n_bytes(), 100'000);
}

}  // namespace
}  // namespace deepinfer::grammar
