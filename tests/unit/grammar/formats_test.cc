#include "grammar/formats.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::grammar {
namespace {

std::string two(int n) { return {static_cast<char>('0' + n / 10), static_cast<char>('0' + n % 10)}; }

TEST(Formats, DatesEqualTheCalendar) {
  Languages languages;
  const Lang lang = *format_language(languages, "date");
  for (const int year :
       {0, 4, 100, 400, 1600, 1700, 1900, 1996, 2000, 2019, 2020, 2022, 2024, 2100, 2400, 9996, 9999}) {
    const std::string prefix = std::to_string(10000 + year).substr(1) + "-";
    for (int month = 0; month <= 19; ++month) {
      for (int day = 0; day <= 39; ++day) {
        const std::chrono::year_month_day date(std::chrono::year(year),
                                               std::chrono::month(static_cast<unsigned>(month)),
                                               std::chrono::day(static_cast<unsigned>(day)));
        ASSERT_EQ(languages.accepts(lang, prefix + two(month) + "-" + two(day)), date.ok() && year != 0)
            << prefix << month << "-" << day;
      }
    }
  }
  for (const char* text : {"2020-1-01", "20-01-01", "02020-01-01", "2020-01-01 ", "2020/01/01",
                           "\xD9\xA2"
                           "020-01-01"}) {
    EXPECT_FALSE(languages.accepts(lang, text)) << text;
  }
}

TEST(Formats, LeapSecondsAreAtTheEndOfTheDayInUtc) {
  Languages languages;
  const Lang lang = *format_language(languages, "time");
  for (int minute = 0; minute < 24 * 60; minute += 7) {
    const std::string local = two(minute / 60) + ":" + two(minute % 60) + ":60";
    EXPECT_EQ(languages.accepts(lang, local + "Z"), minute == 24 * 60 - 1);
    for (int offset = 0; offset < 24 * 60; ++offset) {
      const std::string zone = two(offset / 60) + ":" + two(offset % 60);
      const bool plus = (minute - offset + 24 * 60) % (24 * 60) == 24 * 60 - 1;
      const bool minus = (minute + offset) % (24 * 60) == 24 * 60 - 1;
      if (plus || minus || offset % 11 == 0) {
        ASSERT_EQ(languages.accepts(lang, local + "+" + zone), plus) << local << zone;
        ASSERT_EQ(languages.accepts(lang, local + ".25-" + zone), minus) << local << zone;
      }
    }
  }
  EXPECT_TRUE(languages.accepts(lang, "23:59:60Z"));
  EXPECT_TRUE(languages.accepts(lang, "23:59:60.5z"));
}

/// next() is never a dead end, and shortest() is the way out: for formats with an automaton or an intersection inside.
TEST(Formats, EveryPrefixCanBeCompleted) {
  for (const char* name : {"time", "date-time", "hostname"}) {
    Languages languages;
    std::vector<std::pair<Lang, int>> open = {{*format_language(languages, name), 0}};
    for (size_t i = 0; i < open.size() && i < 300; ++i) {
      const auto [at, depth] = open[i];
      const int64_t least = languages.shortest(at);
      ASSERT_GE(least, 0) << name;
      int64_t best = languages.accepts_empty(at) ? 0 : INT64_MAX;
      for (int b = 0; b < 256; ++b) {
        const Lang after = languages.next(at, static_cast<uint8_t>(b));
        if (after == kNothing) continue;
        best = std::min(best, languages.shortest(after) + 1);
        if (b % 3 == 0 || depth < 3) open.emplace_back(after, depth + 1);
      }
      ASSERT_EQ(least, best) << name << " after " << depth << " bytes";
    }
  }
}

TEST(Formats, Ipv4NumbersEndAt255) {
  Languages languages;
  const Lang lang = *format_language(languages, "ipv4");
  for (int n = 0; n <= 1000; ++n) {
    const std::string number = std::to_string(n);
    EXPECT_EQ(languages.accepts(lang, "1." + number + ".0.255"), n <= 255) << n;
    EXPECT_FALSE(n < 100 && languages.accepts(lang, "1.2.3.0" + number)) << n;
  }
}

/// Words of 16 bits around at most one "::", as the definition says it, against the language.
TEST(Formats, Ipv6WordsAreEight) {
  Languages languages;
  const Lang lang = *format_language(languages, "ipv6");
  for (int before = 0; before <= 9; ++before) {
    std::string head;
    for (int i = 0; i < before; ++i) head += (i > 0 ? ":" : "") + std::string(i % 2 == 0 ? "a" : "12Ef");
    EXPECT_EQ(languages.accepts(lang, head), before == 8);
    EXPECT_EQ(languages.accepts(lang, head + (before > 0 ? ":" : "") + "1.2.3.4"), before == 6);
    for (int behind = 0; behind <= 9; ++behind) {
      std::string tail;
      for (int i = 0; i < behind; ++i) tail += (i > 0 ? ":" : "") + std::string("0");
      EXPECT_EQ(languages.accepts(lang, head + "::" + tail), before + behind <= 7) << head << "::" << tail;
      const std::string mixed = head + "::" + tail + (behind > 0 ? ":" : "") + "1.2.3.4";
      EXPECT_EQ(languages.accepts(lang, mixed), before + behind <= 5) << mixed;
    }
  }
  for (const char* text : {"1:2:3:4:5:6:7:12345", ":1:2:3:4:5:6:7:8", "1::2::3", "1:2", "fe80::1%eth0", "::g",
                           "::1.2.3.256", "1:2:3:4:5:6:7:", ":::", "::1 "}) {
    EXPECT_FALSE(languages.accepts(lang, text)) << text;
  }
}

struct Examples {
  std::vector<std::string> valid, invalid;
};

TEST(Formats, Examples) {
  const std::string label63(63, 'a');
  const std::map<std::string, Examples> cases = {
      {"date-time",
       {{"1963-06-19T08:30:06.283185Z", "1998-12-31T23:59:60Z", "1998-12-31t15:59:60.123-08:00",
         "2020-02-29t00:00:00z"},
        {"1998-12-31T23:59:61Z", "1990-02-31T15:59:59Z", "1990-12-31T15:59:59-24:00", "1963-06-19 08:30:06Z",
         "1963-06-19T08:30:06", "2013-350T01:01:01", "1998-12-31T23:58:60Z", "1963-06-1\xE0\xA7\xAAT00:00:00Z"}}},
      {"time", {{"08:30:06Z", "08:30:06+00:20"}, {"24:00:00Z", "00:60:00Z", "12:00:00", "08:30:06 PST"}}},
      {"duration",
       {{"P4DT12H30M5S", "P4Y", "PT36H", "P2W", "P1Y2M", "PT1H30M", "P01D"},
        {"P", "PT", "P1", "P1Y2W", "PT1D", "P1Y2D", "PT1H2S", "P2D1Y", "-P1D", "PT0.5S", "P1W1D"}}},
      {"email",
       {{"joe.bloggs@example.com", "\"joe bloggs\"@x", "te~st@example.com", "a@[127.0.0.1]", "a@[IPv6:::1]",
         "a+b@c-d.e"},
        {"2962", ".a@b", "a.@b", "a..b@c", "a@b_c", "a@[127.0.0.300]", "a@", "@b", "a b@c", "a@b.", "a@-b",
         "a@b, c@d"}}},
      {"hostname",
       {{"www.example.com", "a", "a--b.com", "1host", label63 + ".com"},
        {"", ".", "a.", ".a", "-a", "a-", "a_b", label63 + "a.com", "xn--X", "XN--abc.de", "a.xn--b",
         label63 + "." + label63 + "." + label63 + "." + label63,
         "a\xEF\xBC\x8E"
         "b"}}},
      {"uri",
       {{"http://foo.bar/?baz=qux#quuz", "mailto:John.Doe@example.com", "urn:oasis:names:tc", "tel:+1-816-555-1212",
         "ldap://[2001:db8::7]/c=GB?objectClass?one", "http://u:p%20w@h:8080/a/b", "a:", "file:///etc/passwd",
         "http://[v1.x]/"},
        {"", "//foo.bar/", "/abc", "abc", "http:// x", ":// fail", "bar,baz:foo", "http://a b", "http://[1::2::3]/",
         "http://a/%zz", "http://a/\xC3\xA9", "http://a/<b>", "1a:b", "http://h:port/", "\\\\WINDOWS\\share"}}},
      {"uri-reference",
       {{"", "//foo.bar/?q#f", "/abc", "abc", "#frag", "?q", "a/b:c", "./a:b", "http://a"},
        {"\\\\WINDOWS", "#frag\\ment", "a b", "1:b/c", ":a", "%"}}},
      {"iri",
       {{"http://\xC6\x92\xC3\xB8\xC3\xB8.\xC3\xA1r/", "http://a/\xF0\x90\x8D\x88"}, {"/\xC3\xA9", "http://a b", ""}}},
      {"uuid",
       {{"2EB8AA08-aa98-11EA-B4Aa-73B441D16380", "00000000-0000-0000-0000-000000000000"},
        {"2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
         "2eb8aa08-aa98-11ea-b4ga-73b441d16380"}}},
      {"json-pointer", {{"", "/", "/foo//bar~0~1/%\n", "/a/-"}, {"a", "/~", "/~2", "#/a", "/a~"}}},
      {"uri-template",
       {{"", "http://example.com/{term:1}/{x,y*}", "{+var}", "{?a,b:30}", "a%41b", "{a.b}", "{%41}"},
        {"{", "}", "{}", "{a,}", "{a..b}", "{v:0}", "{v:10000}", "a b", "{var=def}", "a\"b", "%4"}}},
      {"regex",
       {{"", "([abc])+\\s+$", "^\\d{3}-[a-z]{2,}$", "a|b|", "(?:x(?=y)(?<!z))*?", "[^\\w\\-.]", "\\u00e9{1,20}",
         "^\\S+@\\S+\\.[a-z]{2,10}$", "^[A-Za-z0-9+/=-]*$"},
        {"^(abc]", "(", ")", "[a", "a**", "*", "+a", "[z-a]", "a{3,2}", "a{20,10}", "\\", "(?=a)*", "(?<n", "^*", "\\a",
         "^\\S(|(.|\\n)*\\S)\\Z", "{", "a{2}{3}", "(?i)a"}}},
  };
  for (const auto& [name, examples] : cases) {
    Languages languages;
    const std::optional<Lang> lang = format_language(languages, name);
    ASSERT_TRUE(lang.has_value()) << name;
    for (const std::string& text : examples.valid) EXPECT_TRUE(languages.accepts(*lang, text)) << name << " " << text;
    for (const std::string& text : examples.invalid)
      EXPECT_FALSE(languages.accepts(*lang, text)) << name << " " << text;
  }
}

TEST(Formats, OtherNamesAreAnnotations) {
  Languages languages;
  for (const char* name :
       {"", "int32", "color", "idn-email", "relative-json-pointer", "iri-reference", "Date", "date "}) {
    EXPECT_FALSE(format_language(languages, name).has_value()) << name;
  }
}

TEST(Formats, TextsThatAreLeftOutAreNotTakenForInvalid) {
  Languages languages;
  EXPECT_FALSE(format_at_most(languages, "date-time").has_value());
  const std::pair<const char*, const char*> left_out[] = {
      {"hostname", "a.xn--4gbwdl.xn--wgbh1c"},
      {"email", "joe@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.org"},
      {"uri-template", "/a{=b}"},
      {"regex", "(?<name>a)"}};
  for (const auto& [format, text] : left_out) {
    EXPECT_FALSE(languages.accepts(*format_language(languages, format), text)) << format;
    const auto at_most = format_at_most(languages, format);
    ASSERT_TRUE(at_most.has_value()) << format;
    EXPECT_TRUE(languages.accepts(*at_most, text)) << format;
    EXPECT_TRUE(languages.is_empty(languages.except(*format_language(languages, format), *at_most))) << format;
  }
  EXPECT_FALSE(languages.accepts(*format_at_most(languages, "hostname"), "-a"));
  EXPECT_FALSE(languages.accepts(*format_at_most(languages, "email"), "joe"));
}

}  // namespace
}  // namespace deepinfer::grammar
