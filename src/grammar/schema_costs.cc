// Frames: how long the shortest way to the end is, and whether there is one at all (a least fixpoint: a value that can
// only be written with itself inside cannot be written). Upper bounds where alternatives share names; where it gives up
// (too deep, too much) it says "some bytes".
#include <algorithm>
#include <utility>

#include "grammar/schema_frames.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kUnknownCost = -1, kBusy = -2;
constexpr int64_t kSomeBytes = 1000;    // there may be a way; nobody knows
constexpr int32_t kCallDepthMax = 120;  // nested calls, of about 300 bytes of stack
constexpr int64_t kStepsMax = 20'000;   // per question
constexpr int64_t kGuessedBytes = 16;
constexpr int64_t kOtherNameBytes = 8;  // a name that nobody declared, with quotes, colon and comma

int64_t plus(int64_t a, int64_t b) { return std::min(kNever, a + b); }

int64_t times(int64_t n, int64_t cost) {
  if (n <= 0) return 0;
  return cost >= kNever || n > kNever / std::max<int64_t>(cost, 1) ? kNever : n * cost;
}

/// Counts nested calls for as long as it lives.
class Depth {
 public:
  explicit Depth(int32_t& depth) : depth_(depth) { ++depth_; }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int32_t& depth_;
};

}  // namespace

int64_t Frames::value_cost(Want want) {
  if (want == kNoValue) return kNever;
  if (want == kAnyValue) return 1;
  return cost_of(want * 3, want);
}

int64_t Frames::value_cost(Want want, ValueKind kind) {
  if (want == kNoValue) return kNever;
  if (want == kAnyValue) return 2;
  return cost_of(want * 3 + (kind == ValueKind::kObject ? 1 : 2), want);
}

int64_t Frames::value_bytes(Want want) {
  exact_ = true;
  const int64_t bytes = value_cost(want);
  exact_ = false;
  return bytes;
}

/// One step more of the question that the outermost call asked: each gets the same number, whatever was asked before.
bool Frames::cost_too_much() {
  if (cost_depth_ == 0) cost_steps_ = 0;
  return !formulas_.spend() || cost_depth_ > kCallDepthMax || ++cost_steps_ > kStepsMax;
}

int64_t Frames::cost_of(uint32_t slot, Want want) {
  auto& costs = costs_[exact_ ? 1 : 0];
  if (slot >= costs.size()) costs.resize(slot + slot / 2 + 32, kUnknownCost);
  if (costs[slot] >= 0) return costs[slot];
  if (costs[slot] <= kBusy) {  // inside itself
    tainted_ = std::min(tainted_, static_cast<int32_t>(kBusy - costs[slot]));
    return kNever;
  }
  if (cost_too_much()) return kSomeBytes;
  const Depth depth(cost_depth_);
  const int32_t outer_tainted = tainted_;
  tainted_ = kUntainted;
  costs[slot] = kBusy - value_depth_;
  ++value_depth_;
  const std::vector<uint32_t> outer = std::exchange(to_come_, {});
  const int64_t cost = cost_fresh(slot, want);
  to_come_ = outer;
  --value_depth_;
  const bool certain = cost < kNever || tainted_ >= value_depth_;  // hangs on nothing further out
  costs_[exact_ ? 1 : 0][slot] = certain ? cost : kUnknownCost;
  tainted_ = certain ? outer_tainted : std::min(outer_tainted, tainted_);
  return cost;
}

int64_t Frames::cost_fresh(uint32_t slot, Want want) {
  if (slot % 3 != 0) {
    const ValueKind kind = slot % 3 == 1 ? ValueKind::kObject : ValueKind::kArray;
    ContainerPlan& p = plan_for(want, kind);
    if (p.total == kFalseFormula) return kNever;
    const uint32_t number = plan_of_want_[slot % 3 - 1][want] - 1;
    return plus(2, total_cost(first_words(p, number, kOutside)));
  }
  int64_t best = kNever;
  std::vector<uint8_t> truth;
  for (const ValueKind kind : {ValueKind::kNull, ValueKind::kTrue, ValueKind::kFalse}) {
    if (wants_.literal(want, kind, truth)) best = std::min<int64_t>(best, kind == ValueKind::kFalse ? 5 : 4);
  }
  for (const ValueKind kind : {ValueKind::kNumber, ValueKind::kString}) {
    if (!exact_ && best < kNever) return best;
    const ScalarPlan& plan = wants_.scalar(want, kind);
    if (plan.allowed == kNothing) continue;
    int64_t bytes = exact_ ? wants_.languages.shortest(plan.allowed) : 1;
    if (kind == ValueKind::kString) bytes = std::max<int64_t>(bytes, plan.min_length) + 2;
    best = std::min(best, bytes);
  }
  if (!exact_ && best < kNever) return best;
  best = std::min(best, cost_of(want * 3 + 1, want));
  if (!exact_ && best < kNever) return best;
  return std::min(best, cost_of(want * 3 + 2, want));
}

