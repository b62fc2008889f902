#include "grammar/schema_reader.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "grammar/metaschemas.h"
#include "grammar/schema_simplify.h"
#include "grammar/schema_uri.h"
#include "gtest/gtest.h"
#include "tests/unit/grammar/schema_evaluator.h"

namespace deepinfer::grammar {
namespace {

constexpr Dialect k4 = Dialect::kDraft4, k6 = Dialect::kDraft6, k7 = Dialect::kDraft7, k2019 = Dialect::kDraft2019,
                  k2020 = Dialect::kDraft2020;

SchemaOptions options_of(Dialect dialect) {
  SchemaOptions options;
  options.dialect = dialect;
  return options;
}

/// One schema, read.
struct Reading {
  Languages languages;
  std::variant<ReadSchema, Refusal> result;

  explicit Reading(std::string_view text, const SchemaOptions& options = {}) {
    Fuel fuel(20'000'000, std::chrono::seconds(20));
    result = read_schema(languages, text, options, fuel);
  }
  Reading(std::string_view text, Dialect dialect) : Reading(text, options_of(dialect)) {}

  [[nodiscard]] bool accepted() const { return result.index() == 0; }
  [[nodiscard]] const Schema& schema() const { return std::get<0>(result).schema; }
  [[nodiscard]] std::string refusal() const {
    if (accepted()) return "accepted";
    const Refusal& refusal = std::get<1>(result);
    return refusal.pointer + " " + refusal.keyword + ": " + refusal.reason;
  }
  [[nodiscard]] std::string ignored() const {
    std::string out;
    for (const Ignored& ignored : std::get<0>(result).ignored) out += ignored.pointer + " ";
    return out;
  }
  bool valid(std::string_view instance) { return SchemaEvaluator(languages, schema()).valid(*json::parse(instance)); }
};

struct Case {
  Dialect dialect;
  std::string_view schema;
  std::vector<std::string_view> valid, invalid;
};

void check(const std::vector<Case>& cases, const SchemaOptions& base = {}) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.schema);
    SchemaOptions options = base;
    options.dialect = c.dialect;
    Reading reading(c.schema, options);
    ASSERT_TRUE(reading.accepted()) << reading.refusal();
    for (const std::string_view instance : c.valid) EXPECT_TRUE(reading.valid(instance)) << instance;
    for (const std::string_view instance : c.invalid) EXPECT_FALSE(reading.valid(instance)) << instance;
  }
}

TEST(SchemaReader, TypesEnumsAndConstants) {
  check({
      {k2020, R"({"type":"integer"})", {"1", "1.0", "-3"}, {"1.5", "\"1\"", "null", "true"}},
      {k4, R"({"type":"integer"})", {"1", "0", "-3"}, {"1.0", "1.5", "1e2"}},
      {k4, R"({"type":["integer","number"]})", {"1.5"}, {"\"\""}},
      {k2020, R"({"type":["string","null"]})", {"\"a\"", "null"}, {"1", "[]", "{}"}},
      {k2020,
       R"({"enum":[1,"a",null,true,[1,{"b":2}],{"c":[]}]})",
       {"1", "1.0", "\"a\"", "null", "true", "[1,{\"b\":2}]", "{\"c\":[]}"},
       {"2", "\"b\"", "false", "[1]", "[1,{\"b\":2},3]", "{\"c\":[],\"d\":1}", "{}", "[1,{\"b\":3}]"}},
      {k2020, R"({"type":"string","enum":[1,"a",[]]})", {"\"a\""}, {"1", "[]"}},
      {k2020,
       R"({"enum":["","a","ab","abc","b","\u00e9","\u00e8","\u00e9t\u00e9"]})",
       {"\"\"", "\"a\"", "\"ab\"", "\"abc\"", "\"b\"", "\"\u00e9\"", "\"\u00e8\"", "\"\u00e9t\u00e9\""},
       {"\"abcd\"", "\"c\"", "\"\u00e9t\"", "\"\u00ea\"", "\"ac\""}},
      {k2020,
       R"({"const":{"a":1,"b":[true,"x"]}})",
       {"{\"b\":[true,\"x\"],\"a\":1.0}"},
       {"{\"a\":1}", "{\"a\":1,\"b\":[1,\"x\"]}", "{\"a\":1,\"b\":[true,\"x\"],\"c\":0}"}},
      {k2020, R"({"const":1,"enum":[1,2]})", {"1"}, {"2"}},
      {k2020, R"({"const":false})", {"false"}, {"0", "true"}},
      {k2020, R"({"enum":[]})", {}, {"0", "null", "{}"}},
      {k4, R"({"const":1})", {"1", "2"}, {}},
      {k6, R"({"const":1})", {"1"}, {"2"}},
  });
}

