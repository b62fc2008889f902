// Cases by hand for each feature of the schema machine, byte by byte; the cases DC-01 to DC-04 and DC-08.
#include "grammar/schema_machine.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "grammar/schema_reader.h"

namespace deepinfer::grammar {
namespace {

SchemaOptions any_order() {
  SchemaOptions options;
  options.order = PropertyOrder::kAny;
  options.escapes = Escapes::kAny;
  return options;
}

std::unique_ptr<Machine> machine_for(std::string_view schema, const SchemaOptions& options = any_order()) {
  auto languages = std::make_unique<Languages>();
  Fuel fuel(50'000'000, std::chrono::seconds(60));
  auto read = read_schema(*languages, schema, options, fuel);
  if (const auto* refusal = std::get_if<Refusal>(&read)) {
    ADD_FAILURE() << schema << ": " << refusal->reason;
    return nullptr;
  }
  return make_schema_machine(std::move(languages), std::move(std::get<ReadSchema>(read).schema), options);
}

State state_after(Machine& machine, std::string_view text) {
  State s = machine.start();
  for (const char c : text) s = machine.step(s, static_cast<uint8_t>(c));
  return s;
}

bool accepts(Machine& machine, std::string_view text) { return machine.complete(state_after(machine, text)); }
bool alive(Machine& machine, std::string_view text) { return state_after(machine, text) != kDead; }

void expect(std::string_view schema, std::initializer_list<std::string_view> valid,
            std::initializer_list<std::string_view> invalid, const SchemaOptions& options = any_order()) {
  const auto machine = machine_for(schema, options);
  ASSERT_NE(machine, nullptr);
  for (const std::string_view text : valid) EXPECT_TRUE(accepts(*machine, text)) << schema << " refuses " << text;
  for (const std::string_view text : invalid) EXPECT_FALSE(accepts(*machine, text)) << schema << " accepts " << text;
}

// ---- text of JSON ----

TEST(SchemaMachine, AnyValue) {
  expect("true",
         {"null", "true", "false", "0", "-1.5e+3", "\"\"", "[]", "{}", "[1,[2],{\"a\":[]}]", "{\"a\":1,\"b\":{}}"},
         {"", "nul", "01", "1.", "+1", "[1,]", "{\"a\"}", "{a:1}", "[1 2]", "{}{}", " 1", "1 ", "\"\x01\"", "\"a",
          "tru e"});
}

TEST(SchemaMachine, EscapesAreDecoded) {
  expect(R"({"const":"aé😀\n"})", {"\"a\xC3\xA9\xF0\x9F\x98\x80\\n\"", R"("\u0061\u00e9\uD83D\ude00\u000a")"},
         {R"("aé")", R"("a\ud83d\u0041")", R"("\ud83d")", "\"a\xC3\xA9\xF0\x9F\x98\x80\n\""});
  const auto machine = machine_for(R"({"const":"a😀"})");
  EXPECT_TRUE(alive(*machine, R"("\u0)"));
  EXPECT_FALSE(alive(*machine, R"("\u1)"));
  EXPECT_FALSE(alive(*machine, R"("\n)"));
  EXPECT_TRUE(alive(*machine, R"("a\ud83d\ude)"));
  EXPECT_FALSE(alive(*machine, R"("a\ud83e)"));
  EXPECT_FALSE(alive(*machine, R"("a\ud83d\udf)"));
}

TEST(SchemaMachine, NamesMayBeEscaped) {
  expect(R"({"properties":{"ab":{"type":"null"}},"additionalProperties":false})", {R"({"\u0061b":null})"},
         {R"({"\u0062b":null})", R"({"ab":null,"a\u0062":null})", R"({"\u0061b":1})"});
}

TEST(SchemaMachine, EscapesInGenerationAreThoseThatAreNeeded) {
  SchemaOptions options;
  ASSERT_EQ(options.escapes, Escapes::kNeeded);
  expect(R"({"enum":["a/\n\"\u0001"]})", {R"("a/\n\"\u0001")", R"("a/\u000a\"\u0001")"},
         {R"("\u0061/\n\"\u0001")", R"("a\/\n\"\u0001")", R"("a/\n\u0022\u0001")"}, options);
  expect(R"({"type":"string","pattern":"^.😀?$"})", {R"("é😀")"}, {R"("é\ud83d\ude00")", R"("\u00e9")"}, options);
  expect(R"({"properties":{"ab":{}}})", {R"({"ab":1})", R"({"ax\u0061":1})", R"({"a\n":1})"},
         {R"({"\u0061b":1})", R"({"a\u0062":1})", R"({"\u0061x":1})"}, options);
  expect(R"({"type":"string"})", {R"("\u0061\/")"}, {}, options);
}

TEST(SchemaMachine, IllFormedUtf8IsNoText) {
  expect("{}", {"\"\xC3\xA9\""}, {"\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF5\x80\x80\x80\"", "\"\x80\""});
  expect("{}", {}, {"{\"\xC3\":1}", "{\"\xED\xA0\x80\":1}"});
}

// ---- cases of the specification ----

TEST(SchemaMachine, Dc01PatternAndLengthHoldTogether) {
  expect(R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":3})", {"\"ab\"", "\"abc\""},
         {"\"a\"", "\"abcd\"", "\"ab1\"", "\"\""});
}

TEST(SchemaMachine, Dc02LengthsCountCharactersAndKeepEscapes) {
  expect(
      R"({"type":"string","minLength":1,"maxLength":2})",
      {R"("\n")", R"("\"")", R"("\\")", R"("\u0041b")", R"("\ud83d\ude00")", "\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\""},
      {"\"\"", "\"abc\"", "\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80\"", "\"\x01\"", "\"\n\"", R"("\ud83d")"});
}

TEST(SchemaMachine, Dc03PatternsSearch) {
  expect(R"({"properties":{"a":{"type":"string","pattern":"\\S"}}})",
         {R"({"a":"a"})", R"({"a":" a "})", R"({"a":"x y"})"}, {R"({"a":""})", R"({"a":"   "})"});
  expect(R"({"properties":{"a":{"type":"string","pattern":"^a|b$"}}})", {R"({"a":"axx"})", R"({"a":"xxb"})"},
         {R"({"a":"xax"})", R"({"a":"bx"})", R"({"a":""})"});
}

TEST(SchemaMachine, Dc04Recursion) {
  expect(R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},
             "additionalProperties":false}}})",
         {"{}", R"({"next":{}})", R"({"next":{"next":{}}})"}, {R"({"next":1})", R"({"x":{}})"});
}

