// What each keyword of JSON Schema is in each dialect: the one table behind reading, scanning for ids and the list of
// ignored keywords. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "grammar/grammar.h"

namespace deepinfer::grammar {

// clang-format off
enum class Keyword : uint8_t {
  kAdditionalItems, kAdditionalProperties, kAllOf, kAnchor, kAnyOf, kComment, kConst, kContains, kContentEncoding,
  kContentMediaType, kContentSchema, kDefault, kDefinitions, kDefs, kDependencies, kDependentRequired,
  kDependentSchemas, kDeprecated, kDescription, kDollarId, kDollarSchema, kDynamicAnchor, kDynamicRef, kElse, kEnum,
  kExamples, kExclusiveMaximum, kExclusiveMinimum, kFormat, kId, kIf, kItems, kMaxContains, kMaxItems, kMaxLength,
  kMaxProperties, kMaximum, kMinContains, kMinItems, kMinLength, kMinProperties, kMinimum, kMultipleOf, kNot, kOneOf,
  kPattern, kPatternProperties, kPrefixItems, kProperties, kPropertyNames, kReadOnly, kRecursiveAnchor, kRecursiveRef,
  kRef, kRequired, kThen, kTitle, kType, kUnevaluatedItems, kUnevaluatedProperties, kUniqueItems, kVocabulary,
  kWriteOnly,
};
// clang-format on

inline constexpr size_t kNKeywords = static_cast<size_t>(Keyword::kWriteOnly) + 1;

/// Which subschemas a keyword holds.
enum class Holds : uint8_t {
  kNoSchema,
  kSchema,
  kSchemas,          // an array of them
  kSchemaOrSchemas,  // `items` up to 2019-09
  kSchemaMap,        // an object of them
  kDependencies,     // an object of schemas and lists of names
};

enum VocabularyBit : uint8_t {
  kCoreBit = 1,
  kApplicatorBit = 2,
  kUnevaluatedBit = 4,
  kValidationBit = 8,
  kMetaDataBit = 16,
  kFormatBit = 32,
  kContentBit = 64,
};
inline constexpr uint8_t kEveryVocabulary = 127;

struct KeywordInfo {
  std::string_view name;
  Keyword keyword;
  uint8_t dialects;  // bit i: Dialect i defines it
  VocabularyBit vocabulary;
  Holds holds;
  bool annotation;  // says nothing about which values are valid
};

/// The keyword called `name` in any dialect, or nullptr.
const KeywordInfo* find_keyword(std::string_view name);
std::string_view keyword_name(Keyword keyword);

/// The rules that a resource is read by.
struct DialectRules {
  Dialect dialect = Dialect::kDraft2020;
  uint8_t vocabularies = kEveryVocabulary;  // of 2019-09 and 2020-12; older dialects have all
  bool asserts_format = false;              // the metaschema demands it

  [[nodiscard]] bool defines(const KeywordInfo& info) const {
    return (info.dialects >> static_cast<int>(dialect) & 1) != 0 && (info.vocabulary & vocabularies) != 0;
  }
  /// Siblings of $ref do not count.
  [[nodiscard]] bool ref_stands_alone() const { return dialect <= Dialect::kDraft7; }
  [[nodiscard]] Keyword id_keyword() const { return dialect == Dialect::kDraft4 ? Keyword::kId : Keyword::kDollarId; }
};

/// The dialect whose metaschema has this URL (http or https, with or without an empty fragment).
std::optional<Dialect> dialect_of_metaschema(std::string_view url);
std::string_view dialect_name(Dialect dialect);

/// Switches on what the vocabulary of 2019-09 or 2020-12 at `url` defines. False: not one of them.
bool add_vocabulary(std::string_view url, bool required, DialectRules& rules);

}  // namespace deepinfer::grammar
