#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/tagged_machine.h"

namespace deepinfer::grammar {
namespace {

using Kind = Constraint::Kind;

std::shared_ptr<const Constraint> constraint(Kind kind, std::string source, std::vector<std::string> choices = {}) {
  auto made = std::make_shared<Constraint>();
  made->kind = kind;
  made->source = std::move(source);
  made->choices = std::move(choices);
  return made;
}

/// A content and its definition.
struct Content {
  std::shared_ptr<const Constraint> constraint;
  std::function<bool(const std::string&)> accepts;
};

bool is_ab(const std::string& text) { return text.find_first_not_of("ab") == std::string::npos; }

std::vector<Content> contents() {
  return {
      {constraint(Kind::kChoice, "", {"a", "ab", "<a"}),
       [](const std::string& t) { return t == "a" || t == "ab" || t == "<a"; }},
      {constraint(Kind::kRegex, "[ab]*"), is_ab},
      {constraint(Kind::kRegex, "[ab]{0,2}"), [](const std::string& t) { return t.size() <= 2 && is_ab(t); }},
      {constraint(Kind::kRegex, "[^]*"), [](const std::string&) { return true; }},
      {constraint(Kind::kEbnf, "root ::= \"a\" root \"b\" | \"\""),
       [](const std::string& t) {
         return t == std::string(t.size() / 2, 'a') + std::string(t.size() - t.size() / 2, 'b') && t.size() % 2 == 0;
       }},
      {constraint(Kind::kEbnf, "root ::= root \"b\" | \"<\""),
       [](const std::string& t) {
         return !t.empty() && t[0] == '<' && t.find_first_not_of('b', 1) == std::string::npos;
       }},
  };
}

struct Case {
  Constraint constraint;
  std::vector<Content> contents;  // by region
};

/// The definition, by trying every way to cut the text.
class Recogniser {
 public:
  explicit Recogniser(const Case& c) : case_(c) {}
  bool accepts(const std::string& text) {
    text_ = text;
    known_.assign(2 * (text.size() + 1), -1);
    return rest(0, !case_.constraint.region_required && case_.constraint.free_text);
  }

 private:
  bool rest(size_t at, bool done) {
    int& known = known_[2 * at + (done ? 1 : 0)];
    if (known < 0) known = find_rest(at, done) ? 1 : 0;
    return known == 1;
  }
  bool find_rest(size_t at, bool done) {
    const auto& regions = case_.constraint.regions;
    if (!case_.constraint.free_text) {
      if (done && at == text_.size()) return true;
      for (size_t r = 0; r < regions.size(); ++r)
        if (text_.compare(at, regions[r].begin.size(), regions[r].begin) == 0 &&
            region(r, at + regions[r].begin.size()))
          return true;
      return false;
    }
    for (size_t end = at + 1; end <= text_.size(); ++end) {
      size_t longest = 0;
      for (const auto& region : regions) {
        const size_t n = region.begin.size();
        if (end - at >= n && text_.compare(end - n, n, region.begin) == 0) longest = std::max(longest, n);
      }
      if (longest == 0) continue;
      for (size_t r = 0; r < regions.size(); ++r)
        if (text_.substr(end - longest, longest) == regions[r].begin && region(r, end)) return true;
      return false;
    }
    return done;
  }
  bool region(size_t r, size_t from) {
    const std::string& end = case_.constraint.regions[r].end;
    for (size_t to = from; to <= text_.size(); ++to)
      if (text_.compare(to, end.size(), end) == 0 && to + end.size() <= text_.size() &&
          case_.contents[r].accepts(text_.substr(from, to - from)) && rest(to + end.size(), true))
        return true;
    return false;
  }

