#include "grammar/schema_frames.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr int32_t kEvaluatedDepthMax = 160;

}  // namespace

Frames::Frames(Wants& wants) : wants_(wants), formulas_(wants.formulas) {
  frames_.intern({kOutside, 0});
  lists_.intern({0, 0});
}

Frames::Words Frames::copy(Frame f) const {
  const View v = frames_.at(f);
  return {v.begin(), v.end()};
}

Frames::Words Frames::first_words(const ContainerPlan& p, uint32_t number, Frame parent) {
  Words w(p.n_words, 0);
  w[kParent] = parent;
  w[kPlan] = number;
  w[kChildClass] = kNoClass;
  if (captures(parent)) w[kFlags] |= kCaptures;
  if (p.table->has_unique) w[kFlags] |= kCaptures | kUnique;
  std::copy(p.roots.begin(), p.roots.end(), w.begin() + kFirstFormula);
  std::fill(w.begin() + p.at_clauses, w.end(), kTrueFormula);
  return w;
}

Frame Frames::open(Want want, ValueKind kind, Frame parent) {
  if (want == kNoValue) return kNoFrame;
  const ContainerPlan& p = plan_for(want, kind);
  if (p.total == kFalseFormula || value_cost(want, kind) >= kNever) return kNoFrame;
  const uint32_t number = plan_of_want_[kind == ValueKind::kObject ? 0 : 1][want] - 1;
  return frames_.intern(first_words(p, number, parent));
}

Formula Frames::total(View v) {
  const ContainerPlan& p = plan_of(v);
  if (p.conjunction) return p.total;
  return formulas_.substitute(wants_.ok(p.want), [&](uint32_t root) { return v[kFirstFormula + root]; });
}

bool Frames::lists(uint32_t list, uint32_t string) const {
  for (; list != 0; list = list_parent(list)) {
    if (list_string(list) == string || list_string(list) == 0) return true;
  }
  return false;
}

bool Frames::must_differ(Frame f) {
  const View v = frames_.at(f);
  const ContainerPlan& p = plan_of(v);
  if (!p.table->has_unique) return false;
  return formulas_.substitute(total(v), [&](uint32_t atom) {
    const bool unique = Atom::tag(atom) == Atom::kOwn && wants_.node(Atom::node(atom)).unique_items;
    return unique ? kFalseFormula : formulas_.variable(atom);
  }) == kFalseFormula;
}

// ---- what may come next ----

Want Frames::conjunction_child(ContainerPlan& p, uint32_t member_class) {
  if (member_class >= p.child_wants.size()) p.child_wants.resize(member_class + 1, kUnknownWant);
  if (p.child_wants[member_class] != kUnknownWant) return p.child_wants[member_class];
  const ClassUse& u = use(*p.table, member_class);
  std::vector<NodeId> roots;
  Formula ok = kTrueFormula;
  for (const uint32_t atom : formulas_.variables(p.total)) {
    const ClassUse::Part& part = u.parts[static_cast<size_t>(p.table->index_of(Atom::node(atom)))];
    if (part.fails) ok = kFalseFormula;
    for (uint32_t i = 0; i < part.n; ++i) root_formula(u.nodes[part.first + i], roots);
  }
  std::sort(roots.begin(), roots.end());
  std::vector<Formula> all{ok};
  for (uint32_t i = 0; i < roots.size(); ++i) all.push_back(formulas_.variable(i));
  return p.child_wants[member_class] = wants_.want(formulas_.all(all), roots);
}

Formula Frames::root_formula(NodeId node, std::vector<NodeId>& roots) {
  if (node == kTrueNode) return kTrueFormula;
  if (node == kFalseNode) return kFalseFormula;
  formulas_.spend(static_cast<int64_t>(roots.size() / 8 + 1));
  const auto found = std::find(roots.begin(), roots.end(), node);
  const auto index = static_cast<uint32_t>(found - roots.begin());
  if (found == roots.end()) roots.push_back(node);
  return formulas_.variable(index);
}

