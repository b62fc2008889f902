#include "grammar/ebnf.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/ebnf_machine.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {
namespace {

constexpr std::chrono::seconds kLong{20};

/// The machine, or the message.
Result<std::unique_ptr<Machine>> make(std::string_view text) {
  Fuel fuel(200'000'000, kLong);
  auto languages = std::make_unique<Languages>();
  languages->set_fuel(&fuel);
  const Result<Ebnf> grammar = parse_ebnf(*languages, text, fuel);
  if (!grammar) return grammar.error();
  auto machine = make_ebnf_machine(std::move(languages), *grammar, fuel);
  if (fuel.empty()) return Error{Code::kInvalidArgument, "out of fuel"};
  if (machine && !(*machine)->failure().empty())
    return Error{Code::kInvalidArgument, std::string((*machine)->failure())};
  return machine;
}

std::string message_of(std::string_view text) {
  const auto machine = make(text);
  return machine ? "" : machine.error().message;
}

State run(Machine& machine, std::string_view text) {
  State state = machine.start();
  for (const char c : text) state = machine.step(state, static_cast<uint8_t>(c));
  return state;
}

bool accepts(Machine& machine, std::string_view text) {
  const State state = run(machine, text);
  return state != kDead && machine.complete(state);
}

void expect_texts(std::string_view grammar, const std::vector<std::string>& good, const std::vector<std::string>& bad) {
  auto machine = make(grammar);
  ASSERT_TRUE(machine.ok()) << grammar << "\n" << machine.error().message;
  for (const std::string& text : good) EXPECT_TRUE(accepts(**machine, text)) << grammar << "\n" << text;
  for (const std::string& text : bad) EXPECT_FALSE(accepts(**machine, text)) << grammar << "\n" << text;
  EXPECT_EQ((*machine)->failure(), "");
}

// -- an independent definition: trees, their spelling, and a recogniser that fills a table until nothing changes

struct Tree {
  enum Kind : uint8_t { kLiteral, kCall, kSequence, kAlternatives, kRepeat } kind = kLiteral;
  std::string text = {};
  size_t rule = 0;
  std::vector<Tree> parts = {};
  int min = 0, max = 0;
};
using Rules = std::vector<Tree>;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  Tree tree(int depth, int n_rules) {
    Tree tree;
    const int what = below(depth <= 0 ? 5 : 10);
    if (what < 2) {
      static const char* const kTexts[] = {"a", "b", "ab", "ba", "a", "b", ""};
      tree.text = kTexts[below(7)];
    } else if (what < 5) {
      tree.kind = Tree::kCall;
      tree.rule = static_cast<size_t>(below(n_rules));
    } else if (what < 9) {
      tree.kind = what < 7 ? Tree::kSequence : Tree::kAlternatives;
      for (int n = 1 + below(3); n >= 0; --n) tree.parts.push_back(this->tree(depth - 1, n_rules));
    } else {
      tree.kind = Tree::kRepeat;
      tree.parts.push_back(this->tree(depth - 1, n_rules));
      static const int kCounts[][2] = {{0, -1}, {1, -1}, {0, 1}, {2, 2}, {1, 3}, {2, -1}, {0, 2}};
      const int k = below(7);
      tree.min = kCounts[k][0];
      tree.max = kCounts[k][1];
    }
    return tree;
  }

 private:
  std::mt19937_64 engine_;
};

std::string rule_name(size_t rule) { return rule == 0 ? "root" : "r" + std::to_string(rule); }

std::string spell(const Tree& tree) {
  std::string out;
  switch (tree.kind) {
    case Tree::kLiteral:
      return "\"" + tree.text + "\"";
    case Tree::kCall:
      return rule_name(tree.rule);
    case Tree::kSequence:
      for (const Tree& part : tree.parts) out += spell(part) + " ";
      return "(" + out + ")";
    case Tree::kAlternatives:
      for (const Tree& part : tree.parts) out += (out.empty() ? "" : " | ") + spell(part);
      return "(" + out + ")";
    case Tree::kRepeat:
      return "(" + spell(tree.parts[0]) + "){" + std::to_string(tree.min) + "," +
             (tree.max < 0 ? "" : std::to_string(tree.max)) + "}";
  }
  return out;
}