TEST(SchemaReader, NumbersAndStrings) {
  check({
      {k2020, R"({"minimum":2,"exclusiveMaximum":5})", {"2", "4.9", "\"x\""}, {"1", "5"}},
      {k2020, R"({"minimum":2,"exclusiveMinimum":2,"maximum":4,"exclusiveMaximum":9})", {"3", "4"}, {"2", "5"}},
      {k2020, R"({"minimum":3,"exclusiveMinimum":2})", {"3"}, {"2.5"}},
      {k4, R"({"minimum":2,"exclusiveMinimum":true,"maximum":4,"exclusiveMaximum":false})", {"3", "4"}, {"2", "5"}},
      {k2020, R"({"type":"integer","multipleOf":3,"minimum":1})", {"3", "6"}, {"0", "4", "1.5"}},
      {k2020, R"({"minLength":2.0,"maxLength":3e0})", {"\"ab\"", "\"\u00e9\u00e9\u00e9\"", "1"}, {"\"a\"", "\"abcd\""}},
      {k2020, R"({"pattern":"^a","maxLength":2})", {"\"a\"", "\"ab\""}, {"\"b\"", "\"abc\""}},
      {k2020, R"({"pattern":"b$","format":"date"})", {"1"}, {"\"b\"", "\"2020-01-01\""}},
      {k2020, R"({"format":"date"})", {"\"2020-02-29\"", "1"}, {"\"2021-02-29\"", "\"x\""}},
      {k2020, R"({"maxLength":99999999999})", {"\"abc\""}, {}},
  });
}

TEST(SchemaReader, FormatsAreAnnotationsWhereThePolicySaysSo) {
  SchemaOptions options;
  options.formats = FormatPolicy::kAnnotate;
  check({{k2020, R"({"format":"date"})", {"\"x\"", "1"}, {}}}, options);
}

TEST(SchemaReader, ObjectsAndArrays) {
  check({
      {k2020,
       R"({"properties":{"a":{"type":"integer"}},"patternProperties":{"^a":{"minimum":3},"^b":false},
                  "additionalProperties":{"type":"null"}})",
       {"{}", "{\"a\":3}", "{\"ax\":4,\"c\":null}"},
       {"{\"a\":2}", "{\"b\":1}", "{\"c\":1}", "{\"a\":3.5}"}},
      {k2020,
       R"({"required":["a","b","a"],"minProperties":3,"maxProperties":3})",
       {"{\"a\":1,\"b\":2,\"c\":3}", "1"},
       {"{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2,\"d\":3}"}},
      {k2020,
       R"({"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"maxProperties":1}}})",
       {"{\"a\":1,\"b\":1}", "{\"c\":1}", "{}"},
       {"{\"a\":1}", "{\"c\":1,\"d\":1}"}},
      {k7,
       R"({"dependencies":{"a":["b"],"c":{"maxProperties":1},"d":false}})",
       {"{\"a\":1,\"b\":1}", "{\"c\":1}", "{}"},
       {"{\"a\":1}", "{\"c\":1,\"e\":1}", "{\"d\":1}"}},
      {k2020, R"({"dependencies":{"a":["b"]}})", {"{\"a\":1}"}, {}},
      {k2020, R"({"propertyNames":{"maxLength":2}})", {"{\"ab\":1}"}, {"{\"abc\":1}"}},
      {k4, R"({"propertyNames":{"maxLength":2}})", {"{\"abc\":1}"}, {}},
      {k2020,
       R"({"prefixItems":[{"type":"null"},true],"items":{"type":"integer"}})",
       {"[null,\"x\",1]", "[]", "1"},
       {"[1]", "[null,1,\"x\"]"}},
      {k2019,
       R"({"items":[{"type":"null"},true],"additionalItems":{"type":"integer"}})",
       {"[null,\"x\",1]"},
       {"[1]", "[null,1,\"x\"]"}},
      {k7, R"({"items":{"type":"null"},"additionalItems":false})", {"[null,null]"}, {"[1]"}},
      {k7, R"({"additionalItems":false})", {"[1]"}, {}},
      {k2020,
       R"({"contains":{"type":"null"},"minContains":2,"maxContains":2})",
       {"[null,1,null]"},
       {"[null]", "[null,null,null]"}},
      {k2020, R"({"contains":{"type":"null"},"minContains":0})", {"[]", "[1]"}, {}},
      {k7, R"({"contains":{"type":"null"},"minContains":2})", {"[null]"}, {"[1]"}},
      {k2020, R"({"minItems":1,"maxItems":2,"uniqueItems":true})", {"[1]", "[1,2]"}, {"[]", "[1,1.0]", "[1,2,3]"}},
      {k2020,
       R"({"type":"object","properties":{"a":{"type":"string"},"a":{"type":"null"}}})",
       {"{\"a\":null}"},
       {"{\"a\":\"x\"}"}},
      {k2020, R"({"minItems":1,"minItems":2})", {"[1,2]"}, {"[1]"}},
  });
}