bool Frames::tracked(View v, int32_t index, NodeId node) {
  const ContainerPlan& p = plan_of(v);
  if (p.unevaluated) return (v[p.at_dead + static_cast<uint32_t>(index) / 32] >> (index % 32) & 1) == 0;
  const uint32_t atom = Atom::own(node);
  formulas_.spend(p.at_used - kFirstFormula);
  for (uint32_t i = kFirstFormula; i < p.at_used; ++i) {
    const auto atoms = formulas_.variables(v[i]);
    if (std::binary_search(atoms.begin(), atoms.end(), atom)) return true;
  }
  return false;
}

Formula Frames::needs_of(View v, const ClassUse& use, int32_t index, NodeId node, std::vector<NodeId>& roots) {
  const ContainerPlan& p = plan_of(v);
  const ClassUse::Part& part = use.parts[static_cast<size_t>(index)];
  if (part.fails) return kFalseFormula;
  std::vector<Formula> needs;
  for (uint32_t i = 0; i < part.n; ++i) needs.push_back(root_formula(use.nodes[part.first + i], roots));
  if (p.table->kind == ValueKind::kArray) {
    const Node& n = wants_.node(node);
    const int64_t count = int64_t{v[kCount]} + 1;
    if (n.max_items >= 0 && count > n.max_items) return kFalseFormula;
    for (size_t i = 0; i < p.table->containing.size(); ++i) {
      if (p.table->containing[i] != static_cast<uint32_t>(index)) continue;
      const Formula contained = root_formula(p.table->containing_node[i], roots);
      const int64_t n_found = v[p.at_contained + i];
      if (n.max_contains >= 0 && n_found >= n.max_contains) needs.push_back(formulas_.negation(contained));
      if (n.max_items >= 0 && n.min_contains - n_found > n.max_items - count) needs.push_back(contained);
    }
  }
  return formulas_.all(needs);
}

Formula Frames::can_be_own(View v, NodeId node, bool wanted, uint32_t member_class, std::vector<NodeId>& roots) {
  const ContainerPlan& p = plan_of(v);
  const int32_t index = p.table->index_of(node);
  if (!tracked(v, index, node)) return wanted ? kFalseFormula : kTrueFormula;  // dead: only where an evaluation asks
  const ClassUse& u = use(*p.table, member_class);
  Formula needs = needs_of(v, u, index, node, roots);
  if (!wanted) return can_fail_later(v, node) ? kTrueFormula : formulas_.negation(needs);
  if (needs == kFalseFormula || !can_hold(v, node)) return kFalseFormula;
  if (!p.unevaluated) return needs;
  const Node& n = wants_.node(node);
  const auto& rest = p.table->kind == ValueKind::kObject ? n.unevaluated_properties : n.unevaluated_items;
  if (!rest) return needs;
  const auto can = [&](uint32_t atom, bool is) -> Formula {
    if (Atom::tag(atom) == Atom::kOwn) return can_be_own(v, Atom::node(atom), is, member_class, roots);
    if (Atom::tag(atom) == Atom::kPresent) return kTrueFormula;
    const NodeId contains = wants_.resolve(*wants_.node(Atom::node(atom)).contains);
    const Formula contained = root_formula(contains, roots);
    return is ? contained : formulas_.negation(contained);
  };
  if (!u.parts[static_cast<size_t>(index)].evaluates) {
    const Formula by_others = formulas_.can_be(evaluated(node, *p.table, member_class, 0), true, can);
    needs = formulas_.all(needs, formulas_.any(by_others, root_formula(wants_.resolve(*rest), roots)));
  }
  const Formula clause = v[p.at_clauses + static_cast<uint32_t>(index)];
  return formulas_.all(needs, formulas_.can_be(clause, true, can));
}