std::string spell(const Rules& rules) {
  std::string out;
  for (size_t i = 0; i < rules.size(); ++i) out += rule_name(i) + " ::= " + spell(rules[i]) + "\n";
  return out;
}

using Ends = uint64_t;  // bit e: a match ends at e

class Recogniser {
 public:
  explicit Recogniser(const Rules& rules) : rules_(rules) {}
  bool accepts(const std::string& text) {
    text_ = text;
    table_.assign(rules_.size(), std::vector<Ends>(text.size() + 1, 0));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t r = 0; r < rules_.size(); ++r)
        for (size_t i = 0; i <= text.size(); ++i) {
          const Ends ends = match(rules_[r], i);
          changed = changed || ends != table_[r][i];
          table_[r][i] = ends;
        }
    }
    return (table_[0][0] >> text.size() & 1) != 0;
  }

 private:
  Ends match_all(const Tree& tree, Ends from) {
    Ends out = 0;
    for (size_t i = 0; i <= text_.size(); ++i)
      if ((from >> i & 1) != 0) out |= match(tree, i);
    return out;
  }
  Ends match(const Tree& tree, size_t at) {
    Ends ends = Ends{1} << at;
    switch (tree.kind) {
      case Tree::kLiteral:
        return text_.compare(at, tree.text.size(), tree.text) == 0 ? Ends{1} << (at + tree.text.size()) : 0;
      case Tree::kCall:
        return table_[tree.rule][at];
      case Tree::kSequence:
        for (const Tree& part : tree.parts) ends = match_all(part, ends);
        return ends;
      case Tree::kAlternatives:
        ends = 0;
        for (const Tree& part : tree.parts) ends |= match(part, at);
        return ends;
      case Tree::kRepeat: {
        for (int i = 0; i < tree.min; ++i) ends = match_all(tree.parts[0], ends);
        for (int i = tree.min; tree.max < 0 ? true : i < tree.max; ++i) {
          const Ends more = ends | match_all(tree.parts[0], ends);
          if (more == ends) break;
          ends = more;
        }
        return ends;
      }
    }
    return 0;
  }

  const Rules& rules_;
  std::string text_;
  std::vector<std::vector<Ends>> table_;
};

std::vector<std::string> all_texts(size_t n_max) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() < n_max)
      for (const char c : {'a', 'b'}) texts.push_back(texts[i] + c);
  return texts;
}

Rules random_rules(Random& random) {
  Rules rules;
  const int n_rules = 1 + random.below(4);
  for (int i = 0; i < n_rules; ++i) rules.push_back(random.tree(2, n_rules));
  return rules;
}

/// A text from `state` to the end by ever shorter distances; nothing if they do not get shorter one by one.
std::optional<std::string> shortest_end(Machine& machine, State state) {
  std::string text;
  for (int64_t left = machine.distance(state); !machine.complete(state); --left) {
    if (left <= 0 || text.size() > 50) return std::nullopt;
    State next = kDead;
    for (const char c : {'a', 'b'}) {
      const State to = machine.step(state, static_cast<uint8_t>(c));
      if (to == kDead || machine.distance(to) != left - 1) continue;
      next = to;
      text += c;
      break;
    }
    if (next == kDead) return std::nullopt;
    state = next;
  }
  return text;
}

