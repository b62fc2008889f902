// A constraint on the text that is generated: a pattern, a JSON Schema, a grammar. Plain data; docs/GRAMMAR.md says what
// each kind enforces, bounds and refuses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace deepinfer::grammar {

enum class Dialect : uint8_t { kDraft4, kDraft6, kDraft7, kDraft2019, kDraft2020 };
enum class FormatPolicy : uint8_t { kAssert, kAnnotate };
enum class PropertyOrder : uint8_t {
  kSchema,  // declared properties in the order of the schema, then others: what generation uses
  kAny,     // any order: what `grammar check` uses
};

enum class Escapes : uint8_t {
  kNeeded,  // names, enumerated and patterned strings are spelled with no escape that could be left out: for generation
  kAny,     // every spelling: for `grammar check`
};

/// Schemas for absolute references: URL -> text of the schema. Nothing is ever fetched.
using Remotes = std::map<std::string, std::string, std::less<>>;

struct SchemaOptions {
  Dialect dialect = Dialect::kDraft2020;  // where the schema names none
  FormatPolicy formats = FormatPolicy::kAssert;
  PropertyOrder order = PropertyOrder::kSchema;
  Escapes escapes = Escapes::kNeeded;  // strings of any text take every escape anyhow
  std::shared_ptr<const Remotes> remotes;
  int32_t line_ends_max = 2;  // of whitespace in a row between JSON tokens; both 0: none
  int32_t blanks_max = 40;
};

/// What a client asked for. `source`: the pattern, schema or grammar text; choices for kChoice.
struct Constraint {
  enum class Kind : uint8_t { kRegex, kJsonSchema, kJsonObject, kEbnf, kChoice, kTagged };
  Kind kind = Kind::kJsonObject;
  std::string source;
  std::vector<std::string> choices;
  struct Region {  // kTagged: after `begin` appears in the text, `content` holds, then `end`
    std::string begin, end;
    std::shared_ptr<const Constraint> content;
  };
  std::vector<Region> regions;
  bool region_required = false;  // kTagged: the text must hold at least one region
  bool free_text = true;         // kTagged: text outside regions is free; false: regions follow each other
  SchemaOptions schema;
};

}  // namespace deepinfer::grammar