Want Frames::general_child(View v, uint32_t member_class) {
  const ContainerPlan& p = plan_of(v);
  MemberTable& table = *p.table;
  const ClassUse& u = use(table, member_class);
  // Everything that an atom's truth may hang on is a root, even if `ok` does not mention it.
  std::vector<NodeId> roots;
  for (uint32_t i = 0; i < table.nodes.size(); ++i) {
    if (!formulas_.spend()) return kNoValue;
    if (!tracked(v, static_cast<int32_t>(i), table.nodes[i])) continue;
    const ClassUse::Part& part = u.parts[i];
    for (uint32_t k = 0; k < part.n; ++k) root_formula(u.nodes[part.first + k], roots);
    const Node& n = wants_.node(table.nodes[i]);
    const auto& rest = table.kind == ValueKind::kObject ? n.unevaluated_properties : n.unevaluated_items;
    if (rest) root_formula(wants_.resolve(*rest), roots);
    for (size_t c = 0; c < table.containing.size(); ++c) {
      if (table.containing[c] == i) root_formula(table.containing_node[c], roots);
    }
  }
  const Formula ok = formulas_.can_be(total(v), true, [&](uint32_t atom, bool wanted) -> Formula {
    if (Atom::tag(atom) == Atom::kOwn) return can_be_own(v, Atom::node(atom), wanted, member_class, roots);
    for (uint32_t name = 0; name < table.name_ids.size(); ++name) {  // a name that is not there yet
      if (table.name_ids[name] == Atom::name(atom))
        return !wanted || name_usable(v, name) ? kTrueFormula : kFalseFormula;
    }
    return kTrueFormula;
  });
  return wants_.want(ok, roots);
}

Want Frames::child_for(View v, uint32_t member_class) {
  const Want want = possible_child(v, member_class);
  if (want == kNoValue || plan_of(v).conjunction) return want;
  const Want living = without_dead_ends(v, member_class, want, false);
  return living != want && value_cost(living) >= kNever ? kNoValue : living;
}

Want Frames::possible_child(View v, uint32_t member_class) {
  ContainerPlan& p = plan_of(v);
  const Want want = p.conjunction ? conjunction_child(p, member_class) : general_child(v, member_class);
  return want == kNoValue || value_cost(want) >= kNever ? kNoValue : want;
}

/// The same want without those values behind which the container could not be ended: general_child() looks at each keyword
/// alone, this at all of them, for every truth of the roots. `any`: it is enough to know whether some truth will do.
Want Frames::without_dead_ends(View v, uint32_t member_class, Want want, bool any) {
  constexpr size_t kRootsMax = 4;  // beyond, a dead end may be offered
  const auto roots = wants_.roots(want);
  if (roots.size() > kRootsMax) return want;
  Words open(v.begin(), v.end());
  open[kChildClass] = member_class;
  open[kChildWant] = want;
  std::vector<uint8_t> truth(roots.size());
  std::vector<Formula> ok{wants_.ok(want)};
  for (uint32_t bits = 1u << roots.size(); bits-- > 0;) {  // most often all roots may be true
    for (size_t i = 0; i < roots.size(); ++i) truth[i] = static_cast<uint8_t>(bits >> i & 1);
    if (!formulas_.holds(ok[0], [&](uint32_t root) { return truth[root] != 0; })) continue;
    Words closed = open;
    settle(closed, truth, kFreshString);
    closed[kChildClass] = kNoClass;
    closed[kChildWant] = kNoValue;
    const bool lives = may_end(closed);
    if (lives && any) return want;
    if (lives) continue;
    std::vector<Formula> same;
    for (uint32_t i = 0; i < roots.size(); ++i) {
      same.push_back(truth[i] != 0 ? formulas_.variable(i) : formulas_.negation(formulas_.variable(i)));
    }
    ok.push_back(formulas_.negation(formulas_.all(same)));
  }
  if (ok.size() == 1) return want;
  const std::vector<NodeId> nodes(roots.begin(), roots.end());
  return wants_.want(formulas_.all(ok), nodes);
}

Frame Frames::begin_item(Frame f, uint32_t mark) {
  Words w = copy(f);
  const ContainerPlan& p = plan(f);
  if (p.conjunction && p.table->counts) {
    for (const NodeId node : p.table->nodes) {
      const int64_t max = wants_.node(node).max_items;
      if (max >= 0 && int64_t{w[kCount]} + 1 > max) return kNoFrame;
    }
  }
  const uint32_t place = std::min(w[kCount], p.table->n_prefix);
  w[kChildClass] = place;
  const Want want = child_for(w, place);
  if (want == kNoValue) return kNoFrame;
  w[kChildWant] = want;
  w[kMark] = mark;
  return frames_.intern(w);
}

