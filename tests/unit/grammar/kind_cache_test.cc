// The cache of string kinds, and masks that come out of it: warm, cold and dropped they are what the matcher takes.
#include "grammar/kind_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace deepinfer::grammar {
namespace {

KindKey key(uint64_t number, uint32_t question = 0) { return {.kind = {number, ~number}, .question = question}; }

TEST(KindCache, TheFirstFactStays) {
  KindCache cache;
  EXPECT_EQ(cache.find<int>(key(1)), nullptr);
  const auto first = std::make_shared<const int>(1), second = std::make_shared<const int>(2);
  EXPECT_EQ(cache.keep(key(1), first, 8), first);
  EXPECT_EQ(cache.keep(key(1), second, 8), first);
  EXPECT_EQ(cache.find<int>(key(1)), first);
  EXPECT_EQ(cache.find<int>(key(1, 1)), nullptr);
  EXPECT_EQ(cache.find<int>({.kind = key(1).kind, .machine = 1}), nullptr);
  EXPECT_EQ(cache.find<int>({.kind = key(1).kind, .n_chars = 1}), nullptr);
  EXPECT_EQ(cache.stats().n_kept, 1);
}

TEST(KindCache, DropsWhatWasNotAskedForLongest) {
  KindCache cache(3000);
  const auto fact = std::make_shared<const int>(1);
  for (uint64_t i = 0; i < 3; ++i) cache.keep(key(i), fact, 700);
  EXPECT_NE(cache.find<int>(key(0)), nullptr);
  cache.keep(key(3), fact, 700);
  EXPECT_EQ(cache.find<int>(key(1)), nullptr);
  EXPECT_NE(cache.find<int>(key(0)), nullptr);
  EXPECT_LE(cache.stats().n_bytes, 3000);
  cache.keep(key(4), fact, 1 << 20);  // too large to be kept at all
  EXPECT_EQ(cache.stats().n_facts, 0);
  EXPECT_EQ(cache.stats().n_bytes, 0);
  EXPECT_EQ(*fact, 1);
}

// -- masks

constexpr int32_t kEnd = 0;

/// Words, blanks, characters of all lengths, cut ones, what is no character, quotes, escapes, and equal tokens.
const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = [] {
    std::vector<std::string> all = {"",       "\"",    "\"}", "\",\"", "a\"",  "7\"",  "{\"",  "a\":\"",
                                    "b\":\"", "\":\"", "\\n", "\\\"",  "a\\n", "z\\/", "\\u00"};
    for (int byte = 0x20; byte < 0x100; ++byte) all.emplace_back(1, static_cast<char>(byte));
    const std::vector<std::string> pieces = {"a",      "b",      "g",      "z", "A",          "Z",      "0",
                                             "7",      " ",      ".",      "-", "\u00E9",     "\u00A0", "\u3000",
                                             "\u3001", "\u4E2D", "\u5B57", "@", "\U0001F600", "\uFEFF"};
    std::mt19937 random(3);
    for (int i = 0; i < 1500; ++i) {
      std::string word = random() % 3 == 0 ? " " : "";
      const size_t n = 1 + random() % 5, first = random() % pieces.size();
      for (size_t k = 0; k < n; ++k) word += pieces[random() % 2 == 0 ? first : random() % pieces.size()];
      if (random() % 8 == 0) word.pop_back();
      if (random() % 40 == 0) word += '\xBF';
      if (!word.empty()) all.push_back(word);
      if (random() % 60 == 0) all.push_back(all.back());
    }
    return all;
  }();
  return kWords;
}

std::shared_ptr<const Vocabulary> vocabulary(int64_t n_kind_bytes_max = KindCache::kBytesMax) {
  const std::vector<std::string_view> views(words().begin(), words().end());
  const std::vector<int32_t> ends = {kEnd};
  return *Vocabulary::build(views, ends, static_cast<int32_t>(views.size()), n_kind_bytes_max);
}

std::shared_ptr<CompiledGrammar> grammar(const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& schema,
                                         Escapes escapes = Escapes::kNeeded) {
  Constraint constraint;
  constraint.kind = Constraint::Kind::kJsonSchema;
  constraint.source = schema;
  constraint.schema.escapes = escapes;
  return compile(vocabulary, constraint).grammar;
}

using Tokens = std::vector<int32_t>;

Tokens taken(const Matcher& matcher) {
  Tokens tokens;
  for (int32_t token = 1; token < static_cast<int32_t>(words().size()); ++token)
    if (matcher.fork().advance(token)) tokens.push_back(token);
  return tokens;
}