int64_t Frames::total_cost(View v) {
  const ContainerPlan& p = plan_of(v);
  if (!p.conjunction) return formula_cost(v, total(v), true);
  int64_t sum = 0;
  for (const NodeId node : p.table->nodes) {
    sum = plus(sum, own_cost(v, node, true));
    if (sum >= kNever) break;
  }
  return sum;
}

int64_t Frames::formula_cost(View v, Formula f, bool wanted) {
  using Op = Formulas::Op;
  const Op o = formulas_.op(f);
  if (o == Op::kFalse || o == Op::kTrue) return (o == Op::kTrue) == wanted ? 0 : kNever;
  if (cost_too_much()) return kSomeBytes;
  const Depth depth(cost_depth_);
  if (o == Op::kNot) return formula_cost(v, formulas_.args(f)[0], !wanted);
  if (o == Op::kVariable) {
    const uint32_t atom = formulas_.variable_of(f);
    if (Atom::tag(atom) == Atom::kOwn) return own_cost(v, Atom::node(atom), wanted);
    const MemberTable& table = *plan_of(v).table;
    for (uint32_t name = 0; name < table.name_ids.size(); ++name) {
      if (table.name_ids[name] != Atom::name(atom)) continue;
      if (has_name(v, name)) return wanted ? 0 : kNever;
      return !wanted ? 0 : name_usable(v, name) ? kOtherNameBytes : kNever;
    }
    return 0;
  }
  const auto parts = formulas_.args(f);
  if (o == Op::kOne && wanted) {  // one of them, none of the others
    int64_t none = 0, best = kNever;
    std::vector<int64_t> is_false(parts.size());
    size_t n_never = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      is_false[i] = formula_cost(v, parts[i], false);
      if (is_false[i] >= kNever) {
        ++n_never;
      } else {
        none = plus(none, is_false[i]);
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool must = is_false[i] >= kNever;
      if (n_never > (must ? 1 : 0)) continue;
      best = std::min(best, plus(formula_cost(v, parts[i], true), none - (must ? 0 : is_false[i])));
    }
    return best;
  }
  if (o == Op::kAll && wanted) return all_cost(v, parts);
  int64_t sum = 0, best = kNever;
  for (const Formula part : parts) {
    const int64_t cost = formula_cost(v, part, wanted);
    sum = plus(sum, cost);
    best = std::min(best, cost);
  }
  if (o == Op::kOne) return std::min(sum, two_true(v, parts));  // none, or more than one
  return o == Op::kAny && !wanted ? sum : best;
}

/// All parts are wanted: the names that some need are there, with any value, when the others are looked at.
int64_t Frames::all_cost(View v, std::span<const Formula> parts) {
  const ContainerPlan& p = plan_of(v);
  const auto is_own = [&](Formula part) {
    return formulas_.op(part) == Formulas::Op::kVariable && Atom::tag(formulas_.variable_of(part)) == Atom::kOwn;
  };
  Words w(v.begin(), v.end());
  std::vector<uint32_t> missing;
  int64_t sum = 0;
  for (const Formula part : parts) {
    if (!is_own(part)) continue;
    sum = plus(sum, formula_cost(v, part, true));
    if (sum >= kNever) return kNever;
    if (p.table->kind == ValueKind::kObject) {
      missing_names(v, p.table->index_of(Atom::node(formulas_.variable_of(part))), missing);
    }
  }
  for (const uint32_t name : missing) {
    if (has_name(w, name)) continue;
    w[p.at_used + name / 32] |= 1u << (name % 32);
    w[kCount] = std::min(w[kCount] + 1, p.table->count_max);
  }
  const std::vector<uint32_t> outer = std::exchange(to_come_, missing);
  for (const Formula part : parts) {
    if (!is_own(part) && sum < kNever) sum = plus(sum, formula_cost(w, part, true));
  }
  to_come_ = outer;
  return sum;
}

