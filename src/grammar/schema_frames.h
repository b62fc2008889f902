// Open arrays and objects of a JSON text under a schema: what is still wanted of them, which names and items may come, and
// whether they may close. Frames are interned and immutable; each knows the one around it. Knows nothing of bytes.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/schema_wants.h"
#include "grammar/tuple_table.h"

namespace deepinfer::grammar {

/// Number of a frame. kOutside is around the whole text.
using Frame = uint32_t;

/// In the place of a name that is none of the table's and need not be remembered.
inline constexpr uint32_t kForgotten = ~0u;
/// In the place of a string that equals no other, in frames that are only thought of.
inline constexpr uint32_t kFreshString = ~0u - 1;
inline constexpr Frame kOutside = 0;
inline constexpr Frame kNoFrame = ~0u;  // refused

/// Bytes to write something; kNever: it cannot be written.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 16;

/// What the keywords of some nodes say about one class of names or one place in an array.
struct ClassUse {
  struct Part {                 // of one node of the table
    bool fails = false;         // no value will do
    bool evaluates = false;     // the place counts as evaluated by the node itself
    uint32_t first = 0, n = 0;  // in `nodes`: what the value must be valid under
  };
  std::vector<Part> parts;    // as MemberTable::nodes
  std::vector<NodeId> nodes;  // resolved
};

/// The names (or places in arrays) that a set of nodes speaks about. Made once per set.
struct MemberTable {
  ValueKind kind = ValueKind::kObject;
  std::vector<NodeId> nodes;  // ascending
  // Objects
  std::vector<std::string_view> names;                             // ascending: declared, required or depended on
  std::vector<uint32_t> order, by_order;                           // name -> place in the schema's order, and back
  std::vector<uint32_t> name_ids;                                  // in StringTable
  std::vector<std::vector<std::pair<uint32_t, NodeId>>> declared;  // per name: (index of node, value's node)
  std::vector<std::vector<uint32_t>> required;                     // per node: names
  struct Dependency {
    uint32_t node, name;          // where the name is present ..
    std::vector<uint32_t> needs;  // .. these must be
  };
  std::vector<Dependency> dependencies;
  std::vector<Lang> patterns;  // distinct
  struct PatternUse {
    uint32_t pattern, node;
    NodeId value;
    bool of_names;  // names that `propertyNames` refuses
  };
  std::vector<PatternUse> pattern_uses;
  // Names of which it is not known whether `propertyNames` takes them: never offered, since a negation would take them
  // for refused ones.
  Lang unsure_names = kNothing;
  bool has_present = false;  // some atom asks for the presence of a name
  // Arrays
  uint32_t n_prefix = 0;
  std::vector<uint32_t> containing;     // indices of nodes with `contains`
  std::vector<NodeId> containing_node;  // resolved `contains` of them
  bool has_unique = false;
  // Both
  uint32_t count_max = 0;  // counts saturate here
  bool counts = false;     // a minimum or maximum is said

  std::vector<std::unique_ptr<ClassUse>> uses;      // per class, on demand
  std::unordered_map<uint64_t, Formula> evaluated;  // Frames::evaluated by class, node and whether it is the first
  TupleTable other_classes;                         // class - names.size(): numbers of the matching patterns
  struct OtherClass {
    uint32_t number;     // the class
    int64_t name_bytes;  // of a name with quotes, colon and comma
  };
  std::optional<std::vector<OtherClass>> other_ways;  // classes that have names, on demand; not all if many patterns

  [[nodiscard]] uint32_t n_words() const { return static_cast<uint32_t>(names.size() + 31) / 32; }
  [[nodiscard]] int32_t index_of(NodeId node) const;
};

/// A want of an object or an array.
struct ContainerPlan {
  Want want = kNoValue;
  std::vector<Formula> roots;  // over atoms
  Formula total = kFalseFormula;
  bool conjunction = false;  // all atoms must hold, and so will all roots: formulas never change
  bool unevaluated = false;  // some node has unevaluatedProperties or unevaluatedItems
  MemberTable* table = nullptr;
  uint32_t n_words = 0, at_used = 0, at_contained = 0, at_dead = 0, at_clauses = 0;  // of its frames
  std::vector<uint32_t>
      possible_names;             // is_plain(): bits of the names to which a value can be given; empty: not asked yet
  std::vector<Want> child_wants;  // conjunction: per class, kUnknownWant: not asked yet
  std::unordered_map<uint64_t, Lang> other_names;  // by bits of the pattern classes that may come
};

/// The names that may come next in an object.
struct NameSet {
  const MemberTable* table = nullptr;
  std::vector<uint32_t> offered;   // bits of names
  Lang others = kNothing;          // names that are none of table->names (kAnyText: all but those and the used ones)
  bool one_class = false;          // all of `others` match the same patterns:
  std::vector<uint32_t> patterns;  // these
  bool remember = false;           // `others` that the object has are not offered again
  [[nodiscard]] bool offers(uint32_t name) const { return (offered[name / 32] >> (name % 32) & 1) != 0; }
  [[nodiscard]] bool offers_any(uint32_t first, uint32_t last) const;  // in [first, last)
};

class Frames {
 public:
  explicit Frames(Wants& wants);

