// A JSON Schema after reading: references resolved, dialects levelled, every keyword in one of the fields below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/language.h"

namespace deepinfer::grammar {

using NodeId = int32_t;
inline constexpr NodeId kTrueNode = 0;   // allows everything
inline constexpr NodeId kFalseNode = 1;  // allows nothing

enum TypeBit : uint8_t {
  kNullBit = 1,
  kBooleanBit = 2,
  kObjectBit = 4,
  kArrayBit = 8,
  kNumberBit = 16,
  kStringBit = 32
};
inline constexpr uint8_t kEveryType = 63;

/// One (sub)schema. A value is valid under it if all fields hold. Fields about another type than the value's do not
/// apply, as JSON Schema says, except `types`, `booleans` ...
struct Node {
  std::string pointer;                           // where it stands, as a URI fragment
  uint8_t types = kEveryType;                    // types that are allowed at all
  bool may_be_true = true, may_be_false = true;  // of booleans (const, enum)

  // Strings: texts are decoded characters.
  Lang text = kAnyText;  // pattern, format, const and enum together
  // Where `text` (below: `number`) leaves out some that are valid: a language that surely has them all. So that what is not
  // in it can be told to be invalid, which is what `not`, `oneOf` and `if` ask.
  std::optional<Lang> text_at_most;
  int32_t min_length = 0, max_length = -1;  // code points
  // Numbers: spellings; `integer`, limits, multipleOf, const and enum together.
  std::optional<Lang> number;  // nothing: every number
  std::optional<Lang> number_at_most;

  // Objects
  std::vector<std::pair<std::string, NodeId>> properties;
  std::vector<std::pair<Lang, NodeId>> pattern_properties;  // language of matching names
  NodeId additional_properties = kTrueNode;                 // for names in neither of the two above
  NodeId property_names = kTrueNode;
  std::vector<std::string> required;
  std::vector<std::pair<std::string, std::vector<std::string>>> dependent_required;
  std::vector<std::pair<std::string, NodeId>> dependent_schemas;  // in place, where the name is present
  int64_t min_properties = 0, max_properties = -1;
  std::optional<NodeId> unevaluated_properties;
  // Arrays
  std::vector<NodeId> prefix_items;
  NodeId items = kTrueNode;  // behind the prefix
  std::optional<NodeId> contains;
  int64_t min_contains = 1, max_contains = -1;
  int64_t min_items = 0, max_items = -1;
  bool unique_items = false;
  std::optional<NodeId> unevaluated_items;

  // In place: the same value under other nodes. References are members of all_of.
  std::vector<NodeId> all_of;
  std::vector<std::vector<NodeId>> any_of;  // one group per keyword; also enums of arrays and objects
  std::vector<std::vector<NodeId>> one_of;
  std::vector<NodeId> none_of;  // `not`
  struct Conditional {
    NodeId if_node, then_node, else_node;
  };
  std::vector<Conditional> conditionals;
  bool contains_evaluates = true;       // 2020-12: items that `contains` accepts count as evaluated
  bool has_properties_keyword = false;  // bookkeeping the reader may need for evaluated names
  // With a schema of `true` these still count all other names or items as evaluated. Only set where some node of the
  // schema has an unevaluated_properties or unevaluated_items.
  bool has_additional_properties = false;
  bool has_items = false;
};

/// All nodes of one schema and the documents it refers to.
struct Schema {
  std::vector<Node> nodes;  // 0 and 1 are kTrueNode and kFalseNode
  NodeId root = kTrueNode;
};

}  // namespace deepinfer::grammar
