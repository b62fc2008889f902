#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "tests/unit/grammar/toy_machines.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kEnd = 0, kThinkEnd = 1;

std::shared_ptr<const Vocabulary> vocabulary() {
  // 0: end of text, 1: end of thinking; both special.
  static const std::vector<std::string> kTokens = {"",      "",  "{",   "}",    "[",  "]",   "\"",  "a",
                                                   "b",     ":", ",",   "1",    "23", "\"a", "\":", "{\"",
                                                   "\",\"", "é", "\\n", "true", "tr", "ue"};
  const std::vector<std::string_view> views(kTokens.begin(), kTokens.end());
  const std::vector<int32_t> ends = {kEnd};
  return *Vocabulary::build(views, ends, 24);
}

std::shared_ptr<CompiledGrammar> json_grammar(const GrammarBudget& budget = {}) {
  const auto make = [] { return std::make_unique<toy::Json>(toy::JsonRules{}); };
  return std::make_shared<CompiledGrammar>(vocabulary(), make(), make, budget);
}

std::vector<bool> bits(const Mask& mask) {
  std::vector<bool> out;
  for (int32_t token = 0; token < 24; ++token) out.push_back(mask.allows(token));
  return out;
}

std::vector<int32_t> allowed(const Mask& mask) {
  std::vector<int32_t> out;
  for (int32_t token = 0; token < 24; ++token)
    if (mask.allows(token)) out.push_back(token);
  return out;
}

/// Everything a matcher tells.
void expect_same(const Matcher& a, const Matcher& b) {
  ASSERT_EQ(bits(a.mask()), bits(b.mask()));
  ASSERT_EQ(a.complete(), b.complete());
  ASSERT_EQ(a.ended(), b.ended());
  ASSERT_EQ(a.is_free(), b.is_free());
  ASSERT_EQ(a.n_tokens(), b.n_tokens());
  ASSERT_EQ(a.forced_bytes(), b.forced_bytes());
  ASSERT_EQ(a.shortest_completion(), b.shortest_completion());
}

TEST(Matcher, AdvanceTakesExactlyTheMask) {
  const auto grammar = json_grammar();
  std::mt19937_64 random(1);
  for (int walk = 0; walk < 50; ++walk) {
    Matcher matcher(grammar);
    for (int n = 0; n < 25; ++n) {
      const Mask mask = matcher.mask();
      for (int32_t token = -1; token < 26; ++token) {
        Matcher fork = matcher.fork();
        ASSERT_EQ(fork.advance(token), token >= 0 && token < 24 && mask.allows(token)) << token;
      }
      ASSERT_EQ(mask.allows(kEnd), matcher.complete());
      const auto next = allowed(mask);
      ASSERT_FALSE(next.empty());
      ASSERT_TRUE(matcher.advance(next[random() % next.size()]));
    }
  }
}

