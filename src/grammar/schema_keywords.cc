#include "grammar/schema_keywords.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace deepinfer::grammar {
namespace {

constexpr uint8_t kAll = 31;
constexpr uint8_t kOnly4 = 1;
constexpr uint8_t kUpTo7 = 7;
constexpr uint8_t kUpTo2019 = 15;
constexpr uint8_t kFrom6 = 30;
constexpr uint8_t kFrom7 = 28;
constexpr uint8_t kFrom2019 = 24;
constexpr uint8_t kOnly2019 = 8;
constexpr uint8_t kOnly2020 = 16;

/// Ascending by name.
constexpr KeywordInfo kTable[] = {
    {"$anchor", Keyword::kAnchor, kFrom2019, kCoreBit, Holds::kNoSchema, false},
    {"$comment", Keyword::kComment, kFrom7, kCoreBit, Holds::kNoSchema, true},
    {"$defs", Keyword::kDefs, kFrom2019, kCoreBit, Holds::kSchemaMap, false},
    {"$dynamicAnchor", Keyword::kDynamicAnchor, kOnly2020, kCoreBit, Holds::kNoSchema, false},
    {"$dynamicRef", Keyword::kDynamicRef, kOnly2020, kCoreBit, Holds::kNoSchema, false},
    {"$id", Keyword::kDollarId, kFrom6, kCoreBit, Holds::kNoSchema, false},
    {"$recursiveAnchor", Keyword::kRecursiveAnchor, kOnly2019, kCoreBit, Holds::kNoSchema, false},
    {"$recursiveRef", Keyword::kRecursiveRef, kOnly2019, kCoreBit, Holds::kNoSchema, false},
    {"$ref", Keyword::kRef, kAll, kCoreBit, Holds::kNoSchema, false},
    {"$schema", Keyword::kDollarSchema, kAll, kCoreBit, Holds::kNoSchema, false},
    {"$vocabulary", Keyword::kVocabulary, kFrom2019, kCoreBit, Holds::kNoSchema, false},
    {"additionalItems", Keyword::kAdditionalItems, kUpTo2019, kApplicatorBit, Holds::kSchema, false},
    {"additionalProperties", Keyword::kAdditionalProperties, kAll, kApplicatorBit, Holds::kSchema, false},
    {"allOf", Keyword::kAllOf, kAll, kApplicatorBit, Holds::kSchemas, false},
    {"anyOf", Keyword::kAnyOf, kAll, kApplicatorBit, Holds::kSchemas, false},
    {"const", Keyword::kConst, kFrom6, kValidationBit, Holds::kNoSchema, false},
    {"contains", Keyword::kContains, kFrom6, kApplicatorBit, Holds::kSchema, false},
    {"contentEncoding", Keyword::kContentEncoding, kFrom7, kContentBit, Holds::kNoSchema, true},
    {"contentMediaType", Keyword::kContentMediaType, kFrom7, kContentBit, Holds::kNoSchema, true},
    {"contentSchema", Keyword::kContentSchema, kFrom2019, kContentBit, Holds::kSchema, true},
    {"default", Keyword::kDefault, kAll, kMetaDataBit, Holds::kNoSchema, true},
    {"definitions", Keyword::kDefinitions, kAll, kCoreBit, Holds::kSchemaMap, false},
    {"dependencies", Keyword::kDependencies, kUpTo7, kApplicatorBit, Holds::kDependencies, false},
    {"dependentRequired", Keyword::kDependentRequired, kFrom2019, kValidationBit, Holds::kNoSchema, false},
    {"dependentSchemas", Keyword::kDependentSchemas, kFrom2019, kApplicatorBit, Holds::kSchemaMap, false},
    {"deprecated", Keyword::kDeprecated, kFrom2019, kMetaDataBit, Holds::kNoSchema, true},
    {"description", Keyword::kDescription, kAll, kMetaDataBit, Holds::kNoSchema, true},
    {"else", Keyword::kElse, kFrom7, kApplicatorBit, Holds::kSchema, false},
    {"enum", Keyword::kEnum, kAll, kValidationBit, Holds::kNoSchema, false},
    {"examples", Keyword::kExamples, kFrom6, kMetaDataBit, Holds::kNoSchema, true},
    {"exclusiveMaximum", Keyword::kExclusiveMaximum, kAll, kValidationBit, Holds::kNoSchema, false},
    {"exclusiveMinimum", Keyword::kExclusiveMinimum, kAll, kValidationBit, Holds::kNoSchema, false},
    {"format", Keyword::kFormat, kAll, kFormatBit, Holds::kNoSchema, false},
    {"id", Keyword::kId, kOnly4, kCoreBit, Holds::kNoSchema, false},
    {"if", Keyword::kIf, kFrom7, kApplicatorBit, Holds::kSchema, false},
    {"items", Keyword::kItems, kAll, kApplicatorBit, Holds::kSchemaOrSchemas, false},
    {"maxContains", Keyword::kMaxContains, kFrom2019, kValidationBit, Holds::kNoSchema, false},
    {"maxItems", Keyword::kMaxItems, kAll, kValidationBit, Holds::kNoSchema, false},
    {"maxLength", Keyword::kMaxLength, kAll, kValidationBit, Holds::kNoSchema, false},
    {"maxProperties", Keyword::kMaxProperties, kAll, kValidationBit, Holds::kNoSchema, false},
    {"maximum", Keyword::kMaximum, kAll, kValidationBit, Holds::kNoSchema, false},
    {"minContains", Keyword::kMinContains, kFrom2019, kValidationBit, Holds::kNoSchema, false},
    {"minItems", Keyword::kMinItems, kAll, kValidationBit, Holds::kNoSchema, false},
    {"minLength", Keyword::kMinLength, kAll, kValidationBit, Holds::kNoSchema, false},
    {"minProperties", Keyword::kMinProperties, kAll, kValidationBit, Holds::kNoSchema, false},
    {"minimum", Keyword::kMinimum, kAll, kValidationBit, Holds::kNoSchema, false},
    {"multipleOf", Keyword::kMultipleOf, kAll, kValidationBit, Holds::kNoSchema, false},
    {"not", Keyword::kNot, kAll, kApplicatorBit, Holds::kSchema, false},
    {"oneOf", Keyword::kOneOf, kAll, kApplicatorBit, Holds::kSchemas, false},
    {"pattern", Keyword::kPattern, kAll, kValidationBit, Holds::kNoSchema, false},
    {"patternProperties", Keyword::kPatternProperties, kAll, kApplicatorBit, Holds::kSchemaMap, false},
    {"prefixItems", Keyword::kPrefixItems, kOnly2020, kApplicatorBit, Holds::kSchemas, false},
    {"properties", Keyword::kProperties, kAll, kApplicatorBit, Holds::kSchemaMap, false},
    {"propertyNames", Keyword::kPropertyNames, kFrom6, kApplicatorBit, Holds::kSchema, false},
    {"readOnly", Keyword::kReadOnly, kFrom7, kMetaDataBit, Holds::kNoSchema, true},
    {"required", Keyword::kRequired, kAll, kValidationBit, Holds::kNoSchema, false},
    {"then", Keyword::kThen, kFrom7, kApplicatorBit, Holds::kSchema, false},
    {"title", Keyword::kTitle, kAll, kMetaDataBit, Holds::kNoSchema, true},
    {"type", Keyword::kType, kAll, kValidationBit, Holds::kNoSchema, false},
    {"unevaluatedItems", Keyword::kUnevaluatedItems, kFrom2019, kUnevaluatedBit, Holds::kSchema, false},
    {"unevaluatedProperties", Keyword::kUnevaluatedProperties, kFrom2019, kUnevaluatedBit, Holds::kSchema, false},
    {"uniqueItems", Keyword::kUniqueItems, kAll, kValidationBit, Holds::kNoSchema, false},
    {"writeOnly", Keyword::kWriteOnly, kFrom7, kMetaDataBit, Holds::kNoSchema, true},
};
static_assert(std::size(kTable) == kNKeywords);
static_assert(std::is_sorted(std::begin(kTable), std::end(kTable),
                             [](const KeywordInfo& a, const KeywordInfo& b) { return a.name < b.name; }));

std::string_view strip_scheme(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (url.starts_with(scheme)) return url.substr(scheme.size());
  }
  return {};
}

