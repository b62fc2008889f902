#include "grammar/regex_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {
namespace {

/// All texts over `letters` up to `n_max` bytes.
std::vector<std::string> texts(std::string_view letters, size_t n_max) {
  std::vector<std::string> all{""};
  for (size_t i = 0; i < all.size() && all[i].size() < n_max; ++i)
    for (const char c : letters) all.push_back(all[i] + c);
  return all;
}

State after(Machine& machine, const std::string& text) {
  State state = machine.start();
  for (const char c : text) state = state == kDead ? kDead : machine.step(state, static_cast<uint8_t>(c));
  return state;
}

/// `members` up to `n_max` bytes are all that the machine takes of that length; longer ones may exist.
void expect_language(Machine& machine, const std::set<std::string>& members, std::string_view letters, size_t n_max) {
  for (const std::string& text : texts(letters, n_max)) {
    const State state = after(machine, text);
    int64_t shortest = -1;
    for (const std::string& member : members)
      if (member.starts_with(text)) {
        const auto n = static_cast<int64_t>(member.size() - text.size());
        shortest = shortest < 0 ? n : std::min(shortest, n);
      }
    ASSERT_EQ(state != kDead, shortest >= 0) << text;
    if (state == kDead) continue;
    ASSERT_EQ(machine.complete(state), members.contains(text)) << text;
    ASSERT_EQ(machine.distance(state), shortest) << text;
    const auto bytes = machine.next_bytes(state);
    ASSERT_TRUE(bytes.has_value());
    for (int byte = 0; byte < 256; ++byte)
      ASSERT_EQ(bytes->contains(static_cast<uint8_t>(byte)), machine.step(state, static_cast<uint8_t>(byte)) != kDead)
          << text << " " << byte;
  }
}

TEST(ChoiceMachine, TakesExactlyTheChoices) {
  std::mt19937_64 random(1);
  const auto all = texts("abc", 5);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> choices;
    for (uint64_t n = 1 + random() % 12; n > 0; --n) choices.push_back(all[random() % all.size()]);
    const auto machine = make_choice_machine(choices);
    expect_language(*machine, {choices.begin(), choices.end()}, "abc", 5);
  }
}

TEST(ChoiceMachine, BytesAboveAscii) {
  const auto machine = make_choice_machine({"é", "漢", "a"});
  EXPECT_TRUE(machine->complete(after(*machine, "é")));
  EXPECT_TRUE(machine->complete(after(*machine, "漢")));
  EXPECT_EQ(after(*machine, "\xC3\xAA"), kDead);
  EXPECT_EQ(machine->distance(machine->start()), 1);
}

TEST(ChoiceMachine, TwentyThousandChoicesTakeLittle) {  // DC-07 (d)
  std::vector<std::string> choices;
  for (int i = 0; i < 20'000; ++i) choices.push_back("choice " + std::to_string(i * 7919));
  const auto machine = make_choice_machine(choices);
  for (const std::string& choice : choices) ASSERT_TRUE(machine->complete(after(*machine, choice)));
  EXPECT_LT(machine->n_bytes(), 40 << 20);
}

std::shared_ptr<const Vocabulary> letters() {
  const std::vector<std::string_view> tokens = {"", "a", "b", "ab", "c", "abc"};
  const std::vector<int32_t> ends = {0};
  return *Vocabulary::build(tokens, ends, 6);
}

Compiled compile_regex(const std::string& pattern) {
  Constraint constraint;
  constraint.kind = Constraint::Kind::kRegex;
  constraint.source = pattern;
  return compile(letters(), constraint);
}

TEST(Compile, RegexIsAMatchOfTheWhole) {
  const Compiled compiled = compile_regex("a(b|c)*");
  ASSERT_FALSE(compiled.refusal) << compiled.refusal->reason;
  Matcher matcher(compiled.grammar);
  EXPECT_FALSE(matcher.advance(2));
  ASSERT_TRUE(matcher.advance(3));
  EXPECT_TRUE(matcher.complete());
  EXPECT_FALSE(matcher.advance(1));
  ASSERT_TRUE(matcher.advance(4));
  EXPECT_TRUE(matcher.advance(0));
}

TEST(Compile, RefusesByName) {
  EXPECT_EQ(compile_regex("(a").refusal->keyword, "regex");
  EXPECT_EQ(compile_regex("[^\\s\\S]").refusal->reason, "no text matches the pattern");
  Constraint constraint;
  constraint.kind = Constraint::Kind::kChoice;
  EXPECT_EQ(compile(letters(), constraint).refusal->keyword, "choice");
  constraint.choices = {"\xFF"};
  EXPECT_EQ(compile(letters(), constraint).refusal->keyword, "choice");
  constraint.choices = {"a", "abc"};
  EXPECT_FALSE(compile(letters(), constraint).refusal);
  constraint.kind = Constraint::Kind::kJsonSchema;
  constraint.source = "false";
  EXPECT_TRUE(compile(letters(), constraint).refusal);
  constraint.source = std::string(size_t{5} << 20, ' ');
  EXPECT_NE(compile(letters(), constraint).refusal->reason.find("limit"), std::string::npos);
}

TEST(Compile, ExponentialPatternsAnswerInTime) {  // DC-07 (a)
  const auto begin = std::chrono::steady_clock::now();
  const Compiled compiled = compile_regex("(a|b)*a(a|b){24}");
  if (!compiled.refusal) {
    Matcher matcher(compiled.grammar);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(matcher.advance(1 + i % 2));
    EXPECT_EQ(matcher.failure(), "");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

}  // namespace
}  // namespace deepinfer::grammar
