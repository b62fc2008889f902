#include "grammar/grammar_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "tests/unit/grammar/toy_machines.h"

namespace deepinfer::grammar {
namespace {

using namespace std::chrono_literals;
using Clock = GrammarCache::Clock;

Constraint schema(const std::string& source) {
  Constraint constraint;
  constraint.kind = Constraint::Kind::kJsonSchema;
  constraint.source = source;
  return constraint;
}

Constraint regex(const std::string& source) {
  Constraint constraint;
  constraint.kind = Constraint::Kind::kRegex;
  constraint.source = source;
  return constraint;
}

GrammarCacheOptions threads(int32_t n) {
  GrammarCacheOptions options;
  options.n_threads = n;
  return options;
}

GrammarCacheOptions budget(int64_t n_bytes) {
  GrammarCacheOptions options;
  options.n_bytes_max = n_bytes;
  return options;
}

/// Compiles nothing: counts, sleeps "slow" sources, refuses "bad" ones.
struct FakeCompiler {
  std::shared_ptr<const Vocabulary> vocabulary = [] {
    const std::vector<std::string_view> tokens = {"a", "b"};
    return *Vocabulary::build(tokens, {}, 2);
  }();
  std::atomic<int> n_calls{0};

  GrammarCache::Compile compile() {
    return [this](const Constraint& constraint, const CompileLimits& limits) -> Compiled {
      ++n_calls;
      if (constraint.source.find("slow") != std::string::npos) {
        std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(limits.time, 60ms));
        if (limits.time < 60ms) return {nullptr, Refusal{"", "", "takes too long"}, {}};
      }
      if (constraint.source.find("bad") != std::string::npos) return {nullptr, Refusal{"", "regex", "bad"}, {}};
      const auto make = [] { return std::make_unique<toy::Literals>(std::vector<std::string>{"a"}); };
      return {std::make_shared<CompiledGrammar>(vocabulary, make(), make), std::nullopt, {}};
    };
  }
};

TEST(GrammarCache, KeyIsTheMeaning) {
  EXPECT_EQ(canonical_key(schema(R"({"type": "string"})")), canonical_key(schema("{\n\t\"type\":\"string\"}")));
  EXPECT_NE(canonical_key(schema(R"({"const":"a b"})")), canonical_key(schema(R"({"const":"ab"})")));
  EXPECT_NE(canonical_key(schema(R"({"const":"\\\" x"})")), canonical_key(schema(R"({"const":"\\\"x"})")));
  EXPECT_NE(canonical_key(schema(R"({"a":1,"b":2})")), canonical_key(schema(R"({"b":2,"a":1})")));
  EXPECT_NE(canonical_key(schema("tr ue")), canonical_key(schema("true")));  // no JSON: not touched
  EXPECT_NE(canonical_key(schema("1 2")), canonical_key(schema("12")));
  EXPECT_NE(canonical_key(regex("a b")), canonical_key(regex("ab")));
  EXPECT_NE(canonical_key(regex("true")), canonical_key(schema("true")));
  Constraint annotate = schema("true");
  annotate.schema.formats = FormatPolicy::kAnnotate;
  EXPECT_NE(canonical_key(annotate), canonical_key(schema("true")));
  Constraint blanks = schema("true");
  blanks.schema.blanks_max = 1;
  EXPECT_NE(canonical_key(blanks), canonical_key(schema("true")));
  Constraint order = schema("true"), escapes = schema("true"), dialect = schema("true");
  order.schema.order = PropertyOrder::kAny;
  escapes.schema.escapes = Escapes::kAny;
  dialect.schema.dialect = Dialect::kDraft7;
  for (const Constraint& different : {order, escapes, dialect})
    EXPECT_NE(canonical_key(different), canonical_key(schema("true")));
  Constraint one, other;
  one.kind = other.kind = Constraint::Kind::kChoice;
  one.choices = {"ab", "c"};
  other.choices = {"a", "bc"};
  EXPECT_NE(canonical_key(one), canonical_key(other));
  Constraint object;
  object.source = "whatever";
  EXPECT_EQ(canonical_key(object), canonical_key(Constraint{}));
}

TEST(GrammarCache, CompilesOnceAndRemembersRefusals) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), {});
  const Compiled first = cache.compile(regex("x"));
  EXPECT_EQ(cache.compile(regex("x")).grammar, first.grammar);
  EXPECT_EQ(fake.n_calls, 1);
  EXPECT_EQ(cache.compile(regex("bad")).refusal->reason, "bad");
  EXPECT_EQ(cache.compile(regex("bad")).refusal->keyword, "regex");
  EXPECT_EQ(fake.n_calls, 2);
  EXPECT_EQ(cache.stats().n_hits, 2);
}

