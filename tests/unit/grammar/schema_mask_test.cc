// Masks of real schemas: over random walks on one grammar, the mask is what advance() takes, whatever was asked before.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/fuel.h"
#include "grammar/grammar.h"
#include "grammar/language.h"
#include "grammar/matcher.h"
#include "grammar/schema_machine.h"
#include "grammar/schema_reader.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kEnd = 0;

/// With the token "1,", in which a number ends, numbers are walked; without it they are put together.
std::shared_ptr<const Vocabulary> vocabulary(bool ends_numbers) {
  static const std::vector<std::string> kTokens = [] {
    std::vector<std::string> tokens = {""};
    for (int byte = 0x20; byte < 0x7F; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* bytes :
         {"\n",         "\t",         "é",       "\xC3",     "\xA9",     "\",",       "\",\"",     "\":",
          "\":\"",      "\":{\"",     "\":[\"",  "\"}",      "\"]",      "\"},",      "{\"",       "[\"",
          "{\"a",       "\"b\":",     "\"a\"",   "a\":1,",   "a\",",     "\",1",      "\",t",      "\",n",
          "null",       "true",       "false",   "tru",      ",\"b",     "[1,",       "[[",        "]]",
          "}}",         "}]",         "12",      "\\n",      "\\u00",    "\\\"",      "\\u0061",   "\\\\",
          "ab",         "abc",        "bc\":",   "b\",\"",   "a\":2,\"", "x\":",      "  ",        "\n\n",
          "\": ",       "\": \"",     ".0",      "e1",       "-1",       "[]",        "{}",        "\":{}",
          "\":[]",      "\":1,\"b",   "\"\"",    "\\u",      "\\u00e",   "\\ud83d",   "\\ud83d\\", "a\\",
          "\\n\":",     "\\\"\"",     "\\/a",    "a\\/",     "<\\/b",    "ab\\u0061", "é\"",       "\xF0\x9F",
          "\x98\x80",   ",\"é",       "\"é\",",  "\"},{\"",  "\"}]",     "b\"},",     "\n  ",      "\n}",
          " ]",         " \"a",       "\t\t1",   "00",       "007",      "\":1}",     "\":{},",    "\":null,",
          "\":true}",   "\":\"\",",   "\":[]}",  "\":\"a\"", ",\"a\":1", " null",     " {\"",      "\n[",
          " -1",        " }",         ", \"b\"", " : ",      "\");",     "\":12,\"a", "{}]",       "[],",
          "{\"a\":{\"", "\":false}}", "1,"})
      tokens.emplace_back(bytes);
    return tokens;
  }();
  const auto build = [](size_t n_tokens) {
    const std::vector<std::string_view> views(kTokens.begin(), kTokens.begin() + static_cast<ptrdiff_t>(n_tokens));
    const std::vector<int32_t> ends = {kEnd};
    return *Vocabulary::build(views, ends, static_cast<int32_t>(n_tokens));
  };
  static const std::shared_ptr<const Vocabulary> kAll = build(kTokens.size()), kAllButLast = build(kTokens.size() - 1);
  return ends_numbers ? kAll : kAllButLast;
}

std::vector<int32_t> taken(const Vocabulary& vocabulary, const Matcher& matcher, bool ask_distance) {
  std::vector<int32_t> tokens;
  for (int32_t token = 1; token < vocabulary.n_head(); ++token) {
    Matcher next = matcher.fork();
    if (!next.advance(token)) continue;
    tokens.push_back(token);
    if (ask_distance) (void)next.shortest_completion();
  }
  return tokens;
}

/// Random walks that share the grammar's states and masks.
void check(const std::string& schema, PropertyOrder order, Escapes escapes, uint32_t seed) {
  const std::shared_ptr<const Vocabulary> words = vocabulary(seed % 2 == 0);
  Constraint constraint;
  constraint.kind = Constraint::Kind::kJsonSchema;
  constraint.source = schema;
  constraint.schema.order = order;
  constraint.schema.escapes = escapes;
  const Compiled compiled = compile(words, constraint);
  ASSERT_NE(compiled.grammar, nullptr) << schema << ": " << compiled.refusal->reason;
  std::mt19937 random(seed);
  for (int walk = 0; walk < 12; ++walk) {
    Matcher matcher(compiled.grammar);
    std::string text;
    for (int i = 0; i < 40; ++i) {
      const std::vector<int32_t> expected = taken(*words, matcher, walk % 3 == 1);
      std::vector<int32_t> allowed;
      const Mask mask = matcher.mask();
      for (int32_t token = 1; token < words->n_head(); ++token)
        if (mask.allows(token)) allowed.push_back(token);
      ASSERT_EQ(mask.allows(kEnd), matcher.complete()) << schema << " behind " << text;
      for (const int32_t token : allowed) {
        ASSERT_TRUE(std::binary_search(expected.begin(), expected.end(), token))
            << schema << "\nbehind " << text << "\nonly in the mask: " << words->bytes(token);
      }
      ASSERT_EQ(allowed, expected) << schema << "\nbehind " << text;
      if (expected.empty()) break;
      int32_t token = expected[random() % expected.size()];
      for (int n = 0; n < 3 && words->bytes(token).find_first_not_of(" \n\t") == std::string_view::npos; ++n)
        token = expected[random() % expected.size()];
      text += words->bytes(token);
      ASSERT_TRUE(matcher.advance(token));
    }
  }
}