  [[nodiscard]] bool is_object(Frame f) const { return plan(f).table->kind == ValueKind::kObject; }
  [[nodiscard]] Frame parent(Frame f) const { return frames_.at(f)[kParent]; }
  [[nodiscard]] Want child_want(Frame f) const { return frames_.at(f)[kChildWant]; }
  /// The value that is open in the frame, or one around it, will be compared with others.
  [[nodiscard]] bool captures(Frame f) const { return f != kOutside && (frames_.at(f)[kFlags] & kCaptures) != 0; }
  [[nodiscard]] uint32_t mark(Frame f) const { return frames_.at(f)[kMark]; }
  [[nodiscard]] uint32_t list(Frame f) const { return frames_.at(f)[kList]; }
  /// Items of the frame, an array, must differ (or something else has to hold).
  [[nodiscard]] bool compares_items(Frame f) const { return f != kOutside && (frames_.at(f)[kFlags] & kUnique) != 0; }
  /// Two items of the frame can never be equal.
  bool must_differ(Frame f);
  /// (list, string) pairs: what an object has beyond declared names, or the values of an array.
  [[nodiscard]] bool lists(uint32_t list, uint32_t string) const;  // also true if the list has an unknown string
  [[nodiscard]] uint32_t list_parent(uint32_t list) const { return lists_.at(list)[0]; }
  [[nodiscard]] uint32_t list_string(uint32_t list) const { return lists_.at(list)[1]; }

  /// `kind`: kObject or kArray. kNoFrame: no such value will do.
  Frame open(Want want, ValueKind kind, Frame parent);
  /// nullptr: no name may come.
  const NameSet* names(Frame f);
  uint32_t class_of_others(Frame f, std::span<const uint32_t> patterns);
  /// Which patterns a name can match that is none of the table's; where it is not exact, other patterns may match, too, and
  /// there may be other sets.
  std::vector<std::vector<uint32_t>> pattern_sets(Frame f);
  [[nodiscard]] bool pattern_sets_are_exact(Frame f) const { return plan(f).table->patterns.size() <= kPatternsExact; }
  /// The value of a member is next. `other`: number of its name if it is not of the table's; kForgotten where the names()
  /// need not be remembered, 0 for a name that is not known.
  Frame begin_member(Frame f, uint32_t name_class, uint32_t other);
  /// What the value of that member must be; kNoValue: no such member may come.
  Want member_want(Frame f, uint32_t name_class, uint32_t other);
  /// An item is next. `mark`: what mark() shall give.
  Frame begin_item(Frame f, uint32_t mark);
  /// The open value is complete; truth of the roots of child_want(). `value`: number of its canonical text where
  /// compares_items(), else 0.
  Frame end_value(Frame f, std::span<const uint8_t> truth, uint32_t value);
  /// Whether the container may end here; then `truth` gets the truth of the roots of its want.
  bool close(Frame f, std::vector<uint8_t>& truth);

  /// It may end here, or a member or item may come.
  bool can_go_on(Frame f);

  /// False: some names were not tried, because too many patterns decide about them.
  [[nodiscard]] bool tried_all() const { return tried_all_; }

  /// Finds out ahead what every such value asks, and appends the wants of what may be in it. Nothing where that hangs on what
  /// comes before.
  void prepare(Want want, ValueKind kind, std::vector<Want>& inside);

  /// kNever if there is no such value, and less if there may be one.
  int64_t value_cost(Want want);
  int64_t value_cost(Want want, ValueKind kind);
  /// Bytes of the shortest value.
  int64_t value_bytes(Want want);