TEST(GrammarCache, ManyWaitForOneCompilation) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), threads(2));
  std::vector<std::jthread> threads;
  std::atomic<int> n_got{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const Compiled got =
          i % 2 == 0 ? cache.compile(regex("slow")) : cache.compile_async(regex("slow"), Clock::now() + 10s).wait();
      n_got += got.grammar != nullptr;
    });
  threads.clear();
  EXPECT_EQ(n_got, 8);
  EXPECT_EQ(fake.n_calls, 1);
}

TEST(GrammarCache, DeadlineRefusesAndIsForgotten) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), threads(1));
  const auto begin = Clock::now();
  const Compiled late = cache.compile_async(regex("slow"), begin + 10ms).wait();
  ASSERT_TRUE(late.refusal);
  EXPECT_LT(Clock::now() - begin, 50ms);
  EXPECT_TRUE(cache.compile_async(regex("x"), Clock::now() - 1ms).wait().refusal);
  EXPECT_TRUE(cache.compile(regex("slow")).grammar != nullptr);
  EXPECT_TRUE(cache.compile(regex("x")).grammar != nullptr);
}

TEST(GrammarCache, SomebodyWithMoreTimeIsNotHurried) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), threads(1));
  const PendingGrammar hurried = cache.compile_async(regex("slow"), Clock::now() + 15ms);
  std::this_thread::sleep_for(5ms);
  const PendingGrammar patient = cache.compile_async(regex("slow"), Clock::now() + 10s);
  EXPECT_TRUE(hurried.wait().refusal);
  EXPECT_TRUE(patient.wait().grammar != nullptr);
}

TEST(GrammarCache, FullQueueIsAReply) {
  FakeCompiler fake;
  GrammarCacheOptions options = threads(1);
  options.n_queued_max = 2;
  GrammarCache cache(fake.compile(), options);
  std::vector<PendingGrammar> pending;
  for (int i = 0; i < 6; ++i)
    pending.push_back(cache.compile_async(regex("slow" + std::to_string(i)), Clock::now() + 10s));
  int n_refused = 0;
  for (const PendingGrammar& one : pending) n_refused += one.wait().refusal.has_value();
  EXPECT_GE(n_refused, 3);
  EXPECT_LE(n_refused, 4);
  EXPECT_TRUE(pending[0].ready());
}

TEST(GrammarCache, ShutDownRefusesWhatWaits) {
  FakeCompiler fake;
  std::vector<PendingGrammar> pending;
  {
    GrammarCache cache(fake.compile(), threads(1));
    for (int i = 0; i < 4; ++i)
      pending.push_back(cache.compile_async(regex("slow" + std::to_string(i)), Clock::now() + 10s));
  }
  for (const PendingGrammar& one : pending) {
    EXPECT_TRUE(one.ready());
    EXPECT_EQ(one.wait().grammar == nullptr, one.wait().refusal.has_value());
  }
}

TEST(GrammarCache, StaysWithinItsBudget) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), budget(200'000));
  const Compiled held = cache.compile(regex("first"));
  for (int i = 0; i < 500; ++i) cache.compile(regex(std::to_string(i)));
  EXPECT_LE(cache.stats().n_bytes, 200'000);
  EXPECT_GT(cache.stats().n_entries, 3);
  EXPECT_GT(cache.stats().n_dropped, 100);
  const int n_calls = fake.n_calls;
  EXPECT_NE(cache.compile(regex("first")).grammar, held.grammar);  // dropped here, alive there
  cache.compile(regex("499"));                                     // the last one is still there
  EXPECT_EQ(fake.n_calls, n_calls + 1);
}

TEST(GrammarCache, SlowRefusalsAreTriedAgain) {
  FakeCompiler fake;
  GrammarCacheOptions options;
  options.limits.time = 20ms;
  options.retry_after = 50ms;
  GrammarCache cache(fake.compile(), options);
  EXPECT_TRUE(cache.compile(regex("slow")).refusal);
  EXPECT_TRUE(cache.compile(regex("slow")).refusal);
  EXPECT_EQ(fake.n_calls, 1);
  std::this_thread::sleep_for(60ms);
  EXPECT_TRUE(cache.compile(regex("slow")).refusal);
  EXPECT_EQ(fake.n_calls, 2);
}

TEST(GrammarCache, ThreadsMix) {
  FakeCompiler fake;
  GrammarCache cache(fake.compile(), budget(100'000));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 200; ++i) {
        const Constraint constraint = regex((i % 7 == 0 ? "bad" : "x") + std::to_string((i * 7 + t) % 40));
        const Compiled got =
            i % 3 == 0 ? cache.compile(constraint) : cache.compile_async(constraint, Clock::now() + 10s).wait();
        ASSERT_EQ(got.grammar == nullptr, got.refusal.has_value());
        ASSERT_LE(cache.stats().n_entries, 80);
      }
    });
}

}  // namespace
}  // namespace deepinfer::grammar