  const Case& case_;
  std::string text_;
  std::vector<int> known_;
};

constexpr std::string_view kLetters = "ab<c";

Case random_case(std::mt19937_64& random) {
  static const std::vector<Content> kContents = contents();
  const auto word = [&random](size_t n) {
    std::string text;
    for (; n > 0; --n) text += "ab<"[random() % 3];
    return text;
  };
  Case made;
  made.constraint.kind = Kind::kTagged;
  made.constraint.free_text = random() % 3 != 0;
  made.constraint.region_required = random() % 2 == 0;
  for (uint64_t n = 1 + random() % 3; n > 0; --n) {
    made.contents.push_back(kContents[random() % kContents.size()]);
    made.constraint.regions.push_back({word(1 + random() % 3), word(random() % 3), made.contents.back().constraint});
  }
  return made;
}

/// Single letters first, then pairs and longer ones.
std::shared_ptr<const Vocabulary> letters() {
  static const std::vector<std::string> kTokens = {"a",  "b",  "<",  "c",    "ab", "a<b",
                                                   "b<", "<a", "<<", "abc<", "ca", "aaab"};
  static const std::vector<std::string_view> kViews(kTokens.begin(), kTokens.end());
  static const int32_t kEnds[] = {12};
  static const auto kVocabulary = *Vocabulary::build(kViews, kEnds, 13);
  return kVocabulary;
}

std::vector<std::string> all_texts(size_t n_max) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() < n_max)
      for (const char c : kLetters) texts.push_back(texts[i] + c);
  return texts;
}

std::string describe(const Case& c) {
  std::string out =
      std::string(c.constraint.free_text ? "free" : "") + (c.constraint.region_required ? " required" : "");
  for (const auto& region : c.constraint.regions) {
    out += " [" + region.begin + "|" + region.content->source;
    for (const auto& choice : region.content->choices) out += "," + choice;
    out += "|" + region.end + "]";
  }
  return out;
}

bool advance_letters(Matcher& matcher, std::string_view text) {
  for (const char c : text)
    if (!matcher.advance(static_cast<int32_t>(kLetters.find(c)))) return false;
  return true;
}

/// Ever shorter distances lead to a text that the recogniser knows.
void follow_distance(Matcher matcher, std::string text, Recogniser& recogniser, const std::string& where) {
  for (int64_t left = matcher.shortest_completion(); !matcher.complete(); --left) {
    ASSERT_GT(left, 0) << where;
    int32_t letter = 0;
    for (; letter < 4; ++letter) {
      Matcher to = matcher.fork();
      if (!to.advance(letter) || to.shortest_completion() != left - 1) continue;
      matcher = to;
      break;
    }
    ASSERT_LT(letter, 4) << where << " + " << text;
    text += kLetters[static_cast<size_t>(letter)];
  }
  ASSERT_TRUE(recogniser.accepts(text)) << where << " -> " << text;
}

void compare(const Case& c, size_t n_max, int& n_compiled) {
  const Compiled compiled = compile(letters(), c.constraint);
  if (compiled.grammar == nullptr) {
    ASSERT_NE(compiled.refusal->reason.find("can never begin"), std::string::npos) << compiled.refusal->reason;
    return;
  }
  ++n_compiled;
  Recogniser recogniser(c);
  const std::vector<std::string> texts = all_texts(n_max);
  std::vector<bool> in(texts.size());
  std::vector<int> shortest(texts.size(), -1);
  for (size_t i = texts.size(); i-- > 0;) {
    in[i] = recogniser.accepts(texts[i]);
    for (size_t k = 4 * i + 1; k <= 4 * i + 4 && k < texts.size(); ++k)
      if (shortest[k] >= 0 && (shortest[i] < 0 || shortest[k] + 1 < shortest[i])) shortest[i] = shortest[k] + 1;
    if (in[i]) shortest[i] = 0;
  }
  const Matcher start(compiled.grammar);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string where = describe(c) + " at '" + texts[i] + "'";
    Matcher matcher = start.fork();
    if (!advance_letters(matcher, texts[i])) {
      ASSERT_EQ(shortest[i], -1) << where;
      continue;
    }
    ASSERT_EQ(matcher.complete(), in[i]) << where;
    if (shortest[i] >= 0) {
      ASSERT_EQ(matcher.shortest_completion(), shortest[i]) << where;
    } else {
      ASSERT_GT(matcher.shortest_completion(), static_cast<int64_t>(n_max - texts[i].size())) << where;
    }
    if (i % 16 != 0) continue;
    follow_distance(matcher, texts[i], recogniser, where);
    const Mask mask = matcher.mask();
    for (int32_t token = 0; token <= 12; ++token) {
      Matcher to = matcher.fork();
      ASSERT_EQ(mask.allows(token), to.advance(token)) << where << " token " << token;
    }
  }
}