  // Bytes to the end of the whole text along a way that exists; a guess where none is found, kNever where there is none.
  // Cost: all frames around, and what is not known yet of the values that they still need.
  /// The value of the open member or item, if there is one, is next.
  int64_t finish_cost(Frame f);
  /// That value is complete; `truth` of the roots of child_want().
  int64_t after_value_cost(Frame f, std::span<const uint8_t> truth);
  /// It is a string or a number of which `langs` may follow: allowed texts, then the tracked ones of the plan. `n_bytes`: what
  /// comes in any case.
  int64_t text_end_cost(Frame f, ValueKind kind, const ScalarPlan& plan, std::span<const uint32_t> langs,
                        int64_t n_bytes);
  /// Names among the offered ones in [first, last) come without their first `n_read` bytes, the quote, the colon, ...
  int64_t name_cost(Frame f, uint32_t first, uint32_t last, size_t n_read);
  /// A name of the class comes, of which `n_bytes` are missing.
  int64_t other_name_cost(Frame f, uint32_t name_class, int64_t n_bytes);

  [[nodiscard]] int64_t n_bytes() const;

 private:
  enum Word : uint32_t {
    kParent,
    kFlags,
    kPlan,
    kChildWant,
    kChildClass,
    kCount,
    kPosition,
    kList,
    kMark,
    kFirstFormula
  };
  enum Flag : uint32_t { kCaptures = 1, kUnique = 2 };
  static constexpr Want kUnknownWant = ~0u;
  static constexpr uint32_t kNoClass = ~0u;
  static constexpr int32_t kUntainted = 1 << 20;
  static constexpr size_t kPatternsExact = 6;  // combinations of more patterns are not told apart ahead
  using Words = std::vector<uint32_t>;
  using View = std::span<const uint32_t>;

  [[nodiscard]] const ContainerPlan& plan(Frame f) const { return *plans_[frames_.at(f)[kPlan]]; }
  [[nodiscard]] ContainerPlan& plan_of(View v) const { return *plans_[v[kPlan]]; }
  ContainerPlan& plan_for(Want want, ValueKind kind);
  Words first_words(const ContainerPlan& p, uint32_t number, Frame parent);
  Words copy(Frame f) const;

  // schema_tables.cc
  MemberTable& table_for(ValueKind kind, std::span<const uint32_t> atoms);
  void fill_object_table(MemberTable& table);
  void fill_array_table(MemberTable& table);
  const ClassUse& use(MemberTable& table, uint32_t member_class);
  void use_name(const MemberTable& table, uint32_t member_class, ClassUse& use);
  void use_place(const MemberTable& table, uint32_t place, ClassUse& use);
  void add_in_place(NodeId id, ValueKind kind, std::vector<NodeId>& nodes, int32_t depth);
  void add_part(ClassUse& use, ClassUse::Part& part, NodeId node);

  // The next value
  Want child_for(View v, uint32_t member_class);
  Want conjunction_child(ContainerPlan& p, uint32_t member_class);
  Want general_child(View v, uint32_t member_class);
  Want possible_child(View v, uint32_t member_class);
  Want without_dead_ends(View v, uint32_t member_class, Want want, bool any);
  Formula can_be_own(View v, NodeId node, bool wanted, uint32_t member_class, std::vector<NodeId>& roots);
  Formula needs_of(View v, const ClassUse& use, int32_t index, NodeId node, std::vector<NodeId>& roots);
  Formula root_formula(NodeId node, std::vector<NodeId>& roots);
  bool note_name(Words& w, uint32_t name_class, uint32_t other);
  Want test_member(View v, uint32_t name_class);
  Want member_want(Frame f, uint32_t name_class, uint32_t other, Words& w);
  void find_possible_names(ContainerPlan& p);
  void offer_plain(View v, std::vector<uint32_t>& offered);
  void find_others(View v, NameSet& set);
  Lang names_of_classes(const MemberTable& table, uint64_t allowed, bool exact);
  bool repeats_matter(View v, uint32_t name_class);
  [[nodiscard]] bool is_plain(const ContainerPlan& p) const;
  uint32_t first_missing(View v);
  bool name_usable(View v, uint32_t name) const;
  bool has_name(View v, uint32_t name) const { return (v[plan_of(v).at_used + name / 32] >> (name % 32) & 1) != 0; }
  bool can_fail_later(View v, NodeId node);
  Formula total(View v);
  /// When a place counts as evaluated by a node and what it applies in place. Its own unevaluated.. does not count at depth 0.
  Formula evaluated(NodeId id, MemberTable& table, uint32_t member_class, int32_t depth);
  Formula evaluated_fresh(NodeId self, MemberTable& table, uint32_t member_class, int32_t depth);
  [[nodiscard]] bool tracked(View v, int32_t index, NodeId node);
  bool settle(Words& w, std::span<const uint8_t> truth, uint32_t value);
  void kill(Words& w, const std::vector<uint8_t>& dead);
  bool own_holds_now(View v, int32_t index);
  bool formula_holds_now(View v, Formula f);