bool Frames::can_fail_later(View v, NodeId node) {
  const ContainerPlan& p = plan_of(v);
  MemberTable& table = *p.table;
  const Node& n = wants_.node(node);
  const int32_t index = table.index_of(node);
  const int64_t count = v[kCount];
  if (table.kind == ValueKind::kArray) {
    const int64_t n_after = count + (v[kChildClass] == kNoClass ? 0 : 1);
    if (n_after < n.min_items || n.max_items >= 0 || n.unique_items || n.contains || n.unevaluated_items) return true;
    if (wants_.resolve(n.items) != kTrueNode) return true;
    for (auto i = static_cast<size_t>(n_after); i < n.prefix_items.size(); ++i) {
      if (wants_.resolve(n.prefix_items[i]) != kTrueNode) return true;
    }
    return false;
  }
  if (n.unevaluated_properties || n.max_properties >= 0 || count < n.min_properties) return true;
  for (const uint32_t name : table.required[static_cast<size_t>(index)]) {
    if (!has_name(v, name)) return true;
  }
  for (const MemberTable::Dependency& d : table.dependencies) {
    if (d.node != static_cast<uint32_t>(index)) continue;
    for (const uint32_t need : d.needs) {
      if (!has_name(v, need) && (has_name(v, d.name) || name_usable(v, d.name))) return true;
    }
  }
  if (wants_.resolve(n.additional_properties) != kTrueNode || wants_.resolve(n.property_names) != kTrueNode)
    return true;
  for (const auto& [names, child] : n.pattern_properties) {
    if (wants_.resolve(child) != kTrueNode) return true;
  }
  if (!formulas_.spend(static_cast<int64_t>(table.names.size() / 8))) return true;
  for (uint32_t name = 0; name < table.names.size(); ++name) {
    if (!name_usable(v, name)) continue;
    const ClassUse::Part& part = use(table, name).parts[static_cast<size_t>(index)];
    if (part.fails || part.n > 0) return true;
  }
  return false;
}

// ---- after a value ----

Frame Frames::end_value(Frame f, std::span<const uint8_t> truth, uint32_t value) {
  Words w = copy(f);
  const ContainerPlan& p = plan(f);
  const bool trivial = p.conjunction && p.table->kind == ValueKind::kObject;
  if (!trivial && !settle(w, truth, value)) return kNoFrame;
  w[kChildWant] = kNoValue;
  w[kChildClass] = kNoClass;
  w[kMark] = 0;
  if (!p.conjunction && !may_end(w)) return kNoFrame;
  return frames_.intern(w);
}

bool Frames::settle(Words& w, std::span<const uint8_t> truth, uint32_t value) {
  const ContainerPlan& p = plan_of(w);
  MemberTable& table = *p.table;
  const uint32_t member_class = w[kChildClass];
  const ClassUse& u = use(table, member_class);
  const auto roots = wants_.roots(w[kChildWant]);
  const auto is_true = [&](NodeId node) {
    if (node == kTrueNode) return true;
    const auto found = std::find(roots.begin(), roots.end(), static_cast<uint32_t>(node));
    return found != roots.end() && truth[static_cast<size_t>(found - roots.begin())] != 0;
  };
  std::vector<uint8_t> dead(table.nodes.size(), 0);
  for (uint32_t i = 0; i < table.nodes.size() && !p.conjunction; ++i) {
    const ClassUse::Part& part = u.parts[i];
    dead[i] = part.fails ? 1 : 0;
    for (uint32_t k = 0; k < part.n; ++k) {
      if (!is_true(u.nodes[part.first + k])) dead[i] = 1;
    }
  }
  if (table.kind == ValueKind::kArray) {
    w[kCount] = std::min(w[kCount] + 1, table.count_max);
    const bool repeated = table.has_unique && value != kFreshString && lists(w[kList], value);
    if (table.has_unique) w[kList] = lists_.intern({w[kList], value});
    for (uint32_t i = 0; i < table.nodes.size(); ++i) {
      const Node& n = wants_.node(table.nodes[i]);
      if (n.max_items >= 0 && w[kCount] > n.max_items) dead[i] = 1;
      if (n.unique_items && repeated) dead[i] = 1;
    }
    for (uint32_t c = 0; c < table.containing.size(); ++c) {
      const uint32_t i = table.containing[c];
      const Node& n = wants_.node(table.nodes[i]);
      if (!is_true(table.containing_node[c])) continue;
      const int64_t cap = std::max(n.min_contains, n.max_contains + 1);
      uint32_t& n_found = w[p.at_contained + c];
      n_found = static_cast<uint32_t>(std::min<int64_t>({int64_t{n_found} + 1, cap, int64_t{1} << 30}));
      if (n.max_contains >= 0 && n_found > n.max_contains) dead[i] = 1;
    }
  }
  if (p.unevaluated) {
    for (uint32_t i = 0; i < table.nodes.size(); ++i) {
      const Node& n = wants_.node(table.nodes[i]);
      const auto& rest = table.kind == ValueKind::kObject ? n.unevaluated_properties : n.unevaluated_items;
      if (!rest || u.parts[i].evaluates || is_true(wants_.resolve(*rest))) continue;
      const Formula by_others =
          formulas_.substitute(evaluated(table.nodes[i], table, member_class, 0), [&](uint32_t atom) {
            if (Atom::tag(atom) == Atom::kContained) {
              return is_true(wants_.resolve(*wants_.node(Atom::node(atom)).contains)) ? kTrueFormula : kFalseFormula;
            }
            if (Atom::tag(atom) == Atom::kPresent) {
              for (uint32_t name = 0; name < table.name_ids.size(); ++name) {
                if (table.name_ids[name] == Atom::name(atom) && has_name(w, name)) return kTrueFormula;
              }
              return formulas_.variable(atom);
            }
            const int32_t index = table.index_of(Atom::node(atom));
            return tracked(w, index, Atom::node(atom)) ? formulas_.variable(atom) : kFalseFormula;
          });
      Formula& clause = w[p.at_clauses + i];
      clause = formulas_.all(clause, by_others);
    }
  }
  if (p.conjunction) return std::find(dead.begin(), dead.end(), 1) == dead.end();
  kill(w, dead);
  return true;
}