TEST(SchemaMachine, Dc04RecursionWithoutAnEndAllowsNothing) {
  const auto machine = machine_for(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})");
  EXPECT_EQ(machine->start(), kDead);
  const auto pair = machine_for(R"({"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}],"$defs":{
      "x":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/y"}},
      "y":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"required":["x"]}}})");
  EXPECT_FALSE(alive(*pair, "["));
  EXPECT_TRUE(accepts(*pair, "null"));
}

TEST(SchemaMachine, Dc08BlanksAreBounded) {
  const auto machine = machine_for(R"({"type":"object","required":["a"]})");
  EXPECT_TRUE(accepts(*machine, "{\n  \"a\" :\t1 ,\r\n\"b\":[ ]\n}"));
  EXPECT_TRUE(alive(*machine, "{" + std::string(40, ' ')));
  EXPECT_FALSE(alive(*machine, "{" + std::string(41, ' ')));
  EXPECT_TRUE(alive(*machine, "{\n \n"));
  EXPECT_FALSE(alive(*machine, "{\n \n\n"));
  EXPECT_FALSE(alive(*machine, " "));
  EXPECT_FALSE(alive(*machine, "{\"a\":1} "));
  EXPECT_FALSE(alive(*machine, "{\"a\":1}\n"));
  SchemaOptions none = any_order();
  none.line_ends_max = none.blanks_max = 0;
  EXPECT_FALSE(alive(*machine_for("{}", none), "[ "));
}