constexpr const char* kSchemas[] = {
    R"({"type":"array","uniqueItems":true,"items":{"enum":["a","ab"]}})",
    R"({"type":"array","uniqueItems":true,"items":{"enum":["a","ab","b",1,null]}})",
    R"({"type":"array","uniqueItems":true,"items":{"enum":["a",true,null]}})",
    R"({"type":"array","uniqueItems":true,"prefixItems":[{"enum":["a","b"]},{"enum":["a","b"]}],"items":{"const":"c"}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"array","items":{"enum":["a","b"]},"maxItems":2}})",
    R"({"uniqueItems":true,"items":{"maxLength":1}})",
    R"({"properties":{"a":{},"ab":{"type":"integer"},"b":{"enum":["x",1]}},"required":["a","c","b"]})",
    R"({"properties":{"a":{},"ab":{"type":"integer"}},"required":["ab"],"additionalProperties":{"type":"string"}})",
    R"({"patternProperties":{"^(a|b)$":{"const":1}},"additionalProperties":false,"minProperties":1})",
    R"({"patternProperties":{"a":{"const":1},"b$":{"const":2}},"maxProperties":3})",
    R"({"propertyNames":{"enum":["a","b"]},"minProperties":2,"maxProperties":2})",
    R"({"propertyNames":{"pattern":"^[ab]{2}"},"additionalProperties":{"type":"number","exclusiveMinimum":0}})",
    R"({"properties":{"a":{"const":1}},"anyOf":[{"required":["a"]},{"required":["x"]}]})",
    R"({"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}]})",
    R"({"unevaluatedProperties":false,"properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"null"}}}]})",
    R"({"type":"string","pattern":"^[ab]{2,5}$"})",
    R"({"type":"string","minLength":2,"maxLength":20})",
    R"({"properties":{"a":{"type":"string","maxLength":16},"b":{"type":"string","minLength":9,"maxLength":17}},"required":["a","b"]})",
    R"({"type":"string","pattern":"a","minLength":2,"maxLength":6})",
    R"({"type":"string","minLength":1,"maxLength":4})",
    R"({"type":"string","pattern":"^[a-z]{1,12}$"})",
    R"({"type":"string","pattern":"^[ab]{10}$"})",
    R"({"type":"string","pattern":"^[a-z]{9,}$"})",
    R"({"type":"string","pattern":"^[abé\n]+$","minLength":11,"maxLength":15})",
    R"({"type":"string","pattern":"^(?:\\S+\\s+){0,9}\\S+$","minLength":3,"maxLength":18})",
    R"({"type":"string","pattern":"^(?:\\S+\\s+){0,49}\\S+$"})",
    R"({"type":"string","pattern":"^(?:ab|c){6,40}d$"})",
    R"({"type":"string","pattern":"^(?:ab?|[bc]{2}){20,30}$"})",
    R"({"type":"string","pattern":"^(?:ab)*$","minLength":3,"maxLength":15})",
    R"({"type":"string","pattern":"^(?:[a-c]*|[a-c]*\\n[a-c]{3,5})$","minLength":9,"maxLength":16})",
    R"({"type":"string","pattern":"^(?:[a-c]*|[a-c]*\\n[a-c]{3,5})$","minLength":9})",
    R"({"type":"string","pattern":"a[bc]{9}"})",
    R"({"type":"string","pattern":"[ab]+","minLength":9,"maxLength":14})",
    R"({"allOf":[{"pattern":"a"},{"pattern":"b$"}],"type":"string","minLength":4,"maxLength":12})",
    R"({"allOf":[{"pattern":"a$"},{"pattern":"b$"},{"pattern":"c"}],"type":["string","null"]})",
    R"({"type":"object","propertyNames":{"pattern":"^[a-c]{9,12}$"},"properties":{"abcabcabc":{"const":1}}})",
    R"({"type":["string","number"],"format":"date","multipleOf":0.5})",
    R"({"contains":{"const":"a"},"minContains":2,"maxContains":3,"items":{"type":"string"}})",
    R"({"items":{"$ref":"#"},"properties":{"a":{"$ref":"#"}},"type":["array","object","boolean"]})",
    R"({"if":{"properties":{"a":{"const":"x"}},"required":["a"]},"then":{"required":["b"]},"else":{"maxProperties":1}})",
    R"({"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}}})",
    R"({"not":{"required":["a"]},"additionalProperties":{"not":{"type":"string"}}})",
    R"({"type":"string","enum":["a","ab","a\"b","\\","\n","\u00e9","\u00e9a","\ud83d\ude00","a/b",""]})",
    R"({"enum":["\ud83d\ude00x","\u0001","\u001f\"",1,null]})",
    R"({"properties":{"a":{},"a\"":{"const":1},"a\\b":{},"\n":{},"\u00e9":{},"\ud83d\ude00":{}},"additionalProperties":false})",
    R"({"properties":{"a":{"type":"string"},"\u00e9":{"type":"number"}}})",
    R"({"type":"array","uniqueItems":true,"items":{"properties":{"a":{"enum":["a","b"]},"b":{}}}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"object","additionalProperties":{"oneOf":[{"const":"a"},{"type":"string"}]}}})",
    R"({"type":"array","uniqueItems":true,"items":{"uniqueItems":true,"items":{"type":["string","integer"]}},"minItems":2})",
    R"({"patternProperties":{"^a":{"type":"string"},"b":{"maxLength":2}},"additionalProperties":{"type":"null"},"maxProperties":4})",
    R"({"oneOf":[{"properties":{"a":{"pattern":"^a"}}},{"properties":{"a":{"pattern":"b$"},"b":false}}],"required":["a"]})",
    R"({"type":"integer","minimum":-12,"exclusiveMaximum":1200})",
    R"({"items":{"type":"number","maximum":10.5},"type":"array"})",
    R"({"properties":{"a":{"type":"integer"},"b":{"type":["number","null"],"multipleOf":0.5}},"required":["a"]})",
    R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":1},{"type":"string","maxLength":3}]})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":12}})",
    R"(true)",
};

