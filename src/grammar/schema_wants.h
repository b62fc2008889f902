// What is wanted of one JSON value: a formula over the truth of the subschemas ("roots") that apply to it. Expands schemas
// in place (allOf, anyOf, oneOf, not, if, dependentSchemas) into formulas over their own keywords, and turns what is
// wanted of strings and numbers into languages. Everything on demand and remembered.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/language.h"
#include "grammar/schema.h"
#include "grammar/schema_formula.h"
#include "grammar/tuple_table.h"

namespace deepinfer::grammar {

inline constexpr int64_t kEscapeBytes = 6;  // of one character that must be escaped, at most

enum class ValueKind : uint8_t { kNull, kTrue, kFalse, kNumber, kString, kObject, kArray };
inline constexpr size_t kNValueKinds = 7;

/// Number of a pair (formula over root indices that must come out true, roots).
using Want = uint32_t;
inline constexpr Want kNoValue = 0;   // nothing will do
inline constexpr Want kAnyValue = 1;  // everything will, and nobody asks about it afterwards

/// Variables of expanded formulas: the own keywords of a node; a name is present in the object; the array item being
/// looked at is valid under the node's `contains`.
struct Atom {
  enum Tag : uint32_t { kOwn = 0, kPresent = 1, kContained = 2 };
  static uint32_t own(NodeId node) { return static_cast<uint32_t>(node) << 2 | kOwn; }
  static uint32_t present(uint32_t name) { return name << 2 | kPresent; }
  static uint32_t contained(NodeId node) { return static_cast<uint32_t>(node) << 2 | kContained; }
  static Tag tag(uint32_t variable) { return static_cast<Tag>(variable & 3); }
  static NodeId node(uint32_t variable) { return static_cast<NodeId>(variable >> 2); }
  static uint32_t name(uint32_t variable) { return variable >> 2; }
};

/// Strings by number; 0 is a string that is not known.
class StringTable {
 public:
  StringTable() { strings_.emplace_back(); }
  uint32_t intern(std::string_view text);
  [[nodiscard]] const std::string& at(uint32_t id) const { return strings_[id]; }
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }

 private:
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
  int64_t n_bytes_ = 0;
};

/// A want as it concerns strings or numbers.
struct ScalarPlan {
  enum Truth : uint8_t { kIsFalse, kIsTrue, kTracked };
  Lang allowed = kNothing;                  // texts (decoded) or spellings that will do
  int32_t min_length = 0, max_length = -1;  // on top, strings only, and only where `allowed` is kAnyText
  std::vector<uint8_t> truth;               // of the roots, if the value is allowed
  std::vector<Lang> tracked;                // of the roots with kTracked, in order: texts under which they are true
};

class Wants {
 public:
  /// Texts for which a formula surely holds, and those for which it may: for all others it surely does not.
  struct Bounds {
    Lang surely, maybe;
    [[nodiscard]] bool exact() const { return surely == maybe; }
  };

  Wants(Languages& languages, const Schema& schema, PropertyOrder order);

  [[nodiscard]] const Node& node(NodeId id) const { return schema_.nodes[static_cast<size_t>(id)]; }
  [[nodiscard]] NodeId root() const { return schema_.root; }
  /// The node that says the same without being only a reference; kTrueNode and kFalseNode where it is evident.
  NodeId resolve(NodeId id);
  /// The formula over atoms that a value of `kind` is valid under `id`. Constant for null, true and false.
  Formula expand(NodeId id, ValueKind kind);
  /// The own keywords of a node can fail for values of `kind`, whose type is allowed.
  bool has_own(NodeId id, ValueKind kind);

  /// `roots` resolved, without kTrueNode and kFalseNode. kNoValue if `ok` is false.
  Want want(Formula ok, std::span<const NodeId> roots);
  [[nodiscard]] Formula ok(Want want) const { return wants_.at(want)[0]; }
  [[nodiscard]] std::span<const uint32_t> roots(Want want) const { return wants_.at(want).subspan(1); }
  /// ok() over atoms of values of `kind`.
  Formula total(Want want, ValueKind kind);

  /// One subschema at most decides about each kind of value: what is asked of the want is soon answered.
  bool is_simple(Want want);
  /// kind: kNumber or kString. Stays valid as long as this.
  const ScalarPlan& scalar(Want want, ValueKind kind);
  /// The same without the given texts (of strings) or values (of numbers).
  ScalarPlan scalar_without(const ScalarPlan& plan, ValueKind kind, std::span<const std::string* const> values);
  /// Whether null, true or false will do; then `truth` gets the truth of the roots.
  bool literal(Want want, ValueKind kind, std::vector<uint8_t>& truth);
  bool is_any_number(Lang spellings);
  /// Bytes of one of the texts of `rest`, or ends of texts, in a JSON string: without any escape, or with all that it may take.
  int64_t string_bytes(Lang rest);
  /// The same for one text.
  static int64_t string_bytes(std::string_view text);
  /// Those of the texts, or ends of texts, that need no escapes.
  Lang plain_texts(Lang rest);
  /// Texts of strings that are valid under a formula over atoms.
  Bounds texts_of(Formula f) { return bounds_of(f, ValueKind::kString); }

  /// Something was too deep or too large: results are "false" since.
  [[nodiscard]] bool overflown() const { return formulas.overflown() || overflown_; }
  [[nodiscard]] int64_t n_bytes() const;

  Formulas formulas;
  Languages& languages;
  StringTable strings;
  const PropertyOrder order;

 private:
  static constexpr int32_t kDepthMax = 128;

  Formula expand_fresh(const Node& node, NodeId id, ValueKind kind);
  Bounds bounds_of(Formula f, ValueKind kind);
  Bounds bounds_of_own(NodeId id, ValueKind kind);
  Bounds bounds_of_parts(Formulas::Op op, std::span<const Bounds> parts);
  Lang any_number();
  void find_truth(Want want, ValueKind kind, ScalarPlan& plan);
  Lang unsure_texts(Want want, ValueKind kind, const ScalarPlan& plan);

  const Schema& schema_;
  TupleTable wants_;
  std::vector<int32_t> resolved_;  // -1: not yet
  std::vector<Formula> expanded_;  // per node and kind
  std::array<std::vector<std::unique_ptr<ScalarPlan>>, 2> scalars_;
  std::array<std::unordered_map<Formula, Bounds>, 2> bounds_of_;
  Lang any_number_ = kNothing, plain_ = kNothing;
  bool has_any_number_ = false, overflown_ = false;
  int32_t depth_ = 0;
};

}  // namespace deepinfer::grammar