// ---- objects ----

TEST(SchemaMachine, RequiredAndClosedObjects) {
  const char* schema =
      R"({"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"string"}},"required":["a"],
                           "additionalProperties":false})";
  expect(schema, {R"({"a":1})", R"({"ab":"","a":1})", R"({"a":1,"ab":"x"})"},
         {"{}", R"({"ab":""})", R"({"a":""})", R"({"a":1,"a":2})", R"({"a":1,"b":2})", R"({"a":1,})"});
  const auto machine = machine_for(schema);
  EXPECT_FALSE(alive(*machine, R"({"b")"));
  EXPECT_FALSE(alive(*machine, R"({"a":1,"ab":"","a)"));
  EXPECT_FALSE(alive(*machine, R"({"a":1,"ab":"",)"));
}

TEST(SchemaMachine, SchemaOrder) {
  SchemaOptions options;  // kSchema
  const char* schema = R"({"properties":{"b":{},"a":{},"c":{}},"required":["a"]})";
  expect(schema, {R"({"b":1,"a":2,"c":3,"z":4})", R"({"a":2})", R"({"a":2,"z":1,"y":2})"},
         {R"({"a":1,"b":2})", R"({"b":1,"c":2,"a":3})", R"({"z":1,"a":2})"}, options);
  const auto machine = machine_for(schema, options);
  EXPECT_FALSE(alive(*machine, R"({"c)"));
  EXPECT_FALSE(alive(*machine, R"({"z)"));
  EXPECT_TRUE(alive(*machine, R"({"a":1,"z)"));
}

TEST(SchemaMachine, NamesByPattern) {
  expect(R"({"patternProperties":{"^x-":{"type":"integer"},"y$":{"minimum":5}},"properties":{"x-1":{"maximum":9}},
             "additionalProperties":{"type":"string"}})",
         {R"({"x-1":3})", R"({"x-1":9,"x-y":5,"a":"","y":6})"},
         {R"({"x-1":10})", R"({"x-1":"a"})", R"({"x-y":4})", R"({"x-y":"a"})", R"({"y":4})", R"({"a":1})"});
  expect(R"({"patternProperties":{"^a+$":{}},"additionalProperties":false})", {R"({"a":1,"aa":2})"}, {R"({"ab":1})"});
  expect(R"({"propertyNames":{"maxLength":2,"pattern":"^a"}})", {R"({"a":1,"ab":1})"}, {R"({"abc":1})", R"({"b":1})"});
  expect(R"({"propertyNames":false})", {"{}"}, {R"({"a":1})"});
}

TEST(SchemaMachine, CountsOfMembers) {
  const char* schema = R"({"type":"object","minProperties":1,"maxProperties":2,"required":["z"]})";
  expect(schema, {R"({"z":1})", R"({"a":1,"z":1})"}, {"{}", R"({"a":1})", R"({"a":1,"z":1,"c":1})"});
  const auto machine = machine_for(schema);
  EXPECT_FALSE(alive(*machine, R"({"a":1,"b":)"));  // no room for "z"
  EXPECT_FALSE(alive(*machine, R"({"a":1,"a":)"));  // counted names do not come twice
}

TEST(SchemaMachine, Dependents) {
  expect(
      R"({"dependentRequired":{"a":["b","c"]},"dependentSchemas":{"d":{"required":["e"],"properties":{"f":false}}}})",
      {"{}", R"({"b":1})", R"({"c":1,"a":1,"b":1})", R"({"d":1,"e":2})", R"({"f":1})"},
      {R"({"a":1})", R"({"a":1,"b":1})", R"({"d":1})", R"({"d":1,"e":1,"f":1})", R"({"f":1,"d":1,"e":1})"});
}

// ---- arrays ----

TEST(SchemaMachine, Items) {
  expect(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"null"},"minItems":1,
             "maxItems":3})",
         {"[1]", R"([1,"a"])", R"([1,"a",null])"},
         {"[]", R"(["a"])", "[1,1]", R"([1,"a",1])", R"([1,"a",null,null])", "[1,]"});
  expect(R"({"prefixItems":[{}],"items":false})", {"[]", "[1]"}, {"[1,2]"});
}

