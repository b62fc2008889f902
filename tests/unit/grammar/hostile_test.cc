// Constraints that are made to hurt: whatever a client sends is answered within its limits on a small stack, and what
// it took is given back. Hostile patterns and grammars of one kind are in regex_test.cc and ebnf_test.cc.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/grammar.h"
#include "grammar/grammar_cache.h"
#include "grammar/matcher.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

using namespace std::chrono_literals;
using Clock = GrammarCache::Clock;
using Kind = Constraint::Kind;

#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsSanitized = true;
constexpr size_t kStackBytes = 2 << 20;
#else
constexpr bool kIsSanitized = false;
constexpr size_t kStackBytes = 256 << 10;
#endif

constexpr int64_t kStepsMax = 2'000'000;
constexpr double kSecondsMax = kIsSanitized ? 20 : 5;  // of the processor; the slowest takes 0.3
constexpr int64_t kMegabytesMax = 300;                 // of one compilation and a few masks

/// The end of text, then all single bytes.
std::shared_ptr<const Vocabulary> vocabulary() {
  static const std::shared_ptr<const Vocabulary> kVocabulary = [] {
    std::vector<std::string> tokens(1);
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    const std::vector<int32_t> ends = {0};
    return *Vocabulary::build(views, ends, 257);
  }();
  return kVocabulary;
}