void Frames::kill(Words& w, const std::vector<uint8_t>& dead_now) {
  const ContainerPlan& p = plan_of(w);
  const MemberTable& table = *p.table;
  std::vector<uint8_t> dead = dead_now;
  for (bool more = true; more;) {
    more = false;
    const auto without_dead = [&](uint32_t atom) {
      if (Atom::tag(atom) != Atom::kOwn) return formulas_.variable(atom);
      return dead[static_cast<size_t>(table.index_of(Atom::node(atom)))] != 0 ? kFalseFormula
                                                                              : formulas_.variable(atom);
    };
    if (std::find(dead.begin(), dead.end(), 1) == dead.end()) return;
    for (uint32_t i = kFirstFormula; i < p.at_used; ++i) w[i] = formulas_.substitute(w[i], without_dead);
    if (!p.unevaluated) return;
    for (uint32_t i = 0; i < table.nodes.size(); ++i) {
      if (dead[i] != 0) w[p.at_dead + i / 32] |= 1u << (i % 32);
    }
    for (uint32_t i = 0; i < table.nodes.size(); ++i) {
      Formula& clause = w[p.at_clauses + i];
      clause = formulas_.substitute(clause, without_dead);
      if (clause == kFalseFormula && dead[i] == 0) {
        dead[i] = 1;
        more = true;
      }
    }
  }
}

Formula Frames::evaluated(NodeId id, MemberTable& table, uint32_t member_class, int32_t depth) {
  const NodeId self = wants_.resolve(id);
  if (self == kTrueNode || self == kFalseNode || depth > kEvaluatedDepthMax) return kFalseFormula;
  const uint64_t key = uint64_t{member_class} << 32 | static_cast<uint32_t>(self) << 1 | (depth > 0 ? 1u : 0u);
  if (const auto found = table.evaluated.find(key); found != table.evaluated.end()) return found->second;
  const Formula f = evaluated_fresh(self, table, member_class, depth);
  table.evaluated.emplace(key, f);
  return f;
}

