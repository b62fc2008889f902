#include "protocol/schema_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace deepinfer::protocol {
namespace {

using json::Kind;
using json::Value;

// Dialects, one bit each.
constexpr uint8_t kDraft4 = 1;
constexpr uint8_t kDraft6 = 2;
constexpr uint8_t kDraft7 = 4;
constexpr uint8_t k2019 = 8;
constexpr uint8_t k2020 = 16;
constexpr uint8_t kAll = 31;
constexpr uint8_t kSince6 = kAll & ~kDraft4;
constexpr uint8_t kSince7 = kSince6 & ~kDraft6;
constexpr uint8_t kSince2019 = k2019 | k2020;
constexpr uint8_t kBefore2020 = kAll & ~k2020;

/// What a keyword may hold.
enum class Shape : uint8_t {
  kText,
  kBool,
  kNumber,
  kPositive,      // a number above 0
  kCount,         // a whole number from 0
  kArray,         // of anything
  kNames,         // strings, each once
  kNamesMap,      // an object of kNames
  kBoolMap,       // an object of booleans
  kType,          // a type's name, or some of them, each once
  kSchema,        // an object or a boolean
  kSchemas,       // at least one
  kSchemaOrAny,   // one, or an array of them
  kSchemaMap,     // an object of schemas
  kDependencies,  // an object of schemas and kNames
};

struct Keyword {
  std::string_view name;
  Shape shape;
  uint8_t dialects;
};

/// Sorted by name.
constexpr Keyword kKeywords[] = {
    {"$anchor", Shape::kText, kSince2019},
    {"$comment", Shape::kText, kSince7},
    {"$defs", Shape::kSchemaMap, kSince2019},
    {"$dynamicAnchor", Shape::kText, k2020},
    {"$dynamicRef", Shape::kText, k2020},
    {"$id", Shape::kText, kSince6},
    {"$recursiveAnchor", Shape::kBool, k2019},
    {"$recursiveRef", Shape::kText, kSince2019},
    {"$ref", Shape::kText, kAll},
    {"$schema", Shape::kText, kAll},
    {"$vocabulary", Shape::kBoolMap, kSince2019},
    {"additionalItems", Shape::kSchema, kBefore2020},
    {"additionalProperties", Shape::kSchema, kAll},
    {"allOf", Shape::kSchemas, kAll},
    {"anyOf", Shape::kSchemas, kAll},
    {"contains", Shape::kSchema, kSince6},
    {"contentEncoding", Shape::kText, kSince7},
    {"contentMediaType", Shape::kText, kSince7},
    {"contentSchema", Shape::kSchema, kSince2019},
    {"definitions", Shape::kSchemaMap, kAll},
    {"dependencies", Shape::kDependencies, kAll},
    {"dependentRequired", Shape::kNamesMap, kSince2019},
    {"dependentSchemas", Shape::kSchemaMap, kSince2019},
    {"deprecated", Shape::kBool, kSince2019},
    {"description", Shape::kText, kAll},
    {"else", Shape::kSchema, kSince7},
    {"enum", Shape::kArray, kAll},
    {"examples", Shape::kArray, kSince6},
    {"exclusiveMaximum", Shape::kBool, kDraft4},
    {"exclusiveMaximum", Shape::kNumber, kSince6},
    {"exclusiveMinimum", Shape::kBool, kDraft4},
    {"exclusiveMinimum", Shape::kNumber, kSince6},
    {"format", Shape::kText, kAll},
    {"id", Shape::kText, kDraft4},
    {"if", Shape::kSchema, kSince7},
    {"items", Shape::kSchema, k2020},
    {"items", Shape::kSchemaOrAny, kBefore2020},
    {"maxContains", Shape::kCount, kSince2019},
    {"maxItems", Shape::kCount, kAll},
    {"maxLength", Shape::kCount, kAll},
    {"maxProperties", Shape::kCount, kAll},
    {"maximum", Shape::kNumber, kAll},
    {"minContains", Shape::kCount, kSince2019},
    {"minItems", Shape::kCount, kAll},
    {"minLength", Shape::kCount, kAll},
    {"minProperties", Shape::kCount, kAll},
    {"minimum", Shape::kNumber, kAll},
    {"multipleOf", Shape::kPositive, kAll},
    {"not", Shape::kSchema, kAll},
    {"oneOf", Shape::kSchemas, kAll},
    {"pattern", Shape::kText, kAll},
    {"patternProperties", Shape::kSchemaMap, kAll},
    {"prefixItems", Shape::kSchemas, k2020},
    {"properties", Shape::kSchemaMap, kAll},
    {"propertyNames", Shape::kSchema, kSince6},
    {"readOnly", Shape::kBool, kSince7},
    {"required", Shape::kNames, kAll},
    {"then", Shape::kSchema, kSince7},
    {"title", Shape::kText, kAll},
    {"type", Shape::kType, kAll},
    {"unevaluatedItems", Shape::kSchema, kSince2019},
    {"unevaluatedProperties", Shape::kSchema, kSince2019},
    {"uniqueItems", Shape::kBool, kAll},
    {"writeOnly", Shape::kBool, kSince7},
};
constexpr size_t kNumKeywords = std::size(kKeywords);
constexpr auto kByName = [](const Keyword& a, const Keyword& b) { return a.name < b.name; };
static_assert(std::is_sorted(std::begin(kKeywords), std::end(kKeywords), kByName));

/// That which `$schema` names, else the newest; 0 for one that is not known, whose rules nobody here can follow.
uint8_t dialect_of(const Value& schema) {
  constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"draft-04/schema", kDraft4},    {"draft-06/schema", kDraft6},    {"draft-07/schema", kDraft7},
      {"draft/2019-09/schema", k2019}, {"draft/2020-12/schema", k2020}, {"schema", k2020},
  };
  const Value* name = schema.find("$schema");
  if (name == nullptr || !name->is(Kind::kString)) return k2020;
  std::string_view url = name->text;
  for (const std::string_view start : {"http://json-schema.org/", "https://json-schema.org/"}) {
    if (!url.starts_with(start)) continue;
    url.remove_prefix(start.size());
    if (url.ends_with('#')) url.remove_suffix(1);
    for (const auto& [path, dialect] : kNames)
      if (url == path) return dialect;
    return 0;
  }
  return 0;
}