Constraint constraint_of(Kind kind, std::string source) {
  Constraint constraint;
  constraint.kind = kind;
  constraint.source = std::move(source);
  return constraint;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int64_t peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

int64_t resident_bytes() {
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return int64_t{pages} * sysconf(_SC_PAGESIZE);
}

void on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

Compiled compile_bounded(const Constraint& constraint) {
  CompileLimits limits;
  limits.n_steps = kStepsMax;
  limits.time = 10s;  // steps decide, so that a busy machine changes nothing
  return compile(vocabulary(), constraint, limits);
}

/// An answer, and what follows it, within the limits.
void expect_answer(const std::string& name, const Constraint& constraint) {
  const double start = processor_seconds();
  const int64_t peak = peak_megabytes();
  {
    const Compiled compiled = compile_bounded(constraint);
    ASSERT_NE(compiled.grammar == nullptr, !compiled.refusal.has_value()) << name;
    if (compiled.refusal) {
      EXPECT_FALSE(compiled.refusal->reason.empty()) << name;
      EXPECT_FALSE(find_ill_formed(compiled.refusal->reason + compiled.refusal->pointer)) << name;
      EXPECT_LT(compiled.refusal->reason.size() + compiled.refusal->pointer.size(), 3000U) << name;
    } else {
      Matcher matcher(compiled.grammar);
      for (int n = 0; n < 12; ++n) {
        const Mask mask = matcher.mask();
        int32_t token = 1 + '"';  // into a string, an object, a list, where that may be
        for (const char c : std::string_view("\"{[a1:,]}")) token = mask.allows(1 + c) && n % 3 != 2 ? 1 + c : token;
        for (int32_t i = 1; i < 257 && !mask.allows(token); ++i) token = i;
        if (!matcher.advance(token)) break;
        EXPECT_GE(matcher.shortest_completion(), -1) << name;
      }
    }
  }
  EXPECT_LT(processor_seconds() - start, kSecondsMax) << name;
  if (!kIsSanitized) {
    EXPECT_LT(peak_megabytes() - peak, kMegabytesMax) << name;
  }
}

std::string repeated(std::string_view text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

std::string numbered(int n, const std::function<std::string(int)>& item, std::string_view between = ",") {
  std::string result;
  for (int i = 0; i < n; ++i) result += (i == 0 ? "" : std::string(between)) + item(i);
  return result;
}

/// Definitions 0 to n, of which each is made of a reference to the next.
std::string chain(int n, const std::function<std::string(const std::string&, int)>& link, const std::string& last) {
  const auto definition = [&](int i) {
    const std::string next = R"({"$ref":"#/$defs/)" + std::to_string(i + 1) + R"("})";
    return "\"" + std::to_string(i) + "\":" + (i == n ? last : link(next, i));
  };
  return R"({"$ref":"#/$defs/0","$defs":{)" + numbered(n + 1, definition) + "}}";
}

std::string text_of(int i) { return std::to_string(i); }

std::vector<std::pair<std::string, std::string>> hostile_schemas() {
  std::vector<std::pair<std::string, std::string>> all = {
      {"deep items", repeated(R"({"items":)", 10'000) + "{}" + repeated("}", 10'000)},
      {"deeper items", repeated(R"({"items":)", 100'000) + "{}" + repeated("}", 100'000)},
      {"deep arrays in an enum", R"({"enum":[)" + repeated("[", 100'000) + repeated("]", 100'000) + "]}"},
      {"deep arrays", repeated("[", 100'000) + repeated("]", 100'000)},
      {"unclosed objects", repeated(R"({"a":)", 100'000)},
      {"not of not", repeated(R"({"not":)", 120) + R"({"const":1})" + repeated("}", 120)},
      {"a list without an end", R"({"type":"array","minItems":1,"items":{"$ref":"#"}})"},
      {"a cycle of references", chain(
                                    20'000, [](const std::string& next, int) { return next; }, R"({"$ref":"#"})")},
      {"a long way of references", chain(
                                       20'000, [](const std::string& next, int) { return next; }, "{}")},
      {"a long way into lists",
       chain(
           10'000, [](const std::string& next, int) { return R"({"type":"array","minItems":1,"items":)" + next + "}"; },
           "{}")},
      {"an enum of texts",
       R"({"enum":[)" + numbered(100'000, [](int i) { return "\"word " + text_of(i) + "\""; }) + "]}"},
      {"an enum of integers", R"({"enum":[)" + numbered(20'000, text_of) + "]}"},
      {"an enum of arrays", R"({"enum":[)" + numbered(20'000, [](int i) { return "[" + text_of(i) + "]"; }) + "]}"},
      {"an enum of objects",
       R"({"enum":[)" + numbered(20'000, [](int i) { return R"({"a":)" + text_of(i) + "}"; }) + "]}"},
      {"numbers twice",  // a language as small as this text, and a tree of 2^40 parts
       R"({"$ref":"#/$defs/0","$defs":{)" +
           numbered(40,
                    [](int i) {
                      const std::string next = R"({"allOf":[{"$ref":"#/$defs/)" + text_of(i + 1) + R"("}],)";
                      return "\"" + text_of(i) + R"(":{"anyOf":[)" + next + R"("minimum":)" + text_of(i) + "}," + next +
                             R"("maximum":)" + text_of(1000 - i) + "}]}";
                    }) +
           R"(,"40":{"type":"number"}}})"},
      {"one of many names, many times", R"({"allOf":[)" +
                                            numbered(60,
                                                     [](int i) {
                                                       return R"({"oneOf":[)" +
                                                              numbered(60,
                                                                       [i](int k) {
                                                                         return R"({"required":["p)" + text_of(i) +
                                                                                "_" + text_of(k) + R"("]})";
                                                                       }) +
                                                              "]}";
                                                     }) +
                                            "]}"},
      {"many items", R"({"type":"array","minItems":1000000000,"items":{"minItems":1000000000,"type":"array"}})"},
      {"different booleans", R"({"type":"array","minItems":1000000000,"uniqueItems":true,"items":{"type":"boolean"}})"},
      {"different numbers",
       R"({"type":"array","minItems":2000,"uniqueItems":true,"items":{"enum":[)" + numbered(2000, text_of) + "]}}"},
      {"many names of two", R"({"type":"object","minProperties":1000000000,"propertyNames":{"pattern":"^[ab]$"}})"},
      {"many to contain", R"({"type":"array","contains":{"type":"integer"},"minContains":1000000000})"},
      {"required names",
       R"({"type":"object","required":[)" + numbered(5000, [](int i) { return "\"p" + text_of(i) + "\""; }) + "]}"},
      {"declared names", R"({"type":"object","additionalProperties":false,"properties":{)" +
                             numbered(5000, [](int i) { return "\"p" + text_of(i) + "\":{\"type\":\"integer\"}"; }) +
                             "}}"},
      {"patterns of names", R"({"type":"object","patternProperties":{)" +
                                numbered(500, [](int i) { return "\".*p" + text_of(i) + ".*\":true"; }) + "}}"},
      {"repeats of repeats", R"({"type":"string","pattern":"^(a{1,100000}){1,100000}$","minLength":2147483647})"},
      {"the longest text", R"({"type":"string","minLength":2147483647})"},
      {"multiples of primes",
       R"({"type":"integer","allOf":[)" +
           numbered(10, [](int i) { return R"({"multipleOf":)" + text_of(2 * i * i + 29) + "}"; }) + "]}"},
      {"not in ranges", R"({"type":"number","allOf":[)" +
                            numbered(200,
                                     [](int i) {
                                       return R"({"not":{"minimum":)" + text_of(i) + R"(,"maximum":)" + text_of(i) +
                                              ".25}}";
                                     }) +
                            "]}"},
      {"a long pointer", R"({"$ref":"#/)" + repeated("a/", 100'000) + "\"}"},
      {"a long way up", R"({"$ref":"http://)" + repeated("../", 100'000) + "\"}"},
      {"long ids", R"({"$defs":{)" +
                       numbered(500,
                                [](int i) {
                                  return "\"" + text_of(i) + R"(":{"$id":")" + repeated("a/../", 300) + text_of(i) +
                                         "\"}";
                                }) +
                       "}}"},
      {"a long name", R"({"type":"object","required":[")" + std::string(1'000'000, 'x') + "\"]}"},
      {"blanks", std::string(4'000'000, ' ') + "{}"},
      {"too long", R"({"description":")" + std::string(5'000'000, 'x') + "\"}"},
      {"many keys", "{" + numbered(50'000, [](int i) { return "\"k" + text_of(i) + "\":1"; }) + "}"},
      {"equal keys", "{" + numbered(50'000, [](int) { return std::string(R"("type":"string")"); }) + "}"},
      {"scopes", R"({"$id":"http://x/","$ref":"r0","$defs":{)" +
                     numbered(200,
                              [](int i) {
                                return "\"" + text_of(i) + R"(":{"$id":"r)" + text_of(i) + R"(","$dynamicAnchor":"a)" +
                                       text_of(i % 20) + R"(","items":{"$dynamicRef":"#a)" + text_of(i % 20) +
                                       R"("},"prefixItems":[{"$ref":"r)" + text_of((i + 1) % 200) + R"("},{"$ref":"r)" +
                                       text_of((i * 13 + 5) % 200) + "\"}]}";
                              }) +
                     "}}"},
  };
  for (const std::string keyword : {"allOf", "anyOf", "oneOf"}) {
    const auto twice = [&](const std::string& first, const std::string& second) {
      return [=](const std::string& next, int i) {
        const auto part = [&](const std::string& own) {
          return R"({"allOf":[)" + next + "]," + own + text_of(i) + "\"]}";
        };
        return "{\"" + keyword + "\":[" + part(first) + "," + part(second) + "]}";
      };
    };
    all.emplace_back("doubled: " + keyword, chain(30, twice(R"("required":["a)", R"("required":["b)"), "{}"));
    const auto same = [&](const std::string& next, int) { return "{\"" + keyword + "\":[" + next + "," + next + "]}"; };
    all.emplace_back("equal: " + keyword, chain(60, same, "{}"));
    const auto group = [&](int i) {
      return "{\"" + keyword + "\":[" +
             numbered(20, [i](int k) { return R"({"pattern":"^.{)" + text_of(i) + "}" + text_of(k) + "\"}"; }) + "]}";
    };
    all.emplace_back("groups: " + keyword, R"({"type":"string","allOf":[)" + numbered(20, group) + "]}");
  }
  return all;
}

TEST(Hostile, SchemasAreAnsweredOnASmallStack) {
  on_small_stack([] {
    for (const auto& [name, schema] : hostile_schemas()) expect_answer(name, constraint_of(Kind::kJsonSchema, schema));
  });
}

TEST(Hostile, ListsOfChoicesAndTagsAreAnswered) {
  on_small_stack([] {
    Constraint choices = constraint_of(Kind::kChoice, "");
    for (int i = 0; i < 100'000; ++i) choices.choices.push_back(std::string(20, 'a') + text_of(i));
    expect_answer("choices", choices);
    choices.choices.assign(200, std::string(10'000, 'a'));
    expect_answer("equal choices", choices);
    Constraint tagged = constraint_of(Kind::kTagged, "");
    const auto content = std::make_shared<Constraint>(constraint_of(Kind::kRegex, "(a|b)*a(a|b){24}"));
    for (int i = 0; i < 500; ++i) tagged.regions.push_back({"<" + text_of(i) + ">", "ab", content});
    expect_answer("tags", tagged);
    tagged.regions.assign(1000, {"<a>", "", content});
    expect_answer("equal tags", tagged);
    tagged.regions.assign(1, {std::string(100'000, 'a'), "b", content});
    expect_answer("a long tag", tagged);
  });
}

/// Numbers at the borders of what a keyword can mean: enforced, or refused by the keyword's name.
TEST(Hostile, NumbersAreEnforcedOrRefusedByName) {
  const std::string digits(1000, '9');
  const std::vector<std::pair<std::string, bool>> cases = {
      {R"({"maxLength":9223372036854775808})", true},
      {R"({"maxItems":18446744073709551616})", true},
      {R"({"maxLength":1e308})", true},
      {R"({"maxLength":0e999999999})", true},
      {R"({"minLength":9223372036854775808})", false},
      {R"({"minItems":1e300})", false},
      {R"({"minItems":1e-999999999})", false},
      {R"({"maxLength":-1})", false},
      {R"({"maxLength":1.5})", false},
      {R"({"multipleOf":0})", false},
      {R"({"multipleOf":0e99999999999999999999})", false},
      {R"({"multipleOf":1e-999999999})", false},
      {R"({"minimum":1e-999999999})", false},
      {R"({"const":1e-999999999})", false},
      {R"({"minimum":1e999999999})", false},
      {R"({"multipleOf":-1e99999999999999999999})", false},
      {R"({"minimum":)" + digits + "}", false},
      {R"({"maximum":0.)" + repeated(digits, 100) + "}", false},
  };
  for (const auto& [schema, is_accepted] : cases) {
    const Compiled compiled = compile_bounded(constraint_of(Kind::kJsonSchema, schema));
    EXPECT_EQ(compiled.grammar != nullptr, is_accepted) << schema.substr(0, 100);
    if (!compiled.refusal) continue;
    EXPECT_FALSE(compiled.refusal->reason.empty());
    EXPECT_LT(compiled.refusal->reason.size(), 500U) << schema.substr(0, 100);
  }
  for (const char* schema : {R"({"type":"number","multipleOf":1e-300})", R"({"type":"number","multipleOf":1e300})",
                             R"({"type":"integer","multipleOf":99999999999999999999999999999999999999997})",
                             R"({"type":"integer","minimum":-1e17,"maximum":1e40})", R"({"const":1e308})"})
    expect_answer(schema, constraint_of(Kind::kJsonSchema, schema));
}

TEST(Hostile, IllFormedTextsAreRefused) {
  const auto is_refused = [](Kind kind, std::string source) {
    return compile_bounded(constraint_of(kind, std::move(source))).refusal.has_value();
  };
  const std::vector<std::string> ill_formed = {"\xFF", "\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"};
  for (const std::string& bytes : ill_formed) {
    EXPECT_TRUE(is_refused(Kind::kJsonSchema, bytes));
    EXPECT_TRUE(is_refused(Kind::kJsonSchema, "{\"const\":\"" + bytes + "\"}"));
    EXPECT_TRUE(is_refused(Kind::kJsonSchema, "{\"" + bytes + "\":1}"));
    EXPECT_TRUE(is_refused(Kind::kRegex, "a" + bytes));
    EXPECT_TRUE(is_refused(Kind::kRegex, "[" + bytes + "]"));
    EXPECT_TRUE(is_refused(Kind::kEbnf, "root ::= \"" + bytes + "\""));
    EXPECT_TRUE(is_refused(Kind::kEbnf, "root ::= [" + bytes + "]"));
    Constraint choice = constraint_of(Kind::kChoice, "");
    choice.choices = {"a", bytes};
    EXPECT_TRUE(compile_bounded(choice).refusal.has_value());
  }
  using namespace std::string_literals;
  EXPECT_TRUE(is_refused(Kind::kJsonSchema, "{\"const\":\"a\0b\"}"s));
  EXPECT_TRUE(is_refused(Kind::kJsonSchema, "{}\0"s));
  EXPECT_TRUE(is_refused(Kind::kJsonSchema, R"({"const":"\ud800"})"));
  EXPECT_TRUE(is_refused(Kind::kEbnf, "root ::= \"a\"\0"s));
  // A NUL is a character like others.
  for (const auto& [kind, source] : {std::pair{Kind::kRegex, "a\0b"s}, std::pair{Kind::kEbnf, "root ::= \"a\0b\""s}}) {
    const Compiled compiled = compile_bounded(constraint_of(kind, source));
    ASSERT_TRUE(compiled.grammar) << compiled.refusal->reason;
    Matcher matcher(compiled.grammar);
    for (const char byte : "a\0b"s) EXPECT_TRUE(matcher.advance(1 + byte));
    EXPECT_TRUE(matcher.complete());
  }
}

std::string small_schema(int i) {
  return R"({"type":"object","properties":{"name)" + text_of(i) + R"(":{"type":"string","maxLength":)" +
         text_of(i + 1) + R"(},"kind":{"enum":["a","b)" + text_of(i) + R"("]},"n":{"type":"integer","minimum":)" +
         text_of(i) + R"(}},"required":["kind"],"additionalProperties":false})";
}

/// 2,000 requests, each with a schema of its own: memory stays within the cache's budget, by its own count and by the
/// system's.
TEST(Hostile, ManySchemasStayWithinTheBudgetOfTheCache) {
  GrammarCacheOptions options;
  options.n_bytes_max = int64_t{16} << 20;
  options.limits.time = 10s;
  GrammarCache cache(vocabulary(), options);
  const auto request = [&](int i) {
    const Compiled compiled =
        cache.compile_async(constraint_of(Kind::kJsonSchema, small_schema(i)), Clock::now() + 60s).wait();
    ASSERT_TRUE(compiled.grammar) << compiled.refusal->reason;
    Matcher matcher(compiled.grammar);
    for (const char c : R"({"kind":"a","n":)" + text_of(i) + "}") {
      ASSERT_FALSE(matcher.mask().empty());
      ASSERT_TRUE(matcher.advance(1 + c)) << i << c;
    }
    ASSERT_TRUE(matcher.complete());
  };
  for (int i = 0; i < 50; ++i) request(i);
  const int64_t before = resident_bytes();
  for (int i = 50; i < 2000; ++i) {
    request(i);
    // What is in use grows until the next one comes.
    ASSERT_LE(cache.stats().n_bytes, options.n_bytes_max + (256 << 10)) << i;
  }
  EXPECT_EQ(cache.stats().n_compiled, 2000);
  EXPECT_GT(cache.stats().n_dropped, 0);
  if (!kIsSanitized) {
    EXPECT_LT(resident_bytes() - before, 2 * options.n_bytes_max);
  }
}

/// Whoever waits is free at the deadline, and the threads are soon after.
TEST(Hostile, LateCompilationsGiveTheProcessorBack) {
  GrammarCache cache(vocabulary(), {});
  const std::string slow = "(?=(.{7})*$)(?=(.{11})*$)(?=(.{13})*$)(?=(.{17})*$)(?=(.{19})*$)(?=(.{23})*$).+";
  std::vector<PendingGrammar> pending;
  const auto begin = Clock::now();
  for (int i = 0; i < 6; ++i)
    pending.push_back(cache.compile_async(constraint_of(Kind::kRegex, slow + text_of(i)), begin + 30ms));
  for (const PendingGrammar& one : pending) EXPECT_TRUE(one.wait().refusal.has_value());
  EXPECT_LT(Clock::now() - begin, 1s);
  std::this_thread::sleep_for(400ms);  // what had begun has the limit of a compilation, 250 ms
  const double before = processor_seconds();
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(processor_seconds() - before, 0.02);
}

}  // namespace
}  // namespace deepinfer::grammar