class SchemaMask : public testing::TestWithParam<const char*> {};

TEST_P(SchemaMask, IsWhatAdvanceTakes) {
  uint32_t seed = 0;
  for (const PropertyOrder order : {PropertyOrder::kAny, PropertyOrder::kSchema})
    for (const Escapes escapes : {Escapes::kAny, Escapes::kNeeded}) check(GetParam(), order, escapes, ++seed);
}

INSTANTIATE_TEST_SUITE_P(Schemas, SchemaMask, testing::ValuesIn(kSchemas));

/// Compilation looks ahead; wherever its budget ends, the states say so or go on as if it had not looked.
TEST(SchemaMask, StandsAnyEndOfTheLookAhead) {
  const std::shared_ptr<const Vocabulary> words = vocabulary(false);
  const auto row_of = [&](GrammarStates& states, State state) {
    std::vector<MaskWord> row(static_cast<size_t>(words->n_words()));
    states.mask(state).fill(row);
    return row;
  };
  // Along random texts both find the same.
  const auto check_equal = [&](GrammarStates& states, GrammarStates& others, uint32_t seed) {
    std::mt19937 random(seed);
    for (int walk = 0; walk < 3; ++walk) {
      State here = states.start(), there = others.start();
      for (int i = 0; i < 14; ++i) {
        const std::vector<MaskWord> row = row_of(states, here);
        ASSERT_EQ(row, row_of(others, there)) << "behind " << i << " tokens";
        std::vector<int32_t> allowed;
        for (int32_t token = 1; token < words->n_head(); ++token)
          if ((row[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0) allowed.push_back(token);
        if (allowed.empty()) break;
        const int32_t token = allowed[random() % allowed.size()];
        here = states.advance(here, token);
        there = others.advance(there, token);
      }
    }
  };
  int n_failed = 0, n_done = 0;
  for (const char* schema : kSchemas) {
    const auto states_of = [&](int64_t n_steps_ahead) {
      auto languages = std::make_unique<Languages>();
      Fuel fuel(1'000'000'000, std::chrono::hours(1));
      auto read = read_schema(*languages, schema, {}, fuel);
      GrammarBudget budget;
      budget.n_steps_ahead = n_steps_ahead;
      budget.time_ahead = budget.time_ahead_max = std::chrono::hours(1);
      return std::make_unique<GrammarStates>(
          words, make_schema_machine(std::move(languages), std::move(std::get<ReadSchema>(read).schema), {}), budget);
    };
    const auto others = states_of(0);
    for (const int64_t n_steps : {0, 3, 10, 30, 60, 100, 200, 300, 600, 1000, 3000, 1'000'000}) {
      const auto states = states_of(n_steps);
      states->prepare();
      const bool has_failed = !states->failure().empty();
      ++(has_failed ? n_failed : n_done);
      SCOPED_TRACE(std::string(schema) + " ahead " + std::to_string(n_steps));
      if (!has_failed) check_equal(*states, *others, static_cast<uint32_t>(n_steps));
    }
  }
  EXPECT_GT(n_failed, 20);
  EXPECT_GT(n_done, 20);
}

}  // namespace
}  // namespace deepinfer::grammar