/// Accepted texts, dead states and distances of all texts up to a length, against the recogniser.
void compare(const Rules& rules, size_t n_max) {
  const std::string grammar = spell(rules);
  Recogniser recogniser(rules);
  const std::vector<std::string> texts = all_texts(n_max);
  std::vector<bool> in(texts.size());
  std::vector<int> shortest(texts.size(), -1);  // texts[i] is a prefix of texts[2i+1] and [2i+2]
  for (size_t i = texts.size(); i-- > 0;) {
    in[i] = recogniser.accepts(texts[i]);
    for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < texts.size(); ++k)
      if (shortest[k] >= 0 && (shortest[i] < 0 || shortest[k] + 1 < shortest[i])) shortest[i] = shortest[k] + 1;
    if (in[i]) shortest[i] = 0;
  }
  const auto made = make(grammar);
  if (!made) {
    ASSERT_EQ(made.error().message, "no text matches the grammar") << grammar;
    ASSERT_EQ(shortest[0], -1) << grammar;
    return;
  }
  Machine& machine = **made;
  for (size_t i = 0; i < texts.size(); ++i) {
    const State state = run(machine, texts[i]);
    const std::string where = grammar + "at '" + texts[i] + "'";
    ASSERT_EQ(state != kDead && machine.complete(state), in[i]) << where;
    if (state == kDead) {
      ASSERT_EQ(shortest[i], -1) << where;
      continue;
    }
    const int64_t distance = machine.distance(state);
    const auto room = static_cast<int64_t>(n_max - texts[i].size());
    if (shortest[i] >= 0) {
      ASSERT_EQ(distance, shortest[i]) << where;
    } else {
      ASSERT_GT(distance, room) << where;
      if (distance > 24) continue;
      const auto end = shortest_end(machine, state);  // a live state has an end, and that is a text of the grammar
      ASSERT_TRUE(end.has_value()) << where;
      ASSERT_TRUE(recogniser.accepts(texts[i] + *end)) << where << " + " << *end;
    }
    const auto bytes = machine.next_bytes(state);
    for (int b = 0; bytes && b < 256; ++b)
      ASSERT_EQ(bytes->contains(static_cast<uint8_t>(b)), machine.step(state, static_cast<uint8_t>(b)) != kDead)
          << where << b;
  }
  ASSERT_EQ(machine.failure(), "");
}

TEST(Ebnf, RandomGrammarsAgreeWithTheRecogniser) {
  int n_empty = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const Rules rules = random_rules(random);
    n_empty += make(spell(rules)).ok() ? 0 : 1;
    compare(rules, 6);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_LT(n_empty, 360);
}

TEST(Ebnf, EveryKindOfRecursionAgreesWithTheRecogniser) {
  const auto text = [](const char* t) { return Tree{.kind = Tree::kLiteral, .text = t}; };
  const auto call = [](size_t r) { return Tree{.kind = Tree::kCall, .rule = r}; };
  const auto sequence = [](std::vector<Tree> t) { return Tree{.kind = Tree::kSequence, .parts = std::move(t)}; };
  const auto either = [](std::vector<Tree> t) { return Tree{.kind = Tree::kAlternatives, .parts = std::move(t)}; };
  const auto star = [](Tree t) { return Tree{.kind = Tree::kRepeat, .parts = {std::move(t)}, .min = 0, .max = -1}; };
  // Left, right, in the middle, both ways and ambiguous.
  compare({either({sequence({call(0), text("a")}), text("b")})}, 8);
  compare({either({sequence({text("a"), call(0)}), text("b")})}, 8);
  compare({either({sequence({text("a"), call(0), text("b")}), text("")})}, 8);
  compare({either({sequence({call(0), call(0)}), text("a")})}, 8);
  compare({either({sequence({call(0), text("b"), call(0)}), text("a"), text("")})}, 8);
  // Indirect left recursion; hidden left and right recursion behind what may be empty.
  compare({either({sequence({call(1), text("a")}), text("b")}), either({sequence({call(0), text("b")}), text("a")})},
          8);
  compare({either({sequence({call(1), call(0), text("b")}), text("a")}), either({text("a"), text("")})}, 8);
  compare({either({sequence({text("b"), call(0), call(1)}), text("a")}), either({text("a"), text("")})}, 8);
  compare({sequence({star(call(1)), text("b")}), either({star(text("a")), sequence({call(1), call(1)})})}, 8);
  // A rule that is itself, and one that never ends.
  compare({either({call(0), text("a")})}, 4);
  compare({either({call(1), text("a")}), sequence({text("b"), call(1)})}, 4);
  compare({either({call(1), sequence({call(1), call(0)})}), sequence({star(call(0)), text("ab"), star(call(1))})}, 8);
}