TEST(Tagged, RandomRegionsAgreeWithTheRecogniser) {
  std::mt19937_64 random(1);
  int n_compiled = 0;
  for (int round = 0; round < 250; ++round) {
    compare(random_case(random), 5, n_compiled);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(n_compiled, 120);
}

Case one_region(std::string begin, std::string end, const std::shared_ptr<const Constraint>& content) {
  Case made;
  made.constraint.kind = Kind::kTagged;
  made.constraint.regions.push_back({std::move(begin), std::move(end), content});
  return made;
}

bool takes(const Constraint& source, std::string_view text) {
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  const std::vector<int32_t> ends = {256};
  const Compiled compiled = compile(*Vocabulary::build(views, ends, 257), source);
  EXPECT_NE(compiled.grammar, nullptr) << compiled.refusal->reason;
  if (compiled.grammar == nullptr) return false;
  Matcher matcher(compiled.grammar);
  for (const char c : text) {
    if (!matcher.mask().allows(static_cast<uint8_t>(c))) return false;
    EXPECT_TRUE(matcher.advance(static_cast<uint8_t>(c)));
  }
  return matcher.complete();
}

TEST(Tagged, FreeTextIsUtf8AndRegionsAreEnforced) {
  const auto schema = constraint(Kind::kJsonSchema, R"({"type":"object","properties":{"x":{"type":"integer"}},
      "required":["x"],"additionalProperties":false})");
  Constraint tool = one_region("<tool>", "</tool>", schema).constraint;
  for (const char* good : {"", "hello", "é 漢 😀", "<too", "<tool>{\"x\":1}</tool>", "é<tool>{\"x\": 12}</tool> and",
                           "<<tool>{\"x\":1}</tool><tool>{\"x\":2}</tool>"})
    EXPECT_TRUE(takes(tool, good)) << good;
  for (const char* bad : {"\xFF", "\xC3", "\xED\xA0\x80", "<tool>", "<tool>{\"x\":1}", "<tool>{\"y\":1}</tool>",
                          "a <tool>b", "<tool>{\"x\":1}</tool><tool>"})
    EXPECT_FALSE(takes(tool, bad)) << bad;
  tool.region_required = true;
  EXPECT_FALSE(takes(tool, "hello"));
  EXPECT_TRUE(takes(tool, "hello <tool>{\"x\":1}</tool>"));
  tool.free_text = false;
  EXPECT_TRUE(takes(tool, "<tool>{\"x\":1}</tool><tool>{\"x\":1}</tool>"));
  EXPECT_FALSE(takes(tool, "<tool>{\"x\":1}</tool> <tool>{\"x\":1}</tool>"));
  tool.region_required = false;
  EXPECT_FALSE(takes(tool, ""));
}