TEST(SchemaReader, InPlaceKeywords) {
  check({
      {k2020,
       R"({"allOf":[{"minimum":1},{"maximum":3}],"anyOf":[{"const":1},{"const":2},{"const":9}],
                  "oneOf":[{"minimum":2},{"type":"null"}],"not":{"const":3}})",
       {"2"},
       {"1", "3", "9", "null"}},
      {k7,
       R"({"if":{"type":"integer"},"then":{"minimum":5},"else":{"type":"string"}})",
       {"5", "\"x\""},
       {"4", "null", "5.5"}},
      {k6, R"({"if":{"type":"integer"},"then":{"minimum":5}})", {"4"}, {}},
      {k7, R"({"then":{"minimum":5}})", {"4"}, {}},
      {k2020, R"({"not":{}})", {}, {"1"}},
      {k2020, R"({"not":false})", {"1"}, {}},
      {k2020, R"({"anyOf":[false,{"type":"null"}]})", {"null"}, {"1"}},
      {k2020, R"({"oneOf":[true,true]})", {}, {"1"}},
      {k2020, R"({"anyOf":[true,{"type":"null"}]})", {"1"}, {}},
  });
}

TEST(SchemaReader, Unevaluated) {
  check({
      {k2020,
       R"({"properties":{"a":true},"anyOf":[{"properties":{"b":true},"required":["b"]},true],
                  "unevaluatedProperties":false})",
       {"{\"a\":1}", "{\"a\":1,\"b\":1}"},
       {"{\"c\":1}"}},
      {k2020, R"({"allOf":[{"additionalProperties":true}],"unevaluatedProperties":false})", {"{\"a\":1}"}, {}},
      {k2020, R"({"allOf":[true],"unevaluatedProperties":false})", {"{}"}, {"{\"a\":1}"}},
      {k2020, R"({"allOf":[{"items":true}],"unevaluatedItems":false})", {"[1]"}, {}},
      {k2020, R"({"contains":{"type":"null"},"unevaluatedItems":{"type":"integer"}})", {"[null,1]"}, {"[null,\"x\"]"}},
      {k2019, R"({"contains":{"type":"null"},"unevaluatedItems":{"type":"integer"}})", {}, {"[null,1]"}},
      {k2020, R"({"if":{"properties":{"a":true}},"unevaluatedProperties":false})", {"{\"a\":1}"}, {"{\"b\":1}"}},
      {k7, R"({"unevaluatedProperties":false})", {"{\"a\":1}"}, {}},
  });
}