TEST(Ebnf, ListsComeBackToTheSameStates) {
  for (const char* grammar : {"root ::= \"[\" list \"]\"\nlist ::= list \",\" x | x\nx ::= [a-z]+ | \"(\" list \")\"",
                              "root ::= \"[\" list \"]\"\nlist ::= x \",\" list | x\nx ::= [a-z]+ | \"(\" list \")\"",
                              "root ::= \"[\" list \"]\"\nlist ::= x (\",\" x)*\nx ::= [a-z]+ | \"(\" list \")\""}) {
    const auto machine = make(grammar);
    ASSERT_TRUE(machine.ok());
    State first = run(**machine, "[a,(b,c),d,");
    EXPECT_EQ(run(**machine, "[a,(b,c),d,e,(f),g,hh,i,"), first) << grammar;
    EXPECT_EQ((*machine)->distance(first), 2);
  }
}

TEST(Ebnf, ReadsTheDialect) {
  expect_texts("root ::= \"a\" # comment | \"x\"\n  | 'b'\n\n# more\n  \"c\"", {"a", "bc"}, {"b", "x", "ac"});
  expect_texts("root ::= (\n  \"a\" |\n  # between\n  \"b\"\n) \"c\"", {"ac", "bc"}, {"c", "abc"});
  expect_texts(R"(root ::= "\x41\u00e9\U0001F600\ud83d\ude00\n\t\r\"\\\[\]\-")",
               {"A\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80\n\t\r\"\\[]-"}, {"A"});
  expect_texts(R"(root ::= [a-c\x30-\x32\]\\^-] [^a-z\n])", {"a!", "0\xC3\xA9", "]A", "\\ ", "^1", "-1"},
               {"da", "aa", "a\n", "3!", "a\xC3", "a\xFF"});
  expect_texts("root ::= .", {"a", "\n", "\xF0\x9F\x98\x80"}, {"", "ab", "\x80", "\xED\xA0\x80"});
  expect_texts("root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2} \"d\"{,1} \"e\"{ 1 , 2 }", {"aabe", "aabbbccdee"},
               {"abe", "aae", "aabccce", "aabddе", "aabeee"});
  expect_texts("root::=x-1 x_2\nx-1::=\"a\"\nx_2 ::= [b] ?\n", {"a", "ab"}, {"b"});
  expect_texts("start ::= other\nother ::= \"a\"", {"a"}, {""});  // no root: the first rule
  expect_texts("start ::= \"b\"\nroot ::= \"a\"", {"a"}, {"b"});  // root wherever it stands
  expect_texts("root ::= | \"a\"", {"", "a"}, {"b"});
  expect_texts("root ::= (\"a\" | ) \"b\" ()", {"b", "ab"}, {"a"});
  expect_texts("root ::= [^\"\\\\]* \"\"\"\"", {"", "xyz\n"}, {"\"", "\\"});
  expect_texts("\xEF\xBB\xBFroot ::= \"a\"\r\nx ::= \"b\"\r\n", {"a"}, {"b"});  // unused rules are fine
  expect_texts("root ::= [-a] [a-]", {"--", "aa"}, {"b-"});
}