/// String bodies, blanks and kinds of contents, where other ways through the text stay open as well.
TEST(Tagged, MasksAreWhatAdvanceTakesInsideJson) {
  std::mt19937_64 random(3);
  const std::vector<std::string> pieces = {"<t>", "<t", ">",  "{", "}",    "\"", "x",   "y", ":",
                                           ",",   "[",  "]",  "1", "a",    "b",  "\\n", "é", "\xC3",
                                           " ",   "\n", "</", "t", "</t>", "<u", "\":", "\""};
  std::vector<std::string> tokens(pieces);
  while (tokens.size() < 120) {
    std::string token;
    for (uint64_t n = 2 + random() % 3; n > 0; --n) token += pieces[random() % pieces.size()];
    tokens.push_back(token);
  }
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  const std::vector<int32_t> ends = {120};
  const auto vocabulary = *Vocabulary::build(views, ends, 121);
  const auto schema =
      constraint(Kind::kJsonSchema, R"({"type":"object","properties":{"x":{"type":"string","maxLength":4},
      "y":{"type":"array","items":{"type":"string","pattern":"^(ab)*$"}}},"additionalProperties":{"type":"integer"}})");
  const auto number = constraint(Kind::kJsonSchema, R"({"type":["integer","string"]})");
  Constraint both = one_region("<t>", "</t>", schema).constraint;
  both.regions.push_back({"<u>", "", number});
  both.regions.push_back({"<t>", "", number});  // two regions with one begin
  const Compiled compiled = compile(vocabulary, both);
  ASSERT_NE(compiled.grammar, nullptr) << compiled.refusal->reason;
  for (int walk = 0; walk < 150; ++walk) {
    Matcher matcher(compiled.grammar);
    std::string text;
    if (walk % 3 != 0) {
      ASSERT_TRUE(matcher.advance(0));
      if (walk % 3 == 1) {
        ASSERT_TRUE(matcher.advance(walk % 2 == 0 ? 3 : 5));
      }
    }
    for (int step = 0; step < 12; ++step) {
      const Mask mask = matcher.mask();
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token <= 120; ++token) {
        Matcher to = matcher.fork();
        const bool expected = to.advance(token);
        ASSERT_EQ(mask.allows(token), expected)
            << text << " + " << (token < 120 ? tokens[static_cast<size_t>(token)] : "end");
        if (expected && token < 120) allowed.push_back(token);
      }
      if (allowed.empty()) break;
      const int32_t token = allowed[random() % allowed.size()];
      ASSERT_TRUE(matcher.advance(token));
      text += tokens[static_cast<size_t>(token)];
    }
  }
}

std::string refusal_of(const Constraint& source) {
  const Compiled compiled = compile(letters(), source);
  return compiled.refusal ? compiled.refusal->keyword + ": " + compiled.refusal->reason : "";
}

TEST(Tagged, RefusesByName) {
  const auto any = constraint(Kind::kRegex, "a*");
  Constraint none;
  none.kind = Kind::kTagged;
  EXPECT_EQ(refusal_of(none), "tagged: there is no region");
  EXPECT_EQ(refusal_of(one_region("", ">", any).constraint), "tagged: region 1 has no begin");
  EXPECT_EQ(refusal_of(one_region("<", ">", nullptr).constraint), "tagged: region 1 has no content");
  EXPECT_EQ(refusal_of(one_region("<", "\xFF", any).constraint), "tagged: a tag of region 1 is not UTF-8");
  EXPECT_EQ(refusal_of(one_region("<", ">", constraint(Kind::kTagged, "")).constraint),
            "tagged: region 1 has tagged regions itself");
  EXPECT_EQ(refusal_of(one_region("<", ">", constraint(Kind::kRegex, "(")).constraint).substr(0, 17),
            "regex: region 1: ");
  for (const auto& [first, second] : {std::pair("<t", "<to"), std::pair("to", "<tor")}) {
    Constraint two = one_region(first, ">", any).constraint;
    two.regions.push_back({second, ">", any});
    EXPECT_EQ(refusal_of(two), "tagged: region 2 can never begin with \"" + std::string(second) + "\", because \"" +
                                   first + "\" ends before and begins region 1");
    two.free_text = false;
    EXPECT_EQ(refusal_of(two), "");
  }
  Constraint same_end = one_region("ab", ">", any).constraint;  // the longer one wins
  same_end.regions.push_back({"xab", "]", any});
  EXPECT_TRUE(takes(same_end, "ab> xaba]"));
  EXPECT_FALSE(takes(same_end, "xaba>"));
}

TEST(Tagged, StopsWithoutFuelAndSaysSo) {
  Constraint endless = one_region("<", ">", constraint(Kind::kRegex, "[^]*")).constraint;
  const Compiled compiled = compile(letters(), endless, {.time = std::chrono::milliseconds(0)});
  ASSERT_TRUE(compiled.refusal.has_value());
  EXPECT_EQ(compiled.refusal->keyword, "tagged");
}

}  // namespace
}  // namespace deepinfer::grammar