TEST(SchemaReader, PointersIdsAndAnchors) {
  check({
      {k2020, R"({"$defs":{"a/b":{"~x%":{"type":"null"}}},"$ref":"#/$defs/a~1b/~0x%25"})", {"null"}, {"1"}},
      {k2020, R"({"$ref":"#/$defs/a","minimum":3,"$defs":{"a":{"maximum":5}}})", {"4"}, {"2", "6"}},
      {k7,
       R"({"properties":{"x":{"$ref":"#/definitions/a","minimum":3}},"definitions":{"a":{"maximum":5}}})",
       {"{\"x\":2}"},
       {"{\"x\":6}"}},
      {k2020, R"({"$ref":"#foo","$defs":{"a":{"$anchor":"foo","type":"null"}}})", {"null"}, {"1"}},
      {k7, R"({"allOf":[{"$ref":"#foo"}],"definitions":{"a":{"$id":"#foo","type":"null"}}})", {"null"}, {"1"}},
      {k4, R"({"allOf":[{"$ref":"#foo"}],"definitions":{"a":{"id":"#foo","type":"null"}}})", {"null"}, {"1"}},
      {k2020,
       R"({"$id":"http://x.y/a/b","$ref":"c","$defs":{"z":{"$id":"/a/c","$ref":"#/$defs/q",
                  "$defs":{"q":{"type":"null"}}}}})",
       {"null"},
       {"1"}},
      {k2020,
       R"({"$id":"urn:uuid:1","$ref":"urn:uuid:2#q","$defs":{"z":{"$id":"urn:uuid:2","$defs":{
                  "q":{"$anchor":"q","type":"null"}}}}})",
       {"null"},
       {"1"}},
      {k7,
       R"({"$id":"http://x.y/r","allOf":[{"$id":"http://x.y/s/","$ref":"f"}],"definitions":{
                  "f":{"$id":"f","type":"null"},"g":{"$id":"s/f","type":"string"}}})",
       {"null"},
       {"\"x\""}},
      {k4,
       R"({"id":"http://x.y/r","items":{"$ref":"f#/definitions/q"},"definitions":{"f":{"id":"f","definitions":{
                  "q":{"type":"null"}}}}})",
       {"[null]"},
       {"[1]"}},
      {k2020,
       R"({"enum":[{"$id":"http://x.y/e","type":"null"}],"$defs":{"a":{"const":{"$ref":"#nowhere"}}}})",
       {"{\"$id\":\"http://x.y/e\",\"type\":\"null\"}"},
       {"null"}},
      {k2020,
       R"({"$ref":"#/unknown/0","unknown":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}})",
       {"null"},
       {"1"}},
      {k2020, R"({"properties":{"$ref":{"type":"string"}}})", {"{\"$ref\":\"a\"}"}, {"{\"$ref\":1}"}},
      {k2020, R"({"$ref":"#/$defs/%25%22","$defs":{"%\"":{"type":"null"}}})", {"null"}, {"1"}},
  });
}

TEST(SchemaReader, DynamicReferences) {
  constexpr std::string_view kTree2020 = R"({"$id":"http://x.y/strict","$dynamicAnchor":"node","$ref":"tree",
      "unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$dynamicAnchor":"node","type":"object",
      "properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})";
  constexpr std::string_view kTree2019 = R"({"$id":"http://x.y/strict","$recursiveAnchor":true,"$ref":"tree",
      "unevaluatedProperties":false,"$defs":{"t":{"$id":"tree","$recursiveAnchor":true,"type":"object",
      "properties":{"data":true,"children":{"type":"array","items":{"$recursiveRef":"#"}}}}}})";
  const std::vector<std::string_view> good = {R"({"children":[{"data":1,"children":[{}]}]})", "{}"};
  const std::vector<std::string_view> bad = {R"({"children":[{"daat":1}]})", R"({"daat":1})",
                                             R"({"children":[{"children":[{"daat":1}]}]})"};
  check({
      {k2020, kTree2020, good, bad},
      {k2019, kTree2019, good, bad},
      // Not reached through the strict schema the same tree is open.
      {k2020,
       R"({"$id":"http://x.y/s","$ref":"tree","$defs":{"t":{"$id":"tree","$dynamicAnchor":"node","type":"object",
               "properties":{"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}})",
       {R"({"children":[{"daat":1}]})"},
       {R"({"children":[1]})"}},
      // A list of what depends on who refers to it.
      {k2020,
       R"({"properties":{"n":{"$ref":"numbers"},"s":{"$ref":"strings"}},"$id":"http://x.y/r","$defs":{
               "l":{"$id":"list","items":{"$dynamicRef":"#of"},"$defs":{"of":{"$dynamicAnchor":"of"}}},
               "n":{"$id":"numbers","$ref":"list","$defs":{"of":{"$dynamicAnchor":"of","type":"number"}}},
               "s":{"$id":"strings","$ref":"list","$defs":{"of":{"$dynamicAnchor":"of","type":"string"}}}}})",
       {R"({"n":[1],"s":["a"]})"},
       {R"({"n":["a"]})", R"({"s":[1]})"}},
      // Without a dynamic anchor of that name in the first target it is a plain reference.
      {k2020,
       R"({"$id":"http://x.y/r","$ref":"l","$defs":{"of":{"$dynamicAnchor":"of","type":"number"},
               "l":{"$id":"l","items":{"$dynamicRef":"#of"},"$defs":{"of":{"$anchor":"of","type":"string"}}}}})",
       {R"(["a"])"},
       {"[1]"}},
  });
}