TEST(Ebnf, NamesWhatIsWrongAndWhere) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1, column 1: there is no rule"},
      {"# nothing\n", "line 2, column 1: there is no rule"},
      {"root \"a\"", "line 1, column 1: a rule has to begin with its name and ::="},
      {"root ::= a\nb ::= \"x\"", "line 1, column 10: there is no rule \"a\""},
      {"root ::= \"x\"\nb ::= root\n  c d", "line 3, column 3: there is no rule \"c\""},
      {"root ::= (\"x\"\nb ::= \"y\"", "line 1, column 10: the group is not closed"},
      {"root ::= \"x\")", "line 1, column 13: no group is open here"},
      {"root ::= \"é\" )", "line 1, column 14: no group is open here"},
      {"root ::= \"x", "line 1, column 10: the literal is not closed on its line"},
      {"root ::= \"x\ny\"", "line 1, column 10: the literal is not closed on its line"},
      {"root ::= [a", "line 1, column 10: the class is not closed on its line"},
      {"root ::= []", "line 1, column 10: the class is empty"},
      {"root ::= [z-a]", "line 1, column 11: the range is out of order"},
      {"root ::= *", "line 1, column 10: nothing stands before the repeat"},
      {"root ::= \"a\" | +", "line 1, column 16: nothing stands before the repeat"},
      {"root ::= \"a\"+?", "line 1, column 14: two repeats in a row; a group says what is meant"},
      {"root ::= \"a\"{}", "line 1, column 13: a repeat is {m}, {m,}, {,n} or {m,n}"},
      {"root ::= \"a\"{1;2}", "line 1, column 13: a repeat is {m}, {m,}, {,n} or {m,n}"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: the repeat's limits are out of order"},
      {"root ::= \"a\"{99999999999999999999}", "line 1, column 14: the count is above 1000000000"},
      {"root ::= \"\\q\"", "line 1, column 11: unknown escape \"\\q\""},
      {"root ::= \"\\x4\"", "line 1, column 11: the escape takes 2 hexadecimal digits"},
      {"root ::= \"\\ud83dx\"", "line 1, column 11: half a pair of surrogates is no character"},
      {"root ::= \"\\ude00\"", "line 1, column 11: half a pair of surrogates is no character"},
      {"root ::= \"\\U00110000\"", "line 1, column 11: no character is above U+10FFFF"},
      {"root ::= <think>", "line 1, column 10: tokens of the model in < > are not supported"},
      {"root ::= a ; ", "line 1, column 12: unexpected \";\""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule \"root\" is defined twice"},
      {"root ::= \"\xFF\"", "line 1, column 11: not UTF-8"},
      {"root ::= root", "no text matches the grammar"},
      {"root ::= a\na ::= \"x\" b\nb ::= a | b b", "no text matches the grammar"},
      {"root ::= [^\\U00000000-\\U0010FFFF]", "no text matches the grammar"},
      {"root ::= a{1,1000000000}\na ::= \"(\" a \")\" | \"x\"",
       "the rule root with its repeats takes the grammar beyond 500000 positions"},
  };
  for (const auto& [grammar, message] : cases) EXPECT_EQ(message_of(grammar), message) << grammar;
}

// -- DC-06

std::string nested_groups(int n, const std::string& before, const std::string& core, const std::string& behind) {
  std::string out = "root ::= ";
  for (int i = 0; i < n; ++i) out += before;
  out += core;
  for (int i = 0; i < n; ++i) out += behind;
  return out;
}

std::string chain(int n, const std::string& before, const std::string& behind) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += "r" + std::to_string(i) + " ::= " + before + "r" + std::to_string(i + 1) + behind + "\n";
  return out + "r" + std::to_string(n) + " ::= \"a\"\n";
}

/// A result, or a refusal within about a second.
Compiled compile_quickly(const std::string& source) {
  static const std::string_view kTokens[] = {"a", "b", "(", ")", "ab", "ba"};
  static const int32_t kEnds[] = {6};
  static const auto kVocabulary = *Vocabulary::build(kTokens, kEnds, 7);
  const auto from = std::chrono::steady_clock::now();
  Constraint constraint;
  constraint.kind = Constraint::Kind::kEbnf;
  constraint.source = source;
  Compiled compiled = compile(kVocabulary, constraint);
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(2)) << source.substr(0, 60);
  return compiled;
}