Formula Frames::evaluated_fresh(NodeId self, MemberTable& table, uint32_t member_class, int32_t depth) {
  const Node& n = wants_.node(self);
  const int32_t index = table.index_of(self);
  const bool is_object = table.kind == ValueKind::kObject;
  if (index >= 0 && table.uses[member_class]->parts[static_cast<size_t>(index)].evaluates) return kTrueFormula;
  if (depth > 0 && (is_object ? n.unevaluated_properties.has_value() : n.unevaluated_items.has_value())) {
    return kTrueFormula;
  }
  std::vector<Formula> ways;
  if (!is_object && n.contains && n.contains_evaluates) {
    const NodeId contains = wants_.resolve(*n.contains);
    ways.push_back(contains == kTrueNode    ? kTrueFormula
                   : contains == kFalseNode ? kFalseFormula
                                            : formulas_.variable(Atom::contained(self)));
  }
  const auto by = [&](NodeId member, Formula condition) {
    const Formula valid = formulas_.all(condition, wants_.expand(member, table.kind));
    if (valid == kFalseFormula) return;
    ways.push_back(formulas_.all(valid, evaluated(member, table, member_class, depth + 1)));
  };
  for (const NodeId member : n.all_of) by(member, kTrueFormula);
  for (const auto& group : n.any_of) {
    for (const NodeId member : group) by(member, kTrueFormula);
  }
  for (const auto& group : n.one_of) {
    for (const NodeId member : group) by(member, kTrueFormula);
  }
  for (const Node::Conditional& c : n.conditionals) {
    const Formula condition = wants_.expand(c.if_node, table.kind);
    by(c.if_node, kTrueFormula);
    by(c.then_node, condition);
    by(c.else_node, formulas_.negation(condition));
  }
  if (is_object) {
    for (const auto& [name, member] : n.dependent_schemas) {
      by(member, formulas_.variable(Atom::present(wants_.strings.intern(name))));
    }
  }
  return formulas_.any(ways);
}

// ---- the end of a container ----

bool Frames::own_holds_now(View v, int32_t index) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const auto i = static_cast<uint32_t>(index);
  const Node& n = wants_.node(table.nodes[i]);
  if (p.unevaluated && (v[p.at_dead + i / 32] >> (i % 32) & 1) != 0) return false;
  const int64_t count = v[kCount];
  if (table.kind == ValueKind::kArray) {
    if (count < n.min_items || (n.max_items >= 0 && count > n.max_items)) return false;
    for (uint32_t c = 0; c < table.containing.size(); ++c) {
      if (table.containing[c] != i) continue;
      const int64_t n_found = v[p.at_contained + c];
      if (n_found < n.min_contains || (n.max_contains >= 0 && n_found > n.max_contains)) return false;
    }
  } else {
    if (count < n.min_properties || (n.max_properties >= 0 && count > n.max_properties)) return false;
    for (const uint32_t name : table.required[i]) {
      if (!has_name(v, name)) return false;
    }
    for (const MemberTable::Dependency& d : table.dependencies) {
      if (d.node != i || !has_name(v, d.name)) continue;
      for (const uint32_t need : d.needs) {
        if (!has_name(v, need)) return false;
      }
    }
  }
  return !p.unevaluated || formula_holds_now(v, v[p.at_clauses + i]);
}

bool Frames::formula_holds_now(View v, Formula f) {
  const MemberTable& table = *plan_of(v).table;
  return formulas_.holds(f, [&](uint32_t atom) {
    if (Atom::tag(atom) == Atom::kOwn) return own_holds_now(v, table.index_of(Atom::node(atom)));
    for (uint32_t name = 0; name < table.name_ids.size(); ++name) {
      if (table.name_ids[name] == Atom::name(atom)) return has_name(v, name);
    }
    return false;
  });
}

bool Frames::close(Frame f, std::vector<uint8_t>& truth) {
  const View v = frames_.at(f);
  const ContainerPlan& p = plan_of(v);
  truth.clear();
  for (uint32_t i = kFirstFormula; i < p.at_used; ++i) truth.push_back(formula_holds_now(v, v[i]) ? 1 : 0);
  return formulas_.holds(wants_.ok(p.want), [&](uint32_t root) { return truth[root] != 0; });
}

bool Frames::can_go_on(Frame f) {
  if (plan(f).conjunction) return true;  // known from the costs
  std::vector<uint8_t> truth;
  if (close(f, truth)) return true;
  return is_object(f) ? names(f) != nullptr : begin_item(f, 0) != kNoFrame;
}

int64_t Frames::n_bytes() const {
  return n_bytes_ + frames_.n_bytes() + lists_.n_bytes() + table_keys_.n_bytes() +
         static_cast<int64_t>(names_.size() * 40 + finish_costs_.size() * 40 +
                              (costs_[0].size() + costs_[1].size()) * 8);
}

}  // namespace deepinfer::grammar