bool is_type_name(const Value& value) {
  constexpr std::string_view kNames[] = {"array", "boolean", "integer", "null", "number", "object", "string"};
  return value.is(Kind::kString) && std::find(std::begin(kNames), std::end(kNames), value.text) != std::end(kNames);
}

/// All strings, each once.
bool are_names(const Value& value) {
  std::unordered_set<std::string_view> seen;
  return value.is(Kind::kArray) && std::all_of(value.items.begin(), value.items.end(), [&](const Value& item) {
           return item.is(Kind::kString) && seen.insert(item.text).second;
         });
}

bool is_type(const Value& value) {
  if (!value.is(Kind::kArray)) return is_type_name(value);
  return !value.items.empty() && are_names(value) && std::all_of(value.items.begin(), value.items.end(), is_type_name);
}

double to_double(const Value& value) {
  double number = 0;
  std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  return number;
}

/// Also 2.0 and 1e2, which are whole numbers to JSON Schema.
bool is_count(const Value& value) {
  if (!value.is(Kind::kNumber)) return false;
  const double number = to_double(value);
  return number >= 0 && (number >= 0x1p53 || number == static_cast<double>(static_cast<int64_t>(number)));
}

bool has_leaf_shape(const Value& value, Shape shape) {
  switch (shape) {
    case Shape::kText:
      return value.is(Kind::kString);
    case Shape::kBool:
      return value.is(Kind::kBool);
    case Shape::kNumber:
      return value.is(Kind::kNumber);
    case Shape::kPositive:
      return value.is(Kind::kNumber) && to_double(value) > 0;
    case Shape::kCount:
      return is_count(value);
    case Shape::kArray:
      return value.is(Kind::kArray);
    case Shape::kNames:
      return are_names(value);
    case Shape::kType:
      return is_type(value);
    case Shape::kSchemas:
      return value.is(Kind::kArray) && !value.items.empty();
    case Shape::kSchemaOrAny:
      return !value.is(Kind::kArray) || !value.items.empty();
    case Shape::kSchemaMap:
    case Shape::kDependencies:
    case Shape::kNamesMap:
    case Shape::kBoolMap:
      return value.is(Kind::kObject);
    case Shape::kSchema:
      return true;  // the walk sees to it
  }
  return false;
}