bool takes(const Compiled& compiled, const std::vector<int32_t>& tokens) {
  Matcher matcher(compiled.grammar);
  for (const int32_t token : tokens)
    if (!matcher.advance(token)) return false;
  return matcher.complete();
}

void hostile_shapes() {
  Compiled groups = compile_quickly(nested_groups(60'000, "(", "\"a\"", ")"));
  ASSERT_NE(groups.grammar, nullptr) << groups.refusal->reason;
  EXPECT_TRUE(takes(groups, {0}));
  Compiled rules = compile_quickly(chain(5000, "", ""));
  ASSERT_NE(rules.grammar, nullptr) << rules.refusal->reason;
  EXPECT_TRUE(takes(rules, {0}));
  EXPECT_FALSE(takes(rules, {0, 0}));
  Compiled left = compile_quickly("root ::= root \"a\" | \"b\"");
  ASSERT_NE(left.grammar, nullptr) << left.refusal->reason;
  for (const auto& good : {std::vector<int32_t>{1}, {1, 0}, {1, 0, 0}}) EXPECT_TRUE(takes(left, good));
  for (const auto& bad : {std::vector<int32_t>{0}, {0, 1}}) EXPECT_FALSE(takes(left, bad));
  Compiled loop = compile_quickly("root ::= (\"a\"*)* \"b\"");
  ASSERT_NE(loop.grammar, nullptr) << loop.refusal->reason;
  for (const auto& good : {std::vector<int32_t>{1}, {0, 1}, {0, 0, 0, 1}}) EXPECT_TRUE(takes(loop, good));
  // Others of the kind: an answer, whatever it is.
  for (const std::string& source :
       {nested_groups(60'000, "(\"a\" | ", "\"b\"", " \"b\")"), nested_groups(60'000, "(", "\"b\"", ")*"),
        nested_groups(60'000, "(", "root | \"b\"", ")*"), nested_groups(20'000, "(\"a\" root | ", "\"b\"", ")?"),
        nested_groups(30'000, "(", "\"b\" | root", "){0,9}"), nested_groups(60'000, "(", "", ""),
        chain(5000, "\"a\" ", ""), chain(5000, "", " \"b\""), chain(5000, "\"a\"? ", " \"b\"*"), chain(5000, "(", ")*"),
        chain(30, "r0? ", " r0"), chain(5000, "", " | r0 \"b\""), chain(5000, "", " | r0 r1"),
        std::string("root ::= root root | \"a\" | \"\"")}) {
    const Compiled compiled = compile_quickly(source);
    EXPECT_TRUE(compiled.grammar != nullptr || compiled.refusal.has_value());
    if (compiled.grammar == nullptr) continue;
    Matcher matcher(compiled.grammar);
    for (int i = 0; i < 20 && !matcher.mask().empty(); ++i)
      if (!matcher.advance(i % 2)) matcher.advance(1 - i % 2);
  }
  // Every level doubles the text.
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " \"b\" " + next + "\n";
  }
  const Compiled doubled = compile_quickly(doubling + "r60 ::= \"a\"");
  ASSERT_NE(doubled.grammar, nullptr) << doubled.refusal->reason;
  EXPECT_EQ(Matcher(doubled.grammar).shortest_completion(), int64_t{1} << 60);
}

TEST(Ebnf, HostileShapesAreAnsweredOnASmallStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    hostile_shapes();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Ebnf, AmbiguousTextsStayPolynomial) {
  auto machine = make("root ::= root root | root root root | \"a\"");
  ASSERT_TRUE(machine.ok());
  Fuel fuel(50'000'000, kLong);
  (*machine)->set_fuel(&fuel);
  EXPECT_TRUE(accepts(**machine, std::string(200, 'a')));
  EXPECT_FALSE(fuel.empty());
  Fuel little(1000, kLong);
  (*machine)->set_fuel(&little);
  EXPECT_FALSE(accepts(**machine, std::string(500, 'a')));
  EXPECT_NE((*machine)->failure(), "");
}

// -- JSON

constexpr std::string_view kJson = R"(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
)";