TEST(SchemaMachine, UniqueItems) {
  expect(R"({"uniqueItems":true})",
         {R"([1,"1",true,[1],{"a":1},{"a":2},null])", R"([{"a":1,"b":2},{"a":2,"b":1}])", "[[1,2],[2,1]]"},
         {"[1,1.0]", R"(["a","\u0061"])", R"([{"a":1,"b":2},{"b":2,"a":1.0}])", "[[1],[1]]", "[[[1,2]],[[1,2]]]",
          "[true,true]"});
  const auto machine = machine_for(R"({"uniqueItems":true,"items":{"enum":["a","b"]}})");
  EXPECT_TRUE(alive(*machine, R"(["a","b)"));
  EXPECT_FALSE(alive(*machine, R"(["a","a)"));
  EXPECT_FALSE(alive(*machine, R"(["a","b",)"));
}

TEST(SchemaMachine, Contains) {
  expect(R"({"contains":{"type":"integer"},"minContains":2,"maxContains":2})", {"[1,2]", R"([1,"",2])"},
         {"[]", "[1]", "[1,2,3]", R"(["a"])"});
  const auto machine = machine_for(R"({"contains":{"const":1},"maxItems":2})");
  EXPECT_TRUE(alive(*machine, "[2,1"));
  EXPECT_FALSE(alive(*machine, "[2,3"));
  expect(R"({"contains":{"const":1},"minContains":0})", {"[]", "[2]"}, {});
}

// ---- combinations ----

TEST(SchemaMachine, OneOfByDiscriminator) {
  const char* schema = R"({"oneOf":[
      {"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k","v"]},
      {"type":"object","properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k","v"]}]})";
  expect(schema, {R"({"k":"a","v":1})", R"({"v":"x","k":"b"})"},
         {R"({"k":"a","v":"x"})", R"({"k":"c","v":1})", R"({"k":"a"})"});
  const auto machine = machine_for(schema);
  EXPECT_FALSE(alive(*machine, R"({"v":1,"k":"b)"));
  EXPECT_FALSE(alive(*machine, R"({"k":"a","v":")"));
  EXPECT_FALSE(alive(*machine, R"({"v":n)"));
}

TEST(SchemaMachine, OneOfOverlapping) {
  expect(R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"});
  expect(R"({"oneOf":[{"required":["a"]},{"required":["b"]}]})", {R"({"a":1})", R"({"b":1})"},
         {"{}", R"({"a":1,"b":1})"});
}

TEST(SchemaMachine, NotAndConditionals) {
  expect(R"({"not":{"required":["a"]}})", {"{}", R"({"b":1})"},
         {R"({"a":1})", "1" /* not an object: required holds */});
  expect(R"({"not":{"type":"object","properties":{"a":{"type":"string"}}}})", {"1", R"({"a":1})"},
         {"{}", R"({"a":""})"});
  expect(
      R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]}})",
      {R"({"k":1,"x":0})", R"({"x":0,"k":1})", R"({"k":2,"y":0})", R"({"y":0})", "1"},
      {R"({"k":1})", R"({"k":1,"y":0})", R"({"x":0})"});
}

TEST(SchemaMachine, Unevaluated) {
  expect(R"({"properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},
             {"properties":{"c":{}},"required":["c"]}],"unevaluatedProperties":false})",
         {R"({"b":1})", R"({"a":1,"b":1})", R"({"c":1,"a":1})", R"({"b":1,"c":2})"},
         {R"({"a":1})", R"({"b":1,"d":1})", R"({"b":"x","c":1})", R"({"d":1,"c":1})"});
  expect(R"({"prefixItems":[{}],"contains":{"type":"string"},"unevaluatedItems":{"type":"null"}})",
         {R"([1,"a",null])", R"(["a"])"}, {R"([1,"a",2])", "[1]"});
}