  // schema_costs.cc: values by number
  int64_t cost_of(uint32_t slot, Want want);
  int64_t cost_inside(uint32_t slot, Want want);
  int64_t cost_fresh(uint32_t slot, Want want);
  bool is_possible(uint32_t slot, Want want);
  void settle_deferred();
  void settle_provisional();
  // schema_costs.cc: to the end of everything
  template <typename Partial, typename After>
  int64_t best_truth(std::vector<int8_t>& truth, int64_t best, int32_t& n_left, Partial& partial, After& after);
  template <typename Partial, typename After>
  int64_t best_truth(size_t n_roots, Partial&& partial, After&& after);
  int64_t finish_fresh(Frame f);
  // schema_ways.cc: to the end of one frame
  struct Choice;
  struct Search;
  struct Member;
  struct Item;
  int64_t total_cost(View v);
  bool may_end(View v);  // in some way, perhaps
  int64_t formula_cost(View v, Formula f);
  void explore(Search& s, std::vector<std::pair<Formula, bool>> goals, Choice c);
  bool decide(Search& s, NodeId node, bool holds, Choice& c, std::vector<std::pair<Formula, bool>>& goals);
  std::vector<Formula> in_order(Formula f);
  int64_t choice_cost(View v, Choice& c);
  bool can_hold(View v, NodeId node);
  int64_t object_cost(View v, const Choice& c);
  bool names_to_come(View v, const Choice& c, std::vector<uint32_t>& names);
  bool can_come(View v, const Choice& c, std::span<const Member> members, uint32_t name);
  int64_t fill(View v, const Choice& c, int64_t n_more, std::vector<Member>& members);
  bool fails_anyway(View v, NodeId node, std::span<const Member> members, int64_t n_members);
  bool object_can_fail(View v, const Choice& c, NodeId node, std::span<const Member> members, int64_t low,
                       int64_t high);
  int64_t make_fail(View v, const Choice& c, std::vector<Member>& members, int64_t n_members, int64_t high);
  const std::vector<MemberTable::OtherClass>& other_ways(MemberTable& table);
  Want class_want(View v, std::span<const NodeId> holds, std::span<const NodeId> violated, uint32_t member_class,
                  std::span<const std::pair<NodeId, bool>> more);
  int64_t member_cost(View v, const Choice& c, std::span<const NodeId> violated, uint32_t name_class);
  static int64_t name_bytes(const MemberTable& table, uint32_t name_class);
  int64_t array_cost(View v, const Choice& c);
  int64_t item_cost(View v, const Choice& c, const Item& item);
  bool array_can_fail(View v, const Choice& c, NodeId node, int64_t low, int64_t high);
  int64_t items_cost(View v, const Choice& c, int64_t n_items);

  Wants& wants_;
  Formulas& formulas_;
  bool tried_all_ = true;
  TupleTable frames_, lists_, table_keys_;
  std::vector<std::unique_ptr<ContainerPlan>> plans_;
  std::vector<uint32_t> plan_of_want_[2];  // + 1, 0: not yet
  std::vector<std::unique_ptr<MemberTable>> tables_;
  std::unordered_map<Frame, std::unique_ptr<NameSet>> names_;
  std::unordered_map<Frame, int64_t> finish_costs_;
  // Costs of wants, by exact_; slot = want * 3 + (0: any kind, 1: object, 2: array).
  std::vector<int64_t> costs_[2];
  bool exact_ = false;            // bytes of a way count; otherwise only whether there may be one
  int32_t value_depth_ = 0;       // of nested values
  int32_t explore_depth_ = 0;     // of nested choices
  int32_t finish_depth_ = 0;      // of nested frames
  bool finish_cut_ = false;       // somewhere it was too deep
  int32_t tainted_ = kUntainted;  // the outermost value that a "never" found now hangs on
  // Slots of the outermost question that were met too deep, and those whose bytes may still come down.
  std::vector<uint32_t> deferred_, provisional_;
  int64_t n_bytes_ = 0;
};

}  // namespace deepinfer::grammar