TEST(SchemaReader, RemotesAndMetaschemas) {
  auto remotes = std::make_shared<Remotes>();
  (*remotes)["http://h/a.json"] = R"({"$defs":{"n":{"type":"null"}},"$ref":"sub/b.json"})";
  (*remotes)["http://h/sub/b.json"] = R"({"items":{"$ref":"../a.json#/$defs/n"}})";
  (*remotes)["http://h/old.json"] = R"({"$schema":"http://json-schema.org/draft-04/schema","minimum":1,
                                        "exclusiveMinimum":true})";
  (*remotes)["http://h/meta"] = R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{
      "https://json-schema.org/draft/2020-12/vocab/core":true,
      "https://json-schema.org/draft/2020-12/vocab/applicator":true,"http://h/own":false}})";
  (*remotes)["http://h/strange"] = R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{
      "http://h/own":true}})";
  (*remotes)["http://h/bad.json"] = R"([1])";
  SchemaOptions options;
  options.remotes = remotes;
  check({{k2020, R"({"$ref":"http://h/a.json"})", {"[null]"}, {"[1]"}},
         {k2020, R"({"$ref":"http://h/old.json"})", {"2"}, {"1"}},
         {k2020, R"({"$schema":"http://h/meta","minimum":2,"properties":{"a":false}})", {"1"}, {"{\"a\":1}"}}},
        options);
  EXPECT_NE(Reading(R"({"$schema":"http://h/strange"})", options).refusal().find("#/$schema $schema"),
            std::string::npos);
  EXPECT_NE(Reading(R"({"$ref":"http://h/bad.json"})", options).refusal().find("#/$ref $ref"), std::string::npos);
  EXPECT_NE(Reading(R"({"$ref":"http://h/none"})", options).refusal().find("nothing is fetched"), std::string::npos);

  check({{k2020,
          R"({"$ref":"http://json-schema.org/draft-04/schema#"})",
          {"{\"minLength\":1}"},
          {"{\"minLength\":-1}", "1"}},
         {k2020, R"({"$ref":"http://json-schema.org/draft-06/schema"})", {"{\"const\":1}", "true"}, {"{\"not\":1}"}},
         {k2020, R"({"$ref":"https://json-schema.org/draft-07/schema#"})", {"{\"if\":true}"}, {"{\"if\":1}"}},
         {k2020,
          R"({"$ref":"https://json-schema.org/draft/2019-09/schema"})",
          {"{\"items\":[{\"type\":\"null\"}]}"},
          {"{\"properties\":{\"a\":{\"minLength\":-1}}}", "{\"type\":\"x\"}"}},
         {k2020,
          R"({"$ref":"https://json-schema.org/draft/2020-12/schema"})",
          {"{\"items\":{\"type\":\"null\"}}"},
          {"{\"properties\":{\"a\":{\"minLength\":-1}}}", "{\"type\":\"x\"}", "{\"items\":[]}"}}});
  for (const Metaschema& metaschema : kMetaschemas) {
    EXPECT_TRUE(json::parse(metaschema.text).ok()) << metaschema.url;
    Reading reading(metaschema.text);
    EXPECT_TRUE(reading.accepted()) << metaschema.url << reading.refusal();
    EXPECT_TRUE(reading.valid(metaschema.text)) << metaschema.url;
  }
}

TEST(SchemaReader, RefusesByPointerAndKeyword) {
  struct Refused {
    Dialect dialect;
    std::string_view schema, where;
  };
  const std::vector<Refused> cases = {
      {k2020, R"({"$ref":"#/$defs/n","$defs":{"n":{"$ref":"#/$defs/n"}}})", "#/$defs/n/$ref $ref"},
      {k2020, R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})", "$ref $ref"},
      {k2020, R"({"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/c"}},
                  "c":{"if":{"$ref":"#/$defs/a"}}}})",
       "$ref $ref"},
      {k7, R"({"$ref":"#"})", "#/$ref $ref"},
      {k2019, R"({"$recursiveRef":"#"})", "#/$recursiveRef $recursiveRef"},
      {k2020, R"({"items":{"$ref":"#/$defs/gone"}})", "#/items/$ref $ref"},
      {k2020, R"({"items":{"$ref":"#gone"}})", "#/items/$ref $ref"},
      {k2020, R"({"items":{"$ref":"gone.json"}})", "#/items/$ref $ref"},
      {k2020, R"({"items":{"$ref":1}})", "#/items/$ref $ref"},
      {k2020, R"({"$schema":"http://json-schema.org/draft-03/schema#"})", "#/$schema $schema"},
      {k2020, R"({"properties":{"a/b c":{"minLength":-1}}})", "#/properties/a~1b%20c/minLength minLength"},
      {k2020, R"({"maxLength":1.5})", "#/maxLength maxLength"},
      {k2020, R"({"minItems":"1"})", "#/minItems minItems"},
      {k2020, R"({"minProperties":1e300})", "#/minProperties minProperties"},
      {k2020, R"({"multipleOf":0})", "#/multipleOf multipleOf"},
      {k2020, R"({"exclusiveMinimum":true})", "#/exclusiveMinimum exclusiveMinimum"},
      {k4, R"({"exclusiveMinimum":3})", "#/exclusiveMinimum exclusiveMinimum"},
      {k2020, R"({"type":"any"})", "#/type type"},
      {k2020, R"({"type":[1]})", "#/type type"},
      {k2020, R"({"enum":{}})", "#/enum enum"},
      {k2020, R"({"required":true})", "#/required required"},
      {k2020, R"({"pattern":"(a"})", "#/pattern pattern"},
      {k2020, R"({"patternProperties":{"(a":{}}})", "#/patternProperties/(a patternProperties"},
      {k2020, R"({"items":[{}]})", "#/items items"},
      {k2020, R"({"items":5})", "#/items items"},
      {k4, R"({"items":{"not":true}})", "#/items/not not"},
      {k2020, R"({"allOf":[]})", "#/allOf allOf"},
      {k2020, R"({"anyOf":{}})", "#/anyOf anyOf"},
      {k2020, R"({"anyOf":[1]})", "#/anyOf/0 anyOf"},
      {k2020, R"({"properties":[]})", "#/properties properties"},
      {k2020, R"([])", "# "},
      {k2020, R"({"a":)", "# "},
      {k2020, R"({"const":"\ud83d"})", "# "},
  };
  for (const Refused& c : cases)
    EXPECT_NE(Reading(c.schema, c.dialect).refusal().find(c.where), std::string::npos)
        << c.schema << "\n"
        << Reading(c.schema, c.dialect).refusal();
}

TEST(SchemaReader, ListsWhatItIgnores) {
  const auto ignored = [](Dialect dialect, std::string_view schema) { return Reading(schema, dialect).ignored(); };
  EXPECT_EQ(ignored(k2020, R"({"title":"t","description":"d","default":1,"examples":[],"$comment":"","readOnly":true,
                               "deprecated":true,"contentEncoding":"base64","$defs":{},"definitions":{}})"),
            "");
  EXPECT_EQ(ignored(k2020, R"({"x-y":1,"items":{"dependencies":{}},"format":"utc-millisec"})"),
            "#/x-y #/format #/items/dependencies ");
  EXPECT_EQ(ignored(k4, R"({"const":1,"examples":[],"$id":"x","if":{}})"), "#/const #/examples #/$id #/if ");
  EXPECT_EQ(ignored(k7, R"({"$ref":"#/definitions/a","title":"","minimum":1,"definitions":{"a":{}}})"), "#/minimum ");
  EXPECT_EQ(ignored(k2020, R"({"$ref":"#/$defs/a","minimum":1,"$defs":{"a":{}}})"), "");
  EXPECT_EQ(ignored(k2020, R"({"$id":"#/a"})"), "#/$id ");
  EXPECT_EQ(ignored(k2020, R"({"type":"integer","format":"int32"})"), "#/format ");
  EXPECT_EQ(ignored(k2020, R"({"items":{"$schema":"http://json-schema.org/draft-04/schema"}})"), "#/items/$schema ");
}

TEST(SchemaReader, KeepsOrderAndSimplifies) {
  Reading reading(R"({"properties":{"z":{"$ref":"#/$defs/s"},"a":{"allOf":[{"$ref":"#/$defs/s"}]},"m":{"title":"m"},
                      "f":{"enum":[]}},"$defs":{"s":{"type":"string"}}})");
  const Schema& schema = reading.schema();
  ASSERT_EQ(schema.nodes.size(), 4U);  // true, false, the root, s
  const auto& properties = schema.nodes[static_cast<size_t>(schema.root)].properties;
  ASSERT_EQ(properties.size(), 4U);
  EXPECT_EQ(properties[0].first, "z");
  EXPECT_EQ(properties[0].second, properties[1].second);
  EXPECT_EQ(schema.nodes[static_cast<size_t>(properties[0].second)].pointer, "#/$defs/s");
  EXPECT_EQ(properties[2].second, kTrueNode);
  EXPECT_EQ(properties[3].second, kFalseNode);
}

TEST(SchemaReader, SurvivesDeepAndLongSchemas) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += R"({"items":)";
  EXPECT_FALSE(Reading(deep + "true" + std::string(10'000, '}')).accepted());

  std::string chain = R"({"$ref":"#/$defs/n0","$defs":{)";
  for (int i = 0; i < 5'000; ++i)
    chain += "\"n" + std::to_string(i) + R"(":{"$ref":"#/$defs/n)" + std::to_string(i + 1) + "\"},";
  Reading long_chain(chain + R"("n5000":{"type":"null"}}})");
  ASSERT_TRUE(long_chain.accepted()) << long_chain.refusal();
  EXPECT_EQ(long_chain.schema().nodes.size(), 3U);
  EXPECT_FALSE(Reading(chain + R"("n5000":{"$ref":"#/$defs/n0"}}})").accepted());

  std::string nested;
  for (int i = 0; i < 60; ++i) nested += R"({"oneOf":[{"type":"null"},)";
  nested += "true";
  for (int i = 0; i < 60; ++i) nested += "]}";
  EXPECT_TRUE(Reading(nested).accepted());
}

// Everything that is kept per node is bounded, though names are long, ids nest and scopes multiply.
TEST(SchemaReader, BoundsItsMemory) {
  const std::string long_name(100'000, 'n');
  std::string wide = "{\"properties\":{\"" + long_name + R"(":{"anyOf":[{"minimum":0})";
  for (int i = 1; i < 5'000; ++i) wide += R"(,{"minimum":)" + std::to_string(i) + "}";
  Reading reading(wide + "]}}}");
  ASSERT_TRUE(reading.accepted()) << reading.refusal();
  for (const Node& node : reading.schema().nodes) EXPECT_LT(node.pointer.size(), 1'100U);

  EXPECT_NE(Reading("{\"$id\":\"http://x/" + long_name + "/\"}").refusal().find("#/$id $id"), std::string::npos);

  std::string many = R"({"anyOf":[true)";
  for (int i = 0; i < 110'000; ++i) many += R"(,{"x":1})";
  EXPECT_NE(Reading(many + "]}").refusal().find("100000"), std::string::npos);

  // Twelve resources that lead to each other, each with an anchor of its own: a scope for each order.
  std::string scopes = R"({"$ref":"r0","$defs":{)";
  for (int i = 0; i < 12; ++i) {
    const std::string name = std::to_string(i);
    scopes += (i > 0 ? ",\"d" : "\"d") + name + R"(":{"$id":"r)" + name + R"(","$dynamicAnchor":"a)" + name +
              R"(","properties":{)";
    for (int k = 0; k < 12; ++k)
      scopes += (k > 0 ? ",\"p" : "\"p") + std::to_string(k) + R"(":{"$ref":"r)" + std::to_string(k) + "\"}";
    scopes += "}}";
  }
  EXPECT_NE(Reading(scopes + "}}").refusal().find("100000"), std::string::npos);
}

TEST(SchemaReader, StopsWithTheFuel) {
  std::string wide = R"({"properties":{)";
  for (int i = 0; i < 2'000; ++i) wide += "\"p" + std::to_string(i) + R"(":{"type":"string"},)";
  wide += R"("q":{}}})";
  Languages languages;
  Fuel fuel(500, std::chrono::seconds(5));
  const auto result = read_schema(languages, wide, {}, fuel);
  ASSERT_EQ(result.index(), 1U);
  EXPECT_NE(std::get<1>(result).reason.find("limit"), std::string::npos);
}

TEST(SchemaReader, ReadsAnEnumOfTwentyThousandStrings) {
  std::string text = R"({"enum":["")";
  for (int i = 0; i < 20'000; ++i) text += ",\"value-" + std::to_string(i * 7919) + "\"";
  text += "]}";
  Reading reading(text);
  ASSERT_TRUE(reading.accepted()) << reading.refusal();
  EXPECT_TRUE(reading.valid("\"\""));
  EXPECT_TRUE(reading.valid("\"value-7919\""));
  EXPECT_TRUE(reading.valid("\"value-158372081\""));
  EXPECT_FALSE(reading.valid("\"value-7918\""));
  EXPECT_FALSE(reading.valid("\"value-791\""));
}

// RFC 3986, 5.4.
TEST(SchemaUri, ResolvesTheExamplesOfTheRfc) {
  constexpr std::string_view kBase = "http://a/b/c/d;p?q";
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"g:h", "g:h"},
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {";x", "http://a/b/c/;x"},
      {"g;x", "http://a/b/c/g;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"../../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {".g", "http://a/b/c/.g"},
      {"g..", "http://a/b/c/g.."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"./g/.", "http://a/b/c/g/"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/./x", "http://a/b/c/g?y/./x"},
      {"http:g", "http:g"},
  };
  for (const auto& [reference, target] : cases) EXPECT_EQ(resolve_uri(kBase, reference), target) << reference;
  EXPECT_EQ(resolve_uri("", "a/b.json"), "a/b.json");
  EXPECT_EQ(resolve_uri("http://a", "b"), "http://a/b");
  EXPECT_EQ(resolve_uri("urn:x:y", ""), "urn:x:y");
}

// RFC 6901, 5 and 6.
TEST(SchemaUri, PointersAsFragments) {
  std::string out = "#";
  for (const std::string_view token : {"", "a/b", "c%d", "e^f", "g|h", "i\\j", "k\"l", " ", "m~n", "\xC3\xA9"})
    append_pointer_token(token, out);
  EXPECT_EQ(out, "#//a~1b/c%25d/e%5Ef/g%7Ch/i%5Cj/k%22l/%20/m~0n/%C3%A9");
  const auto tokens = split_pointer(*decode_percent(out.substr(1)));
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(*tokens,
            (std::vector<std::string>{"", "a/b", "c%d", "e^f", "g|h", "i\\j", "k\"l", " ", "m~n", "\xC3\xA9"}));
  EXPECT_FALSE(split_pointer("/~2").has_value());
  EXPECT_FALSE(split_pointer("/~").has_value());
  EXPECT_FALSE(decode_percent("%4").has_value());
}

}  // namespace
}  // namespace deepinfer::grammar
