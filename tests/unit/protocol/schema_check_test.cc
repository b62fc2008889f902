#include "protocol/schema_check.h"

#include <gtest/gtest.h>

#include <string>

namespace deepinfer::protocol {
namespace {

std::string problem_of(std::string_view schema) {
  const auto value = json::parse(schema);
  EXPECT_TRUE(value) << schema;
  return find_schema_problem(*value).value_or("none");
}

TEST(SchemaCheck, AcceptsWhatTheMetaSchemaDoes) {
  for (const char* schema : {
           R"(true)",
           R"({})",
           R"({"type":["string","null"],"enum":[],"minLength":2.0,"maxLength":1e2})",
           R"({"properties":{"type":{"type":"string"},"$ref":{}},"required":["type"]})",
           R"({"additionalProperties":false,"items":true,"anyOf":[{"const":null}]})",
           R"({"dependencies":{"a":["b"],"c":{}},"dependentRequired":{"a":["b"]}})",
           R"({"unheard_of":5,"additionalItems":5,"nullable":"yes"})",  // unknown here
           R"({"default":{"type":"foo"},"enum":[{"type":"foo"}],"const":{"$ref":"#/gone"}})",
           R"({"type":"foo","type":"object"})",  // the last one counts
           R"({"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]})",
           R"({"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":true,"minimum":1,
              "additionalProperties":false})",
       })
    EXPECT_EQ(problem_of(schema), "none") << schema;
}

TEST(SchemaCheck, NamesThePlaceOfAWrongKeyword) {
  const auto starts_with = [](std::string_view schema, std::string_view start) {
    const std::string problem = problem_of(schema);
    EXPECT_TRUE(problem.starts_with(start)) << schema << " -> " << problem;
  };
  starts_with(R"("object")", "\"object\" is not an object");
  starts_with(R"({"type":"objekt"})", "type: \"objekt\" is not");
  starts_with(R"({"type":[]})", "type: ");
  starts_with(R"({"type":["string","string"]})", "type: ");
  starts_with(R"({"properties":{"a":{"items":{"minLength":-1}}}})", "properties.\"a\".items.minLength: ");
  starts_with(R"({"minLength":1.5})", "minLength: ");
  starts_with(R"({"multipleOf":0})", "multipleOf: ");
  starts_with(R"({"required":["a","a"]})", "required: ");
  starts_with(R"({"required":true})", "required: ");
  starts_with(R"({"items":[{}]})", "items: ");  // prefixItems since 2020-12
  starts_with(R"({"oneOf":[{},5]})", "oneOf.1: ");
  starts_with(R"({"allOf":[]})", "allOf: ");
  starts_with(R"({"dependencies":{"a":["b","b"]}})", "dependencies.\"a\": ");
  starts_with(R"({"exclusiveMinimum":true})", "exclusiveMinimum: ");
  starts_with(R"({"description":null})", "description: ");
  starts_with(R"({"$schema":"http://json-schema.org/draft-04/schema#","required":[]})", "required: ");
  starts_with(R"({"$schema":"http://json-schema.org/draft-04/schema#","not":true})", "not: ");
  starts_with(R"({"$schema":"https://example.org/mine"})", "$schema: \"https://example.org/mine\" is no known dialect");
  starts_with(R"({"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMinimum":5})", "exclusiveMinimum: ");
}

TEST(SchemaCheck, FollowsReferencesInsideTheSchemaOnly) {
  EXPECT_EQ(problem_of(R"({"$ref":"#"})"), "none");
  EXPECT_EQ(problem_of(R"({"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{}}})"), "none");
  EXPECT_EQ(problem_of(R"({"$ref":"#/anyOf/0","anyOf":[{}]})"), "none");
  EXPECT_EQ(problem_of(R"({"$ref":"#here","$defs":{"a":{"$anchor":"here"}}})"), "none");
  EXPECT_EQ(problem_of(R"({"$id":"http://a/b","$ref":"http://a/b#/$defs/x","$defs":{"x":{}}})"), "none");
  for (const char* reference : {"#/$defs/b", "#/anyOf/0", "#there", "http://elsewhere/x.json", "other.json#/a"})
    EXPECT_NE(problem_of(R"({"$defs":{"a":{"$anchor":"here"}},"$ref":")" + std::string(reference) + "\"}"), "none")
        << reference;
}

}  // namespace
}  // namespace deepinfer::protocol
