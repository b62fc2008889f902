// Frames: ways to the end of one object or array. A way decides which keywords of the nodes in place shall hold and which
// shall fail, and then which members or items that takes. Whether there is a way at all is answered generously (what is not
// known counts as possible), its bytes are those of a way that exists. The limits here are on one container, whatever else
// has been asked.
#include "grammar/schema_ways.h"

#include <algorithm>
#include <utility>

namespace deepinfer::grammar {

int64_t Frames::total_cost(View v) {
  const ContainerPlan& p = plan_of(v);
  if (!p.conjunction) return formula_cost(v, total(v));
  Choice c;
  c.holds = p.table->nodes;
  return choice_cost(v, c);
}

bool Frames::may_end(View v) {
  const bool outer = std::exchange(exact_, false);
  const int64_t cost = total_cost(v);
  exact_ = outer;
  return cost < kNever;
}

int64_t Frames::formula_cost(View v, Formula f) {
  if (f == kFalseFormula) return kNever;
  const size_t n_nodes = plan_of(v).table->nodes.size();
  Search s{.v = v};
  s.can_hold.assign(n_nodes, -1);
  s.can_fail.assign(n_nodes, -1);
  explore(s, {{f, true}}, {});
  return s.best >= kNever && s.cut ? kSomeBytes : s.best;
}

/// The parts of a formula in an order that does not hang on when they were made.
std::vector<Formula> Frames::in_order(Formula f) {
  std::vector<Formula> parts(formulas_.args(f).begin(), formulas_.args(f).end());
  const auto key = [this](Formula part) { return formulas_.variables(part); };
  std::stable_sort(parts.begin(), parts.end(), [&](Formula a, Formula b) {
    const auto left = key(a), right = key(b);
    if (formulas_.op(a) != formulas_.op(b)) return formulas_.op(a) < formulas_.op(b);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
  return parts;
}

/// Adds the node to the choice. False: that cannot be.
bool Frames::decide(Search& s, NodeId node, bool holds, Choice& c, std::vector<std::pair<Formula, bool>>& goals) {
  if (has(holds ? c.fails : c.holds, node)) return false;
  if (has(holds ? c.holds : c.fails, node)) return true;
  const ContainerPlan& p = plan_of(s.v);
  const auto index = static_cast<size_t>(p.table->index_of(node));
  int8_t& known = (holds ? s.can_hold : s.can_fail)[index];
  if (known < 0) {
    const bool outer = std::exchange(exact_, false);
    Choice alone;
    (holds ? alone.holds : alone.fails).push_back(node);
    known = choice_cost(s.v, alone) < kNever ? 1 : 0;
    exact_ = outer;
  }
  if (known == 0) return false;
  (holds ? c.holds : c.fails).push_back(node);
  if (holds && p.unevaluated) goals.emplace_back(s.v[p.at_clauses + index], true);
  return true;
}

/// All choices that make everything in `goals` come out as wanted, as far as the limits go.
void Frames::explore(Search& s, std::vector<std::pair<Formula, bool>> goals, Choice c) {
  using Op = Formulas::Op;
  const MemberTable& table = *plan_of(s.v).table;
  std::vector<std::pair<Formula, bool>> open;  // where there is a choice
  while (!goals.empty()) {
    if (++s.n_steps > kStepsMax || !formulas_.spend()) {
      s.cut = true;
      return;
    }
    const auto [f, wanted] = goals.back();
    goals.pop_back();
    const Op o = formulas_.op(f);
    if (o == Op::kFalse || o == Op::kTrue) {
      if ((o == Op::kTrue) != wanted) return;
    } else if (o == Op::kNot) {
      goals.emplace_back(formulas_.args(f)[0], !wanted);
    } else if (o == Op::kVariable) {
      const uint32_t atom = formulas_.variable_of(f);
      if (Atom::tag(atom) == Atom::kOwn) {
        if (!decide(s, Atom::node(atom), wanted, c, goals)) return;
        continue;
      }
      const auto found = std::find(table.name_ids.begin(), table.name_ids.end(), Atom::name(atom));
      if (found == table.name_ids.end()) continue;
      const auto name = static_cast<uint32_t>(found - table.name_ids.begin());
      if (has_name(s.v, name) ? !wanted : has(wanted ? c.absent : c.present, name)) return;
      if (!has_name(s.v, name)) (wanted ? c.present : c.absent).push_back(name);
    } else if (o == (wanted ? Op::kAll : Op::kAny)) {
      for (const Formula part : formulas_.args(f)) goals.emplace_back(part, wanted);
    } else {
      open.emplace_back(f, wanted);
    }
  }
  const auto is_decided = [&](const std::pair<Formula, bool>& choice) {  // some part is as it shall be
    const Formula f = choice.first;
    const bool wanted = choice.second;
    const auto parts = formulas_.args(f);
    return formulas_.op(f) != Op::kOne && std::any_of(parts.begin(), parts.end(), [&](Formula part) {
             const bool negated = formulas_.op(part) == Op::kNot;
             if (negated) part = formulas_.args(part)[0];
             if (formulas_.op(part) != Op::kVariable) return false;
             const uint32_t atom = formulas_.variable_of(part);
             return Atom::tag(atom) == Atom::kOwn && has(wanted != negated ? c.holds : c.fails, Atom::node(atom));
           });
  };
  std::erase_if(open, is_decided);
  if (open.empty()) {
    const int64_t cost = choice_cost(s.v, c);
    ++s.n_ways;
    if (cost < kNever) ++s.n_found;
    s.best = std::min(s.best, cost);
    return;
  }
  if (s.depth > kChoicesMax) {
    s.cut = true;
    return;
  }
  ++s.depth;
  ++explore_depth_;
  const Formula f = open.back().first;
  const bool wanted = open.back().second;
  open.pop_back();
  const std::vector<Formula> parts = in_order(f);
  // Of several ways to fail the first one will do, or else they would be multiplied.
  const int32_t n_before = wanted ? kWaysMax : s.n_found + 1;
  const auto is_enough = [&] {
    return s.cut || (s.best < kNever && (!exact_ || s.n_ways >= kWaysMax || s.n_found >= n_before));
  };
  const auto with = [&](auto&& add) {
    if (is_enough()) return;
    std::vector<std::pair<Formula, bool>> next = open;
    add(next);
    explore(s, std::move(next), c);
  };
  if (formulas_.op(f) != Op::kOne) {  // one of them is enough
    for (const Formula part : parts) {
      with([&](auto& next) { next.emplace_back(part, wanted); });
    }
  } else if (wanted) {
    for (const Formula chosen : parts) {
      with([&](auto& next) {
        for (const Formula part : parts) next.emplace_back(part, part == chosen);
      });
    }
  } else {
    with([&](auto& next) {
      for (const Formula part : parts) next.emplace_back(part, false);
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        with([&](auto& next) { next.insert(next.end(), {{parts[i], true}, {parts[k], true}}); });
      }
    }
  }
  --explore_depth_;
  --s.depth;
}

int64_t Frames::choice_cost(View v, Choice& c) {
  std::sort(c.holds.begin(), c.holds.end());
  std::sort(c.fails.begin(), c.fails.end());
  formulas_.spend(static_cast<int64_t>(1 + c.holds.size() / 8 + c.fails.size()));
  return plan_of(v).table->kind == ValueKind::kObject ? object_cost(v, c) : array_cost(v, c);
}

bool Frames::can_hold(View v, NodeId node) {
  const bool outer = std::exchange(exact_, false);
  Choice c;
  c.holds.push_back(node);
  const int64_t cost = choice_cost(v, c);
  exact_ = outer;
  return cost < kNever;
}

/// What is wanted of a member or an item of the class: validity under what `holds` says of it, under or not under `more`, and
/// under not all that each of `violated` says.
Want Frames::class_want(View v, std::span<const NodeId> holds, std::span<const NodeId> violated, uint32_t member_class,
                        std::span<const std::pair<NodeId, bool>> more) {
  ContainerPlan& p = plan_of(v);
  if (p.conjunction && violated.empty() && more.empty()) return conjunction_child(p, member_class);
  const ClassUse& u = use(*p.table, member_class);
  const auto part_of = [&](NodeId node) -> const ClassUse::Part& {
    return u.parts[static_cast<size_t>(p.table->index_of(node))];
  };
  const auto nodes_of = [&](const ClassUse::Part& part) { return std::span(u.nodes).subspan(part.first, part.n); };
  std::vector<NodeId> roots;
  for (const NodeId node : holds) {
    const ClassUse::Part& part = part_of(node);
    if (part.fails) return kNoValue;
    roots.insert(roots.end(), nodes_of(part).begin(), nodes_of(part).end());
  }
  for (const NodeId node : violated) {
    const ClassUse::Part& part = part_of(node);
    if (!part.fails && part.n == 0) return kNoValue;
    roots.insert(roots.end(), nodes_of(part).begin(), nodes_of(part).end());
  }
  for (const auto& [node, is] : more) {
    if (node == (is ? kFalseNode : kTrueNode)) return kNoValue;
    if (node != kTrueNode && node != kFalseNode) roots.push_back(node);
  }
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  const auto root = [&](NodeId node) {
    const auto found = std::lower_bound(roots.begin(), roots.end(), node);
    return formulas_.variable(static_cast<uint32_t>(found - roots.begin()));
  };
  std::vector<Formula> all;
  for (const NodeId node : holds) {
    for (const NodeId child : nodes_of(part_of(node))) all.push_back(root(child));
  }
  for (const NodeId node : violated) {
    const ClassUse::Part& part = part_of(node);
    if (part.fails) continue;
    std::vector<Formula> both;
    for (const NodeId child : nodes_of(part)) both.push_back(root(child));
    all.push_back(formulas_.negation(formulas_.all(both)));
  }
  for (const auto& [node, is] : more) {
    if (node == kTrueNode || node == kFalseNode) continue;
    all.push_back(is ? root(node) : formulas_.negation(root(node)));
  }
  return wants_.want(formulas_.all(all), roots);
}

}  // namespace deepinfer::grammar