TEST(Ebnf, TakesAJsonGrammar) {
  expect_texts(kJson,
               {"{}", "{\"a\": 1}", R"({"a":[1,-2.5e+3,"x\n\u00e9",{"b":null}],"c":true} )", "{\n  \"k\": [ ]\n}",
                "{\"漢\":\"😀\"}"},
               {"", "[]", "{\"a\":}", "{\"a\":1,}", "{\"a\":01}", "{'a':1}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}",
                "{\"a\":1}}", "{\"a\":tru}", "{\"a\":[1,]}", "{\"\x80\":1}"});
  const auto machine = make(kJson);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ((*machine)->distance(run(**machine, R"({"a":[[{"b":")")), 5);
  EXPECT_EQ((*machine)->distance(run(**machine, R"({"a)")), 4);  // ":0}
  EXPECT_EQ(run(**machine, R"({"a":[1,2,{"x":[]},3,)"), run(**machine, R"({"b":[)"
                                                                       "\"z\","));
}

// -- masks

void expect_masks(const std::string& grammar, Random& random) {
  std::vector<std::string> tokens = {"a", "b"};
  for (int i = 0; i < 24; ++i) {
    std::string token;
    for (int n = 1 + random.below(5); n > 0; --n)
      token += random.below(8) == 0 ? "\xC3\xA9" : random.below(2) == 0 ? "a" : "b";
    tokens.push_back(token);
  }
  const auto n_head = static_cast<int32_t>(tokens.size() + 1);
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  const std::vector<int32_t> ends = {n_head - 1};
  Constraint constraint;
  constraint.kind = Constraint::Kind::kEbnf;
  constraint.source = grammar;
  const Compiled compiled = compile(*Vocabulary::build(views, ends, n_head), constraint);
  const auto plain = make(grammar);
  ASSERT_EQ(compiled.grammar != nullptr, plain.ok());
  if (!plain) return;
  for (int walk = 0; walk < 4; ++walk) {
    Matcher matcher(compiled.grammar);
    std::string text;
    for (int step = 0; step < 6; ++step) {
      const Mask mask = matcher.mask();
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token < n_head - 1; ++token) {
        const bool expected = run(**plain, text + tokens[static_cast<size_t>(token)]) != kDead;
        ASSERT_EQ(mask.allows(token), expected) << grammar << text << " + " << tokens[static_cast<size_t>(token)];
        if (expected) allowed.push_back(token);
      }
      ASSERT_EQ(mask.allows(n_head - 1), accepts(**plain, text)) << grammar << text;
      if (allowed.empty()) break;
      const int32_t token = allowed[static_cast<size_t>(random.below(static_cast<int>(allowed.size())))];
      ASSERT_TRUE(matcher.advance(token));
      text += tokens[static_cast<size_t>(token)];
    }
  }
}

TEST(Ebnf, MasksAreWhatTheMachineTakesTokenByToken) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    Rules rules = random_rules(random);
    expect_masks(spell(rules), random);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Ebnf, CompileRefusesByName) {
  const Compiled compiled = compile_quickly("root ::= missing");
  ASSERT_TRUE(compiled.refusal.has_value());
  EXPECT_EQ(compiled.refusal->keyword, "ebnf");
  EXPECT_EQ(compiled.refusal->pointer, "");
  EXPECT_EQ(compiled.refusal->reason, "line 1, column 10: there is no rule \"missing\"");
}

}  // namespace
}  // namespace deepinfer::grammar