TEST(SchemaMachine, ConstOfContainers) {
  expect(R"({"const":{"a":[1,{"b":null}]}})", {R"({"a":[1,{"b":null}]})", R"({"a":[1.0,{"b":null}]})"},
         {R"({"a":[1]})", R"({"a":[1,{"b":null,"c":1}]})", "{}"});
}

TEST(SchemaMachine, TruthFollowsScalars) {
  expect(R"({"anyOf":[{"properties":{"a":{"maxLength":2}},"required":["b"]},{"properties":{"a":{"pattern":"x"}}}]})",
         {R"({"a":"ab","b":1})", R"({"a":"xyz"})", R"({"a":"x"})"}, {R"({"a":"ab"})", R"({"a":"abc","b":1})"});
}

// ---- the other questions ----

TEST(SchemaMachine, DistanceIsTheShortestWay) {
  const auto machine = machine_for(R"({"type":"object","properties":{"ab":{"type":"integer"},"c":{"minLength":3}},
                                       "required":["ab","c"],"additionalProperties":false})");
  EXPECT_EQ(machine->distance(state_after(*machine, R"({"ab":1,"c":"abc")")), 1);
  EXPECT_EQ(machine->distance(state_after(*machine, R"({"ab":1,"c":"a)")), 4);
  EXPECT_EQ(machine->distance(state_after(*machine, R"({"ab":1,"c":"abc"})")), 0);
  EXPECT_EQ(machine->distance(kDead), -1);
  int64_t last = machine->distance(machine->start());
  EXPECT_GT(last, 0);
  EXPECT_LE(last, 24);
}

/// Whether the bytes that bring the end nearest lead there.
bool finds_home(Machine& machine, std::string_view begin) {
  State s = state_after(machine, begin);
  for (int64_t left = machine.distance(s); !machine.complete(s);) {
    State next = kDead;
    for (int byte = 0; byte < 256; ++byte) {
      const State to = machine.step(s, static_cast<uint8_t>(byte));
      const int64_t distance = machine.distance(to);
      if (to == kDead || distance < 0 || distance >= left) continue;
      left = distance;
      next = to;
    }
    if (next == kDead) return false;
    s = next;
  }
  return true;
}

TEST(SchemaMachine, DistanceIsOfAWayThatExists) {
  struct Case {
    std::string_view schema, begin;
  };
  const Case cases[] = {
      // What a name that nobody declared asks for behind it.
      {R"({"patternProperties":{"^a":{"type":"object","required":["message","more"]}},"additionalProperties":false})",
       R"({"ab)"},
      // Names that hold under a pattern with a line end only: those bytes need an escape.
      {R"({"patternProperties":{"^.+$":{"type":"object","required":["description"]}}})", R"({"ab)"},
      // A branch that asks for names, and the others must not hold.
      {R"({"oneOf":[{"required":["a"]},{"required":["b"]},{"properties":{"c":{"type":"null"}}}]})", R"({"c":1,"d)"},
      {R"({"oneOf":[{"required":["a","b"]},{"required":["b","c"]}],"maxProperties":3})", R"({"b":1,"x)"},
      {R"({"not":{"propertyNames":{"not":{"const":"0"}}}})", R"({"name)"},
      {R"({"type":"object","oneOf":[{"properties":{"x":{"properties":{"y":{"not":{}}},"required":["r"]}}},
           {"properties":{"x":{"properties":{"r":{"not":{}}},"required":["y","z"]}}}],"required":["x"]})",
       R"({"x":{"z":[)"},
      // Items.
      {R"({"type":"array","items":{"oneOf":[{"minItems":2},{"maxItems":3}]},"minItems":2})", R"([[1)"},
      {R"({"type":"array","contains":{"type":"string"},"minContains":2,"not":{"minItems":4}})", R"([1)"},
      // Two keywords that only together leave one way.
      {R"({"allOf":[{"required":["aa"]},{"required":["bb"]},{"maxProperties":2}]})", R"({"aa")"},
  };
  for (const Case& c : cases) {
    const auto machine = machine_for(c.schema);
    ASSERT_NE(machine, nullptr);
    ASSERT_NE(state_after(*machine, c.begin), kDead) << c.schema;
    EXPECT_TRUE(finds_home(*machine, c.begin)) << c.schema << " behind " << c.begin;
  }
}