int64_t Frames::two_true(View v, std::span<const Formula> parts) {
  int64_t best = kNever, second = kNever;
  for (const Formula part : parts) {
    const int64_t cost = formula_cost(v, part, true);
    second = std::min(second, std::max(cost, best));
    best = std::min(best, cost);
  }
  return plus(best, second);
}

int64_t Frames::own_cost(View v, NodeId node, bool wanted) {
  const ContainerPlan& p = plan_of(v);
  const int32_t index = p.table->index_of(node);
  if (!wanted) {
    if (!own_holds_now(v, index)) return 0;
    return can_fail_later(v, node) ? kGuessedBytes : kNever;
  }
  if (cost_too_much()) return kSomeBytes;
  const Depth depth(cost_depth_);
  int64_t cost = p.table->kind == ValueKind::kObject ? object_cost(v, index) : array_cost(v, index);
  if (p.unevaluated && cost < kNever) {
    cost = plus(cost, formula_cost(v, v[p.at_clauses + static_cast<uint32_t>(index)], true));
  }
  return cost;
}

bool Frames::missing_names(View v, int32_t index, std::vector<uint32_t>& names) {
  const MemberTable& table = *plan_of(v).table;
  const auto i = static_cast<uint32_t>(index);
  const auto add = [&](uint32_t name) {
    if (!has_name(v, name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const uint32_t name : table.required[i]) {
    if (!has_name(v, name)) names.push_back(name);
  }
  for (bool more = !table.dependencies.empty(); more;) {
    const size_t n_before = names.size();
    for (const MemberTable::Dependency& d : table.dependencies) {
      if (d.node != i) continue;
      if (!has_name(v, d.name) && std::find(names.begin(), names.end(), d.name) == names.end()) continue;
      for (const uint32_t need : d.needs) add(need);
    }
    more = names.size() > n_before;
  }
  return std::all_of(names.begin(), names.end(), [&](uint32_t name) { return name_usable(v, name); });
}

int64_t Frames::member_cost(View v, int32_t index, uint32_t name_class) {
  ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const int64_t name_bytes =
      name_class < table.names.size() ? static_cast<int64_t>(table.names[name_class].size()) + 4 : kOtherNameBytes;
  Want want;
  if (p.conjunction) {
    want = conjunction_child(p, name_class);
  } else {
    const ClassUse& u = use(*p.table, name_class);
    const ClassUse::Part& part = u.parts[static_cast<size_t>(index)];
    if (part.fails) return kNever;
    std::vector<Formula> all;
    for (uint32_t k = 0; k < part.n; ++k) all.push_back(formulas_.variable(k));
    want = wants_.want(formulas_.all(all), std::span<const NodeId>(u.nodes).subspan(part.first, part.n));
  }
  return plus(name_bytes, value_cost(want));
}

int64_t Frames::object_cost(View v, int32_t index) {
  MemberTable& table = *plan_of(v).table;
  const Node& n = wants_.node(table.nodes[static_cast<size_t>(index)]);
  std::vector<uint32_t> missing;
  if (!missing_names(v, index, missing)) return kNever;
  const auto n_missing = static_cast<int64_t>(missing.size());
  formulas_.spend(n_missing + 1);
  const int64_t count = v[kCount];
  if (n.max_properties >= 0 && std::max(count + n_missing, n.min_properties) > n.max_properties) return kNever;
  int64_t sum = 0;
  for (const uint32_t name : missing) {
    sum = plus(sum, member_cost(v, index, name));
    if (sum >= kNever) return kNever;
  }
  int64_t n_more = n.min_properties - count - n_missing;
  if (n_more <= 0) return sum;
  for (uint32_t name = 0; name < table.names.size() && n_more > 0; ++name) {
    if (!name_usable(v, name) || std::find(missing.begin(), missing.end(), name) != missing.end()) continue;
    const int64_t cost = member_cost(v, index, name);
    if (cost >= kNever) continue;
    sum = plus(sum, cost);
    --n_more;
  }
  if (n_more <= 0) return sum;
  int64_t other = kNever;  // any number of names of one class, as if it held that many
  for (uint32_t p = 0; p <= table.patterns.size() && other >= kNever; ++p) {
    std::vector<uint32_t> patterns;
    if (p > 0) patterns.push_back(p - 1);
    const uint32_t name_class = static_cast<uint32_t>(table.names.size()) + table.other_classes.intern(patterns);
    other = std::min(other, member_cost(v, index, name_class));
  }
  return plus(sum, times(n_more, other));
}

int64_t Frames::item_cost(View v, uint32_t place, int32_t index, bool contained) {
  ContainerPlan& p = plan_of(v);
  Want want;
  if (p.conjunction) {
    want = conjunction_child(p, place);
  } else {
    const ClassUse& u = use(*p.table, place);
    const ClassUse::Part& part = u.parts[static_cast<size_t>(index)];
    if (part.fails) return kNever;
    std::vector<NodeId> roots;
    std::vector<Formula> all;
    for (uint32_t k = 0; k < part.n; ++k) all.push_back(root_formula(u.nodes[part.first + k], roots));
    if (contained) {
      const Node& n = wants_.node(p.table->nodes[static_cast<size_t>(index)]);
      all.push_back(root_formula(wants_.resolve(*n.contains), roots));
    }
    want = wants_.want(formulas_.all(all), roots);
  }
  return plus(1, value_cost(want));
}

int64_t Frames::array_cost(View v, int32_t index) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const Node& n = wants_.node(table.nodes[static_cast<size_t>(index)]);
  const int64_t count = v[kCount];
  int64_t n_contained = 0;
  for (size_t c = 0; c < table.containing.size(); ++c) {
    if (table.containing[c] == static_cast<uint32_t>(index)) n_contained = n.min_contains - v[p.at_contained + c];
  }
  n_contained = std::max<int64_t>(n_contained, 0);
  const int64_t n_plain = std::max<int64_t>(n.min_items - count - n_contained, 0);
  const int64_t n_prefix_left = std::max<int64_t>(table.n_prefix - count, 0);
  const auto cost_with = [&](int64_t n_before) {  // plain items, then those that `contains` asks for
    if (n.max_items >= 0 && count + n_before + n_contained > n.max_items) return kNever;
    int64_t sum = 0;
    for (int64_t i = 0; i < n_before + n_contained && sum < kNever; ++i) {
      const bool contained = i >= n_before;
      const auto place = static_cast<uint32_t>(std::min<int64_t>(count + i, table.n_prefix));
      const int64_t cost = item_cost(v, place, index, contained);
      if (place < table.n_prefix) {
        sum = plus(sum, cost);
        continue;
      }
      const int64_t n_alike = (contained ? n_before + n_contained : n_before) - i;
      sum = plus(sum, times(n_alike, cost));
      i += n_alike - 1;
    }
    return sum;
  };
  const int64_t cost = cost_with(n_plain);
  if (cost < kNever || n_contained == 0 || n_prefix_left <= n_plain) return cost;
  return cost_with(n_prefix_left);
}

int64_t Frames::cost_to_end(View v) {
  const int64_t cost = total_cost(v);
  const bool open = v[kChildClass] != kNoClass && !plan_of(v).conjunction;
  return cost >= kNever && open ? kGuessedBytes : cost;  // what fails or holds is up to the open value
}

int64_t Frames::finish_cost(Frame f) {
  exact_ = true;
  std::vector<Frame> open;
  int64_t sum = 0;
  for (; f != kOutside; f = parent(f)) {
    if (const auto found = finish_costs_.find(f); found != finish_costs_.end()) {
      sum = found->second;
      break;
    }
    open.push_back(f);
  }
  for (; !open.empty(); open.pop_back()) {
    sum = plus(sum, plus(1, cost_to_end(frames_.at(open.back()))));
    finish_costs_.emplace(open.back(), sum);
  }
  exact_ = false;
  return sum;
}

int64_t Frames::name_cost(Frame f, uint32_t first, uint32_t last, size_t n_read) {
  int64_t best = kNever;
  const NameSet* set = names(f);
  const MemberTable& table = *plan(f).table;
  for (uint32_t name = first; set != nullptr && name < last; ++name) {
    if (!set->offers(name)) continue;
    Words w = copy(f);
    if (!note_name(w, name, 0)) continue;
    w[kChildClass] = name;
    const Want want = child_for(w, name);
    exact_ = true;
    const int64_t bytes = static_cast<int64_t>(table.names[name].size() - n_read) + 2;
    best = std::min(best, plus(plus(bytes, value_cost(want)), plus(1, cost_to_end(w))));
    exact_ = false;
  }
  return best >= kNever ? kNever : plus(best, finish_cost(parent(f)));
}

int64_t Frames::other_name_cost(Frame f, int64_t n_bytes) {
  return plus(n_bytes + 2 + kOtherNameBytes, finish_cost(f));
}

}  // namespace deepinfer::grammar