std::string_view wanted_by(Shape shape) {
  switch (shape) {
    case Shape::kText:
      return "a string";
    case Shape::kBool:
    case Shape::kBoolMap:
      return "a boolean";
    case Shape::kNumber:
      return "a number";
    case Shape::kPositive:
      return "a number above 0";
    case Shape::kCount:
      return "a whole number from 0";
    case Shape::kArray:
      return "an array";
    case Shape::kNames:
    case Shape::kNamesMap:
      return "an array of different strings";
    case Shape::kType:
      return "array, boolean, integer, null, number, object, string or several of them";
    case Shape::kSchemas:
    case Shape::kSchemaOrAny:
      return "an array of at least one schema";
    case Shape::kSchemaMap:
    case Shape::kDependencies:
    case Shape::kSchema:
      return "an object";
  }
  return "";
}

/// One schema's walk. The path of a problem is put together on the way back.
class Walk {
 public:
  explicit Walk(const Value& root) : root_(root), dialect_(dialect_of(root)) {}

  std::optional<std::string> run() {
    if (dialect_ == 0) return "$schema: " + quoted_for_message(root_.find("$schema")->text) + " is no known dialect";
    if (check_schema(root_) && check_references()) return std::nullopt;
    return path_.empty() ? problem_ : path_ + ": " + problem_;
  }

 private:
  bool fail(const Value& value, std::string_view wanted) {
    const std::string found = value.is(Kind::kString) ? quoted_for_message(value.text) : "the value";
    problem_ = found + " is not " + std::string(wanted);
    return false;
  }

  /// Notes that a problem lies below `step`. Always false.
  bool in(std::string_view step) {
    path_ = path_.empty() ? std::string(step) : std::string(step) + '.' + path_;
    return false;
  }

  bool check_schema(const Value& schema) {
    if (schema.is(Kind::kBool) && dialect_ != kDraft4) return true;
    if (!schema.is(Kind::kObject)) return fail(schema, "an object or a boolean");
    // Where a key repeats, the last one counts.
    std::array<const Value*, kNumKeywords> found{};
    for (const json::Member& member : schema.members) {
      const auto [first, last] =
          std::equal_range(std::begin(kKeywords), std::end(kKeywords), Keyword{member.key, Shape::kText, 0}, kByName);
      for (const Keyword* keyword = first; keyword != last; ++keyword)
        if ((keyword->dialects & dialect_) != 0) found[static_cast<size_t>(keyword - kKeywords)] = &member.value;
    }
    for (size_t idx = 0; idx < kNumKeywords; ++idx)
      if (found[idx] != nullptr && !check_keyword(kKeywords[idx], *found[idx], schema)) return in(kKeywords[idx].name);
    return true;
  }

  bool check_keyword(const Keyword& keyword, const Value& value, const Value& schema) {
    if (!has_leaf_shape(value, keyword.shape)) return fail(value, wanted_by(keyword.shape));
    if (keyword.shape == Shape::kText) return note_reference(keyword.name, value, schema);
    // draft-04 knows booleans in two places only, no empty list of required names, and no whole number spelt 1e1.
    const bool may_be_boolean = keyword.name == "additionalProperties" || keyword.name == "additionalItems";
    if (dialect_ == kDraft4 && may_be_boolean && value.is(Kind::kBool)) return true;
    if (dialect_ == kDraft4 && keyword.name == "required" && value.items.empty())
      return fail(value, "an array of at least one name");
    if (dialect_ == kDraft4 && keyword.shape == Shape::kCount && value.text.find_first_of(".eE") != std::string::npos)
      return fail(value, wanted_by(keyword.shape));
    if (keyword.shape == Shape::kSchema) return check_schema(value);
    if (keyword.shape == Shape::kSchemas || keyword.shape == Shape::kSchemaOrAny) return check_items(value);
    return !value.is(Kind::kObject) || check_members(keyword.shape, value);
  }

  bool check_items(const Value& value) {
    if (!value.is(Kind::kArray)) return check_schema(value);
    for (size_t idx = 0; idx < value.items.size(); ++idx)
      if (!check_schema(value.items[idx])) return in(std::to_string(idx));
    return true;
  }

  bool check_members(Shape shape, const Value& value) {
    for (const json::Member& member : value.members) {
      const bool are_names_wanted =
          shape == Shape::kNamesMap || (shape == Shape::kDependencies && member.value.is(Kind::kArray));
      bool good = true;
      if (are_names_wanted)
        good = are_names(member.value) ||
               fail(member.value, wanted_by(shape == Shape::kDependencies ? Shape::kNames : shape));
      else if (shape == Shape::kBoolMap)
        good = member.value.is(Kind::kBool) || fail(member.value, wanted_by(shape));
      else
        good = check_schema(member.value);
      if (!good) return in(quoted_for_message(member.key));
    }
    return true;
  }