TEST(SchemaMachine, DistanceIsTheSameWhateverWasAskedBefore) {
  constexpr int kLevels = 300;
  std::string schema = R"({"$ref":"#/$defs/0","$defs":{)", inner;
  for (int i = 0; i < kLevels; ++i) {
    schema += "\"" + std::to_string(i) + R"(":{"required":["a"],"type":"object","properties":{"a":{"$ref":"#/$defs/)" +
              std::to_string(i + 1) + R"("}}},)";
    if (i < kLevels / 2) inner += R"({"a":)";
  }
  schema += "\"" + std::to_string(kLevels) + R"(":{"const":0}}})";
  const auto outer_first = machine_for(schema), inner_first = machine_for(schema);
  const int64_t outer = outer_first->distance(outer_first->start());
  const int64_t rest = inner_first->distance(state_after(*inner_first, inner));
  EXPECT_EQ(inner_first->distance(inner_first->start()), outer);
  EXPECT_EQ(outer_first->distance(state_after(*outer_first, inner)), rest);
  EXPECT_GE(outer, 6 * kLevels + 1);
  EXPECT_LE(outer, 7 * kLevels + 1);  // no comma in front of a first member
}

TEST(SchemaMachine, NoValueBehindWhichNothingMayCome) {
  // The name counts for all three, no other name may come, and only numbers tell them apart.
  expect(R"({"maxProperties":1,"oneOf":[{"patternProperties":{"a":{"maximum":20}}},
             {"patternProperties":{"a":{"maximum":80}}},{"patternProperties":{"a":{"maximum":60}}}]})",
         {R"({"a":70})"}, {});
  const auto machine = machine_for(R"({"maxProperties":1,"oneOf":[{"patternProperties":{"a":{"maximum":20}}},
             {"patternProperties":{"a":{"maximum":80}}},{"patternProperties":{"a":{"maximum":60}}}]})");
  EXPECT_FALSE(alive(*machine, R"({"a":f)"));
  EXPECT_FALSE(alive(*machine, R"({"a":")"));
  EXPECT_FALSE(alive(*machine, R"({"b")"));
}