Tokens allowed(const Matcher& matcher) {
  Tokens tokens;
  const Mask mask = matcher.mask();
  for (int32_t token = 1; token < static_cast<int32_t>(words().size()); ++token)
    if (mask.allows(token)) tokens.push_back(token);
  return tokens;
}

/// The masks along a few walks; the walks hang on the masks only. check: they are what the matcher takes.
std::vector<Tokens> walk(const std::shared_ptr<CompiledGrammar>& grammar, bool check) {
  std::vector<Tokens> masks;
  std::mt19937 random(11);
  for (int i = 0; i < 6; ++i) {
    Matcher matcher(grammar);
    for (const char c : std::string_view("{\"a\":\""))
      EXPECT_TRUE(
          matcher.advance(1 + static_cast<int32_t>(std::find(words().begin() + 1, words().end(), std::string(1, c)) -
                                                   words().begin() - 1)));
    for (int k = 0; k < 8; ++k) {
      masks.push_back(allowed(matcher));
      if (check) EXPECT_EQ(masks.back(), taken(matcher));
      if (masks.back().empty() || !matcher.advance(masks.back()[random() % masks.back().size()])) break;
    }
  }
  return masks;
}

std::string schema_of(const std::string& string) {
  return R"({"properties":{"a":)" + string + R"(},"required":["a"]})";
}

const std::vector<std::string>& schemas() {
  static const std::vector<std::string> kSchemas = [] {
    std::vector<std::string> all;
    for (const char* string : {R"({"type":"string","pattern":"^[a-z0-9]+$"})",
                               R"({"type":"string","pattern":"^[^@\\s]+@[^@\\s]+$"})",
                               R"({"type":"string","pattern":"^(?:\\S+\\s+){0,9}\\S+$"})",
                               R"({"type":"string","pattern":"^(?:\\S+\\s+){0,9}\\S+$","maxLength":40})",
                               R"({"type":"string","pattern":"^[\\s\\w]*$"})",
                               R"({"type":"string","pattern":"^[^\\u3000]*$"})",
                               R"({"type":"string","pattern":"^[^\\u3001]*$"})",
                               R"({"type":"string","pattern":"^[^\\u4E2D]{2,30}$"})",
                               R"({"type":"string","pattern":"^[\\u0080-\\uFFFF]*$"})",
                               R"({"type":"string","pattern":"^[^\\uFEFF]*7$"})",
                               R"({"type":"string","pattern":"^[^-]*\\.gaz$"})",
                               R"({"type":"string","pattern":"ab|\\n"})",
                               R"({"type":"string","pattern":"^[a\\n]*$"})",
                               R"({"type":"string","pattern":"^[^z]{3,9}$"})",
                               R"({"type":"string","pattern":"^(?:[abg]*|[abg]*\\n[abg]{3,5})$","minLength":9})",
                               R"({"type":"string","format":"date-time"})",
                               R"({"type":"string","format":"email","maxLength":20})",
                               R"({"type":"string","format":"uri"})",
                               R"({"enum":["a","ab","abg","\u4E2D\u5B57"]})",
                               R"({"type":"string","minLength":2,"maxLength":5})"})
      all.push_back(schema_of(string));
    return all;
  }();
  return kSchemas;
}