struct DialectUrl {
  std::string_view place, name;
};
constexpr DialectUrl kDialects[] = {
    {"json-schema.org/draft-04/schema", "draft-04"},     {"json-schema.org/draft-06/schema", "draft-06"},
    {"json-schema.org/draft-07/schema", "draft-07"},     {"json-schema.org/draft/2019-09/schema", "2019-09"},
    {"json-schema.org/draft/2020-12/schema", "2020-12"},
};

}  // namespace

const KeywordInfo* find_keyword(std::string_view name) {
  const auto* found =
      std::lower_bound(std::begin(kTable), std::end(kTable), name,
                       [](const KeywordInfo& info, std::string_view wanted) { return info.name < wanted; });
  return found != std::end(kTable) && found->name == name ? found : nullptr;
}

std::string_view keyword_name(Keyword keyword) {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kNKeywords> names;
    for (const KeywordInfo& info : kTable) names[static_cast<size_t>(info.keyword)] = info.name;
    return names;
  }();
  return kNames[static_cast<size_t>(keyword)];
}

std::optional<Dialect> dialect_of_metaschema(std::string_view url) {
  if (url.ends_with('#')) url.remove_suffix(1);
  const std::string_view place = strip_scheme(url);
  for (size_t i = 0; i < std::size(kDialects); ++i) {
    if (kDialects[i].place == place) return static_cast<Dialect>(i);
  }
  return std::nullopt;
}

std::string_view dialect_name(Dialect dialect) { return kDialects[static_cast<size_t>(dialect)].name; }

bool add_vocabulary(std::string_view url, bool required, DialectRules& rules) {
  const bool is_2019 = rules.dialect == Dialect::kDraft2019;
  const std::string_view prefix =
      is_2019 ? "json-schema.org/draft/2019-09/vocab/" : "json-schema.org/draft/2020-12/vocab/";
  std::string_view name = strip_scheme(url);
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  uint8_t bits = 0;
  if (name == "core") bits = kCoreBit;
  if (name == "applicator") bits = is_2019 ? kApplicatorBit | kUnevaluatedBit : kApplicatorBit;
  if (name == "validation") bits = kValidationBit;
  if (name == "meta-data") bits = kMetaDataBit;
  if (name == "content") bits = kContentBit;
  if (is_2019 && name == "format") bits = kFormatBit;
  if (!is_2019 && name == "unevaluated") bits = kUnevaluatedBit;
  if (!is_2019 && (name == "format-annotation" || name == "format-assertion")) bits = kFormatBit;
  if (bits == 0) return false;
  rules.vocabularies |= bits;
  if (name == "format-assertion" || (name == "format" && required)) rules.asserts_format = true;
  return true;
}

}  // namespace deepinfer::grammar