TEST(SchemaMachine, StringBodies) {
  const auto machine =
      machine_for(R"({"properties":{"a":{"type":"string"},"b":{"type":"string","minLength":2,"maxLength":5},
                                       "c":{"type":"string","pattern":"^x"}}})");
  const auto free = machine->string_body(state_after(*machine, R"({"a":"h)"));
  ASSERT_TRUE(free);
  EXPECT_TRUE(free->any_text);
  EXPECT_EQ(free->after, state_after(*machine, R"({"a":"h")"));
  const auto limited = machine->string_body(state_after(*machine, R"({"b":"h)"));
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->kind, free->kind);
  EXPECT_EQ(limited->min_left, 1);
  EXPECT_EQ(limited->max_left, 4);
  const auto pattern = machine->string_body(state_after(*machine, R"({"c":")"));
  ASSERT_TRUE(pattern);
  EXPECT_FALSE(pattern->any_text);
  const auto matched = machine->string_body(state_after(*machine, R"({"c":"x)"));
  ASSERT_TRUE(matched);
  EXPECT_TRUE(matched->any_text);
  const auto name = machine->string_body(state_after(*machine, R"({"dd)"));
  ASSERT_TRUE(name);
  EXPECT_TRUE(name->any_text && name->same_after);
  EXPECT_FALSE(machine->string_body(state_after(*machine, R"({"a":)")));
}

TEST(SchemaMachine, FreeStringsAndNamesMakeNoStates) {
  const auto machine = machine_for(R"({"additionalProperties":{"type":"string"}})");
  const State first = state_after(*machine, R"({"k":"v)");
  EXPECT_EQ(first, state_after(*machine, R"({"k":"another value)"));
  EXPECT_EQ(first, state_after(*machine, R"({"k":"v","another name":"v)"));
}

TEST(SchemaMachine, NextBytesHoldEveryStep) {
  const auto machine = machine_for(R"({"properties":{"a":{"type":["integer","null"]},"b":{"items":{"type":"boolean"}}},
                                       "additionalProperties":false})");
  const std::string text = R"({ "a" : 12,"b":[true , false]})";
  for (size_t n = 0; n <= text.size(); ++n) {
    const State s = state_after(*machine, std::string_view(text).substr(0, n));
    const auto bytes = machine->next_bytes(s);
    for (int byte = 0; bytes && byte < 256; ++byte) {
      if (machine->step(s, static_cast<uint8_t>(byte)) != kDead) {
        EXPECT_TRUE(bytes->contains(static_cast<uint8_t>(byte))) << text.substr(0, n) << " then " << byte;
      }
    }
  }
}

TEST(SchemaMachine, DeepNestingNeedsNoStack) {
  const auto machine = machine_for("{}");
  const std::string open(100'000, '['), shut(100'000, ']');
  EXPECT_TRUE(accepts(*machine, open + shut));
}

/// Runs `work` on a thread with a stack of 256 KiB (more where the sanitizers need it).
template <typename Work>
void on_small_stack(Work work) {
#ifdef __SANITIZE_ADDRESS__
  constexpr size_t kStackBytes = 2 << 20;
#else
  constexpr size_t kStackBytes = 256 << 10;
#endif
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<Work*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

/// A schema of n nodes; node i refers to node i + 1 through `make`.
template <typename Make>
Schema chain_of_nodes(int n, Make make) {
  Schema schema;
  schema.nodes.resize(static_cast<size_t>(n) + 2);
  schema.nodes[kFalseNode].types = 0;
  schema.root = 2;
  for (int i = 0; i + 1 < n; ++i) make(schema.nodes[static_cast<size_t>(i) + 2], i + 3);
  schema.nodes.back().types = kNullBit;
  return schema;
}

TEST(SchemaMachine, DeepSchemasNeedLittleStack) {
  on_small_stack([] {
    const auto machine = make_schema_machine(std::make_unique<Languages>(),
                                             chain_of_nodes(2000,
                                                            [](Node& node, NodeId next) {
                                                              node.types = kObjectBit;
                                                              node.properties.emplace_back("a", next);
                                                              node.required.emplace_back("a");
                                                            }),
                                             any_order());
    std::string text;
    for (int i = 0; i < 1999; ++i) text += "{\"a\":";
    EXPECT_TRUE(alive(*machine, text));
    EXPECT_TRUE(accepts(*machine, text + "null" + std::string(1999, '}')));
    EXPECT_GE(machine->distance(machine->start()), -1);
  });
}

TEST(SchemaMachine, DeepPlacesAreRefused) {
  on_small_stack([] {
    for (const int n : {100, 5000}) {
      const auto nested = [](Node& node, NodeId next) {
        node.any_of = {{next, kFalseNode}, {next}}, node.none_of = {kFalseNode};
      };
      const auto built = build_schema_machine(std::make_unique<Languages>(), chain_of_nodes(n, nested), any_order());
      EXPECT_EQ(std::holds_alternative<Refusal>(built), n > 1000);
    }
  });
}

TEST(SchemaMachine, NestedOneOfOfTwoStaysSmall) {
  // 2^16 ways through 16 levels.
  Schema schema;
  schema.nodes.resize(2);
  schema.nodes[kFalseNode].types = 0;
  for (int i = 0; i < 33; ++i) schema.nodes.emplace_back();
  const auto at = [&](int i) -> Node& { return schema.nodes[static_cast<size_t>(i)]; };
  at(34).required = {"z"};
  for (int level = 0; level < 16; ++level) {
    const NodeId below = level == 15 ? 34 : 2 + 2 * (level + 1);
    at(2 + 2 * level).one_of = {{below, 3 + 2 * level}};
    at(3 + 2 * level).all_of = {below};
    at(3 + 2 * level).required = {"n" + std::to_string(level)};
  }
  schema.root = 2;
  const auto start = std::chrono::steady_clock::now();
  const auto machine = make_schema_machine(std::make_unique<Languages>(), schema, any_order());
  EXPECT_TRUE(accepts(*machine, R"({"z":1})"));
  EXPECT_FALSE(accepts(*machine, R"({"z":1,"n3":1})"));
  EXPECT_FALSE(accepts(*machine, R"({"n3":1})"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(SchemaMachine, LongLimitsCostNothing) {
  const auto machine = machine_for(R"({"type":"string","maxLength":100000})");
  EXPECT_TRUE(accepts(*machine, "\"" + std::string(100'000, 'a') + "\""));
  EXPECT_FALSE(accepts(*machine, "\"" + std::string(100'001, 'a') + "\""));
}

TEST(SchemaMachine, WhatWasAskedBeforeChangesNothing) {
  SchemaOptions options;  // names that are needed come before others: "b" is none of them
  std::string schema = R"({"uniqueItems":true,"items":{"allOf":[)";
  for (int i = 0; i < 10; ++i) schema += R"({"properties":{"a":{"minimum":)" + std::to_string(i) + "}}},";
  schema += R"({"required":["a","c"]}]}})";
  const auto machine = machine_for(schema, options);
  State s = machine->step(machine->start(), '[');
  for (int i = 0; i < 4000; ++i) {  // objects in as many places
    State object = s;
    for (const char c : std::string_view(R"({"b)")) object = machine->step(object, static_cast<uint8_t>(c));
    ASSERT_EQ(machine->step(object, '"'), kDead) << i;
    for (const char c : std::to_string(i) + ",") s = machine->step(s, static_cast<uint8_t>(c));
  }
}

// ---- what is enforced in part only must not come out as its opposite ----

TEST(SchemaMachine, ExponentsAreNoWayAroundANegation) {
  for (const char* schema :
       {R"({"not":{"const":2}})", R"({"not":{"enum":[2,"a"]}})", R"({"if":{"const":2},"then":false})",
        R"({"type":"number","not":{"multipleOf":2}})", R"({"oneOf":[{"const":2},{"type":"number"}]})"})
    expect(schema, {"3", "3e0"}, {"2", "2.0", "0.2e1", "20e-1", "2e0", "200E-2"});
  expect(R"({"type":"number","not":{"minimum":2}})", {"1", "-5"}, {"2", "3", "0.3e1", "20e-1"});
  expect(R"({"contains":{"const":2},"maxContains":1})", {"[2,3]", "[3,100000,2]"}, {"[0.2e1,2]", "[2,20e-1]"});
  expect(R"({"uniqueItems":true})", {"[2,0.3e1]"}, {"[0.2e1,2]", "[20e-1,2.0]"});
}

TEST(SchemaMachine, TextsLeftOutOfAFormatAreNoWayAroundANegation) {
  expect(R"({"type":"string","not":{"format":"hostname"}})", {"\"-\"", "\"a_b\""}, {"\"a.org\"", "\"xn--4gbwdl\""});
  expect(R"({"type":"string","not":{"format":"regex"}})", {}, {"\"a\"", "\"(?<n>a)\""});
  expect(R"({"type":"object","not":{"propertyNames":{"format":"hostname"}}})", {R"({"_":1})", R"({"a":1,"_":1})"},
         {R"({"a":1})", R"({"xn--4gbwdl":1})", R"({"a":1,"xn--4gbwdl":1})"});
  expect(R"({"propertyNames":{"format":"hostname"},"properties":{"xn--a":{}}})", {R"({"a.b":1})"}, {R"({"xn--a":1})"});
  expect(R"({"oneOf":[{"format":"hostname"},{"format":"ipv6"}]})", {"\"a.org\"", "\"::1\""},
         {"\"_\"", "\"xn--4gbwdl\""});
}

}  // namespace
}  // namespace deepinfer::grammar