TEST(KindCache, MasksAreTheSameWarmColdAndDropped) {
  const auto warm = vocabulary(), tiny = vocabulary(20'000), none = vocabulary(0);
  for (const Escapes escapes : {Escapes::kNeeded, Escapes::kAny}) {
    std::vector<std::vector<Tokens>> cold;
    for (const std::string& schema : schemas()) {
      SCOPED_TRACE(schema);
      cold.push_back(walk(grammar(vocabulary(), schema, escapes), true));
      EXPECT_EQ(walk(grammar(none, schema, escapes), false), cold.back());
    }
    for (int round = 0; round < 2; ++round)
      for (size_t i = 0; i < schemas().size(); ++i) {
        SCOPED_TRACE(schemas()[i]);
        EXPECT_EQ(walk(grammar(warm, schemas()[i], escapes), false), cold[i]);
        EXPECT_EQ(walk(grammar(tiny, schemas()[i], escapes), false), cold[i]);
      }
  }
  EXPECT_GT(warm->kinds().stats().n_hits, 100);
  EXPECT_EQ(warm->kinds().stats().n_dropped, 0);
  EXPECT_GT(tiny->kinds().stats().n_dropped, 100);
  EXPECT_LE(tiny->kinds().stats().n_bytes, 20'000);
  EXPECT_EQ(none->kinds().stats().n_facts, 0);
}

TEST(KindCache, GrammarsShareAPatternHoweverItIsSpelled) {
  const auto shared = vocabulary();
  const std::vector<Tokens> masks =
      walk(grammar(shared, schema_of(R"({"type":"string","pattern":"^[a-z]+\\.[0-9]{2}$"})")), true);
  const int64_t n_kept = shared->kinds().stats().n_kept;
  EXPECT_GT(n_kept, 0);
  for (const char* spelled : {R"({"type":"string","pattern":"^[b-za]+?[.](?:\\d{2})$"})", R"({"$ref":"#/$defs/x"})",
                              R"({"allOf":[{"type":"string"},{"pattern":"^(?:[a-z][a-z]*)\\u002E[0-9]{2,2}$"}]})"}) {
    std::string schema = schema_of(spelled);
    schema.insert(schema.size() - 1, R"(,"$defs":{"x":{"type":"string","pattern":"^[a-z]+\\.[0-9]{2}$"}})");
    const std::vector<Tokens> again = walk(grammar(shared, schema), false);
    EXPECT_EQ(again, masks) << spelled;
    EXPECT_EQ(shared->kinds().stats().n_kept, n_kept) << spelled;
  }
  (void)walk(grammar(shared, schema_of(R"({"type":"string","pattern":"^[a-z]+\\.[0-9]{3}$"})")), true);
  EXPECT_GT(shared->kinds().stats().n_kept, n_kept);
}

TEST(KindCache, LeastAndLargestLengthsDoNotShareEscapes) {
  // Behind the pattern anything may follow; when it is long enough, with escapes that are not needed.
  std::vector<std::string> limits = {R"("minLength":2)", R"("maxLength":90)", R"("minLength":4)",
                                     R"("minLength":3,"maxLength":90)"};
  for (int order = 0; order < 2; ++order) {
    const auto shared = vocabulary();
    for (const std::string& limit : limits) {
      SCOPED_TRACE(limit);
      Matcher matcher(grammar(shared, schema_of(R"({"type":"string","pattern":"^a",)" + limit + "}")));
      for (const char* bytes : {"{", "\"", "a", "\"", ":", "\"", "a"}) {
        const auto token = std::find(words().begin() + 1, words().end(), bytes) - words().begin();
        ASSERT_TRUE(matcher.advance(static_cast<int32_t>(token)));
      }
      EXPECT_EQ(allowed(matcher), taken(matcher));
    }
    std::reverse(limits.begin(), limits.end());
  }
}

TEST(KindCache, MachinesThatEscapeOtherwiseDoNotShare) {
  const std::string schema = schema_of(R"({"type":"string","pattern":"^[a\\n]*$"})");
  for (const bool any_first : {true, false}) {
    const auto shared = vocabulary();
    const Escapes first = any_first ? Escapes::kAny : Escapes::kNeeded;
    const Escapes second = any_first ? Escapes::kNeeded : Escapes::kAny;
    const auto masks = walk(grammar(shared, schema, first), true);
    EXPECT_NE(walk(grammar(shared, schema, second), true), masks);
  }
}

TEST(KindCache, BytesOfAGrammarDoNotHangOnWhatIsShared) {
  const auto shared = vocabulary(), none = vocabulary(0);
  const std::string schema = schemas()[7];
  const auto a = grammar(shared, schema), b = grammar(none, schema);
  for (int i = 0; i < 4; ++i) {  // bytes are looked at now and then
    (void)walk(a, false);
    (void)walk(b, false);
  }
  EXPECT_EQ(a->n_bytes(), b->n_bytes());  // else its budget would hang on what others asked
  EXPECT_GT(shared->n_bytes(), none->n_bytes());
}

TEST(KindCache, ThreadsShare) {
  constexpr size_t kThreads = 4;
  std::vector<std::vector<Tokens>> expected;
  for (const std::string& schema : schemas()) expected.push_back(walk(grammar(vocabulary(), schema), false));
  for (const int64_t n_bytes_max : {KindCache::kBytesMax, int64_t{20'000}}) {
    const auto shared = vocabulary(n_bytes_max);
    std::atomic<int> n_wrong = 0;
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (size_t k = 0; k < schemas().size(); ++k) {
          const size_t i = (t % 2 == 0 ? k : schemas().size() - 1 - k);
          if (walk(grammar(shared, schemas()[i]), false) != expected[i]) ++n_wrong;
        }
      });
    threads.clear();
    EXPECT_EQ(n_wrong, 0);
    if (n_bytes_max == KindCache::kBytesMax) EXPECT_GT(shared->kinds().stats().n_hits, 0);
  }
}

}  // namespace
}  // namespace deepinfer::grammar