TEST(Matcher, ForksAndRollBacksEqualReplay) {
  const auto grammar = json_grammar();
  for (const int32_t starts_after : {-1, kThinkEnd}) {
    std::mt19937_64 random(2);
    Matcher matcher(grammar, {.starts_after = starts_after});
    std::vector<int32_t> tokens;
    std::vector<std::pair<Matcher, std::vector<int32_t>>> forks;
    for (int n = 0; n < 3000; ++n) {
      const uint64_t what = random() % 10;
      if (what < 6) {
        auto next = allowed(matcher.mask());
        if (next.empty()) continue;
        const int32_t token = matcher.is_free() && random() % 4 == 0 ? kThinkEnd : next[random() % next.size()];
        ASSERT_TRUE(matcher.advance(token));
        tokens.push_back(token);
      } else if (what < 8) {
        const auto n_back = static_cast<int32_t>(random() % (std::min<size_t>(tokens.size(), 6) + 1));
        matcher.roll_back(n_back);
        tokens.resize(tokens.size() - static_cast<size_t>(n_back));
      } else if (what == 8) {
        forks.emplace_back(matcher.fork(), tokens);
      } else if (!forks.empty()) {
        const size_t i = random() % forks.size();
        std::swap(matcher, forks[i].first);
        std::swap(tokens, forks[i].second);
      }
      if (tokens.size() > 40) {
        matcher.roll_back(30);
        tokens.resize(tokens.size() - 30);
      }
      if (n % 10 != 0) continue;
      Matcher replay(grammar, {.starts_after = starts_after});
      for (const int32_t token : tokens) ASSERT_TRUE(replay.advance(token));
      expect_same(matcher, replay);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Matcher, MasksAlongEqualStepping) {
  const auto grammar = json_grammar();
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    Matcher matcher(grammar, {.starts_after = round % 2 == 0 ? -1 : kThinkEnd});
    std::vector<int32_t> draft;
    Matcher at = matcher.fork();
    for (int n = 0; n < 8; ++n) {
      const auto next = allowed(at.mask());
      const bool is_wild = random() % 6 == 0;
      const auto token = is_wild                             ? static_cast<int32_t>(random() % 26) - 1
                         : at.is_free() && random() % 3 == 0 ? kThinkEnd
                                                             : next[random() % next.size()];
      draft.push_back(token);
      at.advance(token);
    }
    const auto masks = matcher.masks_along(draft);
    Matcher step = matcher.fork();
    for (size_t i = 0; i < masks.size(); ++i) {
      ASSERT_EQ(bits(masks[i]), bits(step.mask()));
      if (i == draft.size()) break;
      ASSERT_EQ(step.advance(draft[i]), i + 1 < masks.size());
    }
    ASSERT_EQ(matcher.n_tokens(), 0);
  }
}

TEST(Matcher, ThinkingEndsAnywhereInAWindow) {  // DC-10
  const auto grammar = json_grammar();
  for (size_t at = 0; at <= 5; ++at) {
    Matcher matcher(grammar, {.starts_after = kThinkEnd});
    std::vector<int32_t> window(at, 7);  // "a": free text
    window.push_back(kThinkEnd);
    window.resize(6, 2);  // "{": the object begins ...
    const auto masks = matcher.masks_along(window);
    for (size_t i = 0; i <= at; ++i) {
      EXPECT_TRUE(masks[i].allows(7));
      EXPECT_TRUE(masks[i].allows(kThinkEnd));
      EXPECT_FALSE(masks[i].allows(kEnd));
      EXPECT_FALSE(masks[i].allows(23));  // no token of the vocabulary
    }
    EXPECT_FALSE(masks[at + 1].allows(7));
    EXPECT_TRUE(masks[at + 1].allows(2));
    // ... and cannot begin again behind itself: the window is cut there.
    EXPECT_EQ(masks.size(), std::min<size_t>(at + 3, 7));
    // Roll back to before the marker: free again.
    for (size_t i = 0; i + 1 < masks.size(); ++i) ASSERT_TRUE(matcher.advance(window[i]));
    matcher.roll_back(matcher.n_tokens() - static_cast<int32_t>(at));
    EXPECT_TRUE(matcher.is_free());
    EXPECT_TRUE(matcher.advance(7));
  }
}

TEST(Matcher, EndOfTextExactlyWhenComplete) {
  Matcher matcher(json_grammar());
  EXPECT_FALSE(matcher.advance(kEnd));
  for (const int32_t token : {2, 3}) {  // {}
    EXPECT_FALSE(matcher.mask().allows(kEnd));
    ASSERT_TRUE(matcher.advance(token));
  }
  EXPECT_TRUE(matcher.complete());
  EXPECT_EQ(allowed(matcher.mask()), std::vector<int32_t>{kEnd});
  EXPECT_TRUE(matcher.advance(kEnd));
  EXPECT_TRUE(matcher.ended());
  EXPECT_EQ(allowed(matcher.mask()), std::vector<int32_t>{kEnd});
  EXPECT_FALSE(matcher.advance(2));
  EXPECT_EQ(matcher.shortest_completion(), 0);
  EXPECT_EQ(matcher.failure(), "");
  matcher.roll_back(2);
  EXPECT_FALSE(matcher.ended());
  EXPECT_TRUE(matcher.advance(3));
}

TEST(Matcher, ForcedBytesStopAtAChoiceAndAtTheEnd) {
  const std::vector<std::string> texts = {"abcde", "abcxy"};
  for (const bool tells_bytes : {false, true}) {
    const auto make = [&] { return std::make_unique<toy::Literals>(texts, tells_bytes); };
    const auto grammar = std::make_shared<CompiledGrammar>(vocabulary(), make(), make);
    Matcher matcher(grammar);
    EXPECT_EQ(matcher.forced_bytes(), "abc");
    EXPECT_EQ(matcher.forced_bytes(2), "ab");
    ASSERT_TRUE(matcher.advance(7));
    EXPECT_EQ(matcher.forced_bytes(), "bc");
  }
  const auto make = [] { return std::make_unique<toy::Literals>(std::vector<std::string>{"a", "ab"}); };
  Matcher matcher(std::make_shared<CompiledGrammar>(vocabulary(), make(), make));
  EXPECT_EQ(matcher.forced_bytes(), "a");  // then the text may end
}

TEST(Matcher, EmptyMaskHasACause) {
  const auto make = [] { return std::make_unique<toy::Literals>(std::vector<std::string>{"aq"}); };
  Matcher matcher(std::make_shared<CompiledGrammar>(vocabulary(), make(), make));
  EXPECT_EQ(matcher.failure(), "");
  ASSERT_TRUE(matcher.advance(7));
  EXPECT_TRUE(matcher.mask().empty());
  EXPECT_NE(matcher.failure().find("no token"), std::string::npos);
}

/// Any token that goes on, from the start again now and then: new states all the time.
void wander(Matcher& matcher, std::mt19937_64& random) {
  auto next = allowed(matcher.mask());
  std::erase(next, kEnd);
  if (next.empty() || matcher.n_tokens() > 30) {
    matcher.roll_back(matcher.n_tokens());
  } else {
    matcher.advance(next[random() % next.size()]);
  }
}

TEST(Matcher, NewSequencesGetFreshStatesBeyondTheBudget) {
  const auto grammar = json_grammar({.n_bytes_shared = 20'000});
  const auto first = grammar->states();
  Matcher old(grammar);
  std::mt19937_64 random(4);
  for (int n = 0; n < 20'000 && first->n_bytes() <= 20'000; ++n) wander(old, random);
  ASSERT_GT(first->n_bytes(), 20'000);
  Matcher fresh(grammar);
  EXPECT_NE(grammar->states(), first);
  EXPECT_LT(grammar->states()->n_bytes(), 20'000);
  EXPECT_GT(grammar->n_bytes(), first->n_bytes());
  for (int n = 0; n < 100; ++n) {  // both go on
    wander(old, random);
    wander(fresh, random);
  }
  EXPECT_EQ(old.failure(), "");
  EXPECT_EQ(fresh.failure(), "");
}

TEST(Matcher, StatesBeyondTheLimitFailByName) {
  const auto grammar = json_grammar({.n_bytes_shared = 1'000'000'000, .n_bytes_max = 20'000});
  Matcher matcher(grammar);
  std::mt19937_64 random(4);
  for (int n = 0; n < 20'000 && matcher.failure().empty(); ++n) wander(matcher, random);
  EXPECT_TRUE(matcher.mask().empty());
  EXPECT_FALSE(matcher.advance(2));
  EXPECT_NE(matcher.failure().find("limit is 20000"), std::string::npos) << matcher.failure();
  // A new sequence starts afresh.
  EXPECT_FALSE(Matcher(grammar).mask().empty());
}

TEST(Matcher, LongListsEndWithoutRecursion) {
  Matcher matcher(json_grammar());
  ASSERT_TRUE(matcher.advance(6));
  for (int i = 0; i < 1'000'000; ++i) ASSERT_TRUE(matcher.advance(7));
  std::thread([moved = std::move(matcher)]() mutable { moved.roll_back(10); }).join();
}

TEST(Matcher, ThreadsShareAGrammar) {
  const auto grammar = json_grammar({.n_bytes_shared = 60'000});
  std::vector<std::jthread> threads;
  Matcher shared(grammar);
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&grammar, t, fork = shared.fork()]() mutable {
      std::mt19937_64 random(t);
      for (int walk = 0; walk < 30; ++walk) {
        Matcher matcher = walk % 2 == 0 ? Matcher(grammar) : fork.fork();
        for (int n = 0; n < 20; ++n) {
          const auto next = allowed(matcher.mask());
          ASSERT_FALSE(next.empty());
          ASSERT_TRUE(matcher.advance(next[random() % next.size()]));
        }
        fork = matcher.fork();
        fork.roll_back(matcher.n_tokens());
      }
    });
}

}  // namespace
}  // namespace deepinfer::grammar