  bool note_reference(std::string_view keyword, const Value& value, const Value& schema) {
    if (keyword == "$ref") references_.insert(value.text);
    if (keyword == "$anchor" || keyword == "$dynamicAnchor") anchors_.insert(value.text);
    if (keyword != "$id" && keyword != "id") return true;
    // Before 2019-09 an identifier that is only a fragment was what $anchor is now.
    if (value.text.starts_with('#'))
      anchors_.insert(std::string_view(value.text).substr(1));
    else if (&schema != &root_)
      has_inner_ids_ = true;
    return true;
  }

  /// Each must lead to a place in this schema; nothing is fetched.
  bool check_references() {
    if (has_inner_ids_) return true;  // they are relative to inner schemas then: left to who uses the schema
    const Value* id = root_.is(Kind::kObject) ? root_.find(dialect_ == kDraft4 ? "id" : "$id") : nullptr;
    for (std::string_view reference : references_) {
      const std::string_view whole = reference;
      if (id != nullptr && !id->text.empty() && reference.starts_with(id->text))
        reference.remove_prefix(id->text.size());
      if (!leads_somewhere(reference)) {
        problem_ = "the $ref " + quoted_for_message(whole) + " leads to nothing in this schema";
        return false;
      }
    }
    return true;
  }

  bool leads_somewhere(std::string_view reference) {
    if (reference.empty() || reference == "#") return true;
    if (reference[0] != '#') return false;
    if (reference[1] != '/') return anchors_.contains(reference.substr(1));
    const Value* at = &root_;
    reference.remove_prefix(1);
    while (at != nullptr && !reference.empty()) {
      const size_t n_bytes = std::min(reference.find('/', 1), reference.size());
      at = child(*at, unescaped(reference.substr(1, n_bytes - 1)));
      reference.remove_prefix(n_bytes);
    }
    return at != nullptr;
  }

  /// One step of a JSON pointer (RFC 6901) inside a fragment: %2F, ~1 and ~0.
  static std::string unescaped(std::string_view step) {
    constexpr int kHex = 16;
    std::string bytes;
    for (size_t at = 0; at < step.size(); ++at) {
      unsigned byte = 0;
      const bool is_escape =
          step[at] == '%' && at + 2 < step.size() &&
          std::from_chars(step.data() + at + 1, step.data() + at + 3, byte, kHex).ptr == step.data() + at + 3;
      bytes += is_escape ? static_cast<char>(byte) : step[at];
      if (is_escape) at += 2;
    }
    std::string out;
    for (size_t at = 0; at < bytes.size(); ++at) {
      const bool is_tilde = bytes[at] == '~' && at + 1 < bytes.size() && (bytes[at + 1] == '0' || bytes[at + 1] == '1');
      if (is_tilde) ++at;
      out += is_tilde ? (bytes[at] == '1' ? '/' : '~') : bytes[at];
    }
    return out;
  }

  const Value* child(const Value& value, const std::string& step) {
    if (value.is(Kind::kArray)) {
      size_t idx = 0;
      const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), idx);
      const bool is_index = error == std::errc() && end == step.data() + step.size();
      return is_index && idx < value.items.size() ? &value.items[idx] : nullptr;
    }
    if (!value.is(Kind::kObject)) return nullptr;
    // Many references go through one large object ($defs): it is indexed once.
    const auto [index, is_new] = indices_.try_emplace(&value);
    if (is_new)
      for (const json::Member& member : value.members) index->second.insert_or_assign(member.key, &member.value);
    const auto found = index->second.find(step);
    return found == index->second.end() ? nullptr : found->second;
  }

  const Value& root_;
  const uint8_t dialect_;
  std::string path_;
  std::string problem_;
  bool has_inner_ids_ = false;
  std::unordered_set<std::string_view> references_;
  std::unordered_set<std::string_view> anchors_;
  std::unordered_map<const Value*, std::unordered_map<std::string_view, const Value*>> indices_;
};

}  // namespace

std::optional<std::string> find_schema_problem(const json::Value& schema) { return Walk(schema).run(); }

}  // namespace deepinfer::protocol
