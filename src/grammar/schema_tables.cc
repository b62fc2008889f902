// Frames: what a set of nodes says about names and places, gathered once per set and once per class.
#include <algorithm>

#include "grammar/schema_frames.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kCountMax = 1 << 30;
constexpr int32_t kInPlaceDepthMax = 160;

uint32_t clamped(int64_t n) { return static_cast<uint32_t>(std::clamp<int64_t>(n, 0, kCountMax)); }

/// A name in the order in which schemas mention it.
struct Mention {
  std::string_view name;
  uint32_t place;
};

std::vector<Mention> mentions(const Wants& wants, const MemberTable& table, std::span<const uint32_t> present) {
  std::vector<Mention> all;
  const auto add = [&](std::string_view name) { all.push_back({name, static_cast<uint32_t>(all.size())}); };
  for (const NodeId id : table.nodes) {
    for (const auto& [name, child] : wants.node(id).properties) add(name);
  }
  for (const NodeId id : table.nodes) {
    const Node& n = wants.node(id);
    for (const std::string& name : n.required) add(name);
    for (const auto& [name, needs] : n.dependent_required) {
      add(name);
      for (const std::string& need : needs) add(need);
    }
  }
  for (const uint32_t name : present) add(wants.strings.at(name));
  std::sort(all.begin(), all.end(), [](const Mention& a, const Mention& b) {
    const int c = a.name.compare(b.name);
    return c != 0 ? c < 0 : a.place < b.place;
  });
  all.erase(std::unique(all.begin(), all.end(), [](const Mention& a, const Mention& b) { return a.name == b.name; }),
            all.end());
  return all;
}

uint32_t index_in(const std::vector<std::string_view>& names, std::string_view name) {
  return static_cast<uint32_t>(std::lower_bound(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

int32_t MemberTable::index_of(NodeId node) const {
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), node);
  return found != nodes.end() && *found == node ? static_cast<int32_t>(found - nodes.begin()) : -1;
}

MemberTable& Frames::table_for(ValueKind kind, std::span<const uint32_t> atoms) {
  Words key(atoms.begin(), atoms.end());
  key.push_back(static_cast<uint32_t>(kind));
  const uint32_t number = table_keys_.intern(key);
  if (number < tables_.size()) return *tables_[number];
  tables_.push_back(std::make_unique<MemberTable>());
  MemberTable& table = *tables_.back();
  table.kind = kind;
  std::vector<uint32_t> present;
  for (const uint32_t atom : atoms) {
    if (Atom::tag(atom) == Atom::kOwn) table.nodes.push_back(Atom::node(atom));
    if (Atom::tag(atom) == Atom::kPresent) present.push_back(Atom::name(atom));
  }
  std::sort(table.nodes.begin(), table.nodes.end());
  if (kind == ValueKind::kArray) {
    fill_array_table(table);
    return table;
  }
  table.has_present = !present.empty();
  const std::vector<Mention> all = mentions(wants_, table, present);
  for (const Mention& m : all) table.names.push_back(m.name);
  table.by_order.resize(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) table.by_order[i] = i;
  std::sort(table.by_order.begin(), table.by_order.end(),
            [&](uint32_t a, uint32_t b) { return all[a].place < all[b].place; });
  table.order.resize(all.size());
  for (uint32_t i = 0; i < all.size(); ++i) table.order[table.by_order[i]] = i;
  if (table.has_present) {
    for (const std::string_view name : table.names) table.name_ids.push_back(wants_.strings.intern(name));
  }
  fill_object_table(table);
  n_bytes_ += static_cast<int64_t>(sizeof(MemberTable) + table.names.size() * 80 + table.nodes.size() * 32);
  return table;
}

void Frames::fill_object_table(MemberTable& table) {
  table.declared.resize(table.names.size());
  table.required.resize(table.nodes.size());
  const auto pattern_number = [&](Lang pattern) {
    const auto found = std::find(table.patterns.begin(), table.patterns.end(), pattern);
    if (found == table.patterns.end()) {
      table.patterns.push_back(pattern);
      return static_cast<uint32_t>(table.patterns.size() - 1);
    }
    return static_cast<uint32_t>(found - table.patterns.begin());
  };
  for (uint32_t i = 0; i < table.nodes.size(); ++i) {
    const Node& n = wants_.node(table.nodes[i]);
    for (const auto& [name, child] : n.properties) table.declared[index_in(table.names, name)].push_back({i, child});
    for (const std::string& name : n.required) table.required[i].push_back(index_in(table.names, name));
    std::sort(table.required[i].begin(), table.required[i].end());
    table.required[i].erase(std::unique(table.required[i].begin(), table.required[i].end()), table.required[i].end());
    for (const auto& [name, needs] : n.dependent_required) {
      MemberTable::Dependency dependency{i, index_in(table.names, name), {}};
      for (const std::string& need : needs) dependency.needs.push_back(index_in(table.names, need));
      table.dependencies.push_back(std::move(dependency));
    }
    for (const auto& [names, child] : n.pattern_properties) {
      table.pattern_uses.push_back({pattern_number(names), i, child, false});
    }
    if (const NodeId names = wants_.resolve(n.property_names); names != kTrueNode) {
      Languages& languages = wants_.languages;
      const Wants::Bounds bounds = wants_.texts_of(wants_.expand(names, ValueKind::kString));
      if (!bounds.exact()) {
        const Lang both[] = {table.unsure_names, languages.except(bounds.maybe, bounds.surely)};
        table.unsure_names = languages.any_of(both);
      }
      const Lang refused = languages.except(kAnyText, bounds.surely);
      if (!wants_.languages.is_empty(refused)) {
        table.pattern_uses.push_back({pattern_number(refused), i, kFalseNode, true});
      }
    }
    if (n.min_properties > 0 || n.max_properties >= 0) table.counts = true;
    table.count_max = std::max({table.count_max, clamped(n.min_properties), clamped(n.max_properties + 1)});
  }
}

void Frames::fill_array_table(MemberTable& table) {
  for (uint32_t i = 0; i < table.nodes.size(); ++i) {
    const Node& n = wants_.node(table.nodes[i]);
    const auto n_prefix = static_cast<uint32_t>(n.prefix_items.size());
    table.n_prefix = std::max(table.n_prefix, n_prefix);
    if (n.contains) {
      table.containing.push_back(i);
      table.containing_node.push_back(wants_.resolve(*n.contains));
    }
    table.has_unique = table.has_unique || n.unique_items;
    if (n.min_items > 0 || n.max_items >= 0) table.counts = true;
    table.count_max = std::max({table.count_max, n_prefix, clamped(n.min_items), clamped(n.max_items + 1)});
  }
}

const ClassUse& Frames::use(MemberTable& table, uint32_t member_class) {
  if (member_class >= table.uses.size()) table.uses.resize(member_class + 1);
  if (!table.uses[member_class]) {
    auto fresh = std::make_unique<ClassUse>();
    fresh->parts.resize(table.nodes.size());
    if (table.kind == ValueKind::kObject) {
      use_name(table, member_class, *fresh);
    } else {
      use_place(table, member_class, *fresh);
    }
    n_bytes_ += static_cast<int64_t>(sizeof(ClassUse) + fresh->parts.size() * sizeof(ClassUse::Part));
    table.uses[member_class] = std::move(fresh);
  }
  return *table.uses[member_class];
}

void Frames::add_part(ClassUse& use, ClassUse::Part& part, NodeId node) {
  const NodeId resolved = wants_.resolve(node);
  if (resolved == kTrueNode) return;
  if (resolved == kFalseNode) {
    part.fails = true;
    return;
  }
  if (part.n == 0) part.first = static_cast<uint32_t>(use.nodes.size());
  for (uint32_t i = 0; i < part.n; ++i) {
    if (use.nodes[part.first + i] == resolved) return;
  }
  use.nodes.push_back(resolved);
  ++part.n;
}

void Frames::use_name(const MemberTable& table, uint32_t member_class, ClassUse& use) {
  const bool is_named = member_class < table.names.size();
  std::vector<uint8_t> matches(table.patterns.size(), 0);
  if (is_named) {
    for (size_t p = 0; p < matches.size(); ++p) {
      matches[p] = wants_.languages.accepts(table.patterns[p], table.names[member_class]) ? 1 : 0;
    }
  } else {
    for (const uint32_t p : table.other_classes.at(member_class - static_cast<uint32_t>(table.names.size()))) {
      matches[p] = 1;
    }
  }
  // Parts of one node must follow each other in use.nodes: node by node. Both lists ascend by node within a name.
  size_t next_pattern = 0, next_declared = 0;
  for (uint32_t i = 0; i < table.nodes.size(); ++i) {
    const Node& n = wants_.node(table.nodes[i]);
    ClassUse::Part& part = use.parts[i];
    bool found = false;
    if (is_named) {
      const auto& declared = table.declared[member_class];
      for (; next_declared < declared.size() && declared[next_declared].first == i; ++next_declared) {
        add_part(use, part, declared[next_declared].second);
        found = true;
      }
    }
    for (; next_pattern < table.pattern_uses.size() && table.pattern_uses[next_pattern].node == i; ++next_pattern) {
      const MemberTable::PatternUse& p = table.pattern_uses[next_pattern];
      if (matches[p.pattern] == 0) continue;
      add_part(use, part, p.value);
      found = found || !p.of_names;
    }
    if (!found) add_part(use, part, n.additional_properties);
    part.evaluates = found || n.has_additional_properties || n.additional_properties != kTrueNode;
  }
}

void Frames::use_place(const MemberTable& table, uint32_t place, ClassUse& use) {
  for (uint32_t i = 0; i < table.nodes.size(); ++i) {
    const Node& n = wants_.node(table.nodes[i]);
    const bool in_prefix = place < n.prefix_items.size();
    add_part(use, use.parts[i], in_prefix ? n.prefix_items[place] : n.items);
    use.parts[i].evaluates = in_prefix || n.has_items || n.items != kTrueNode;
  }
}

void Frames::add_in_place(NodeId id, ValueKind kind, std::vector<NodeId>& nodes, int32_t depth) {
  const NodeId self = wants_.resolve(id);
  if (self == kTrueNode || self == kFalseNode || depth > kInPlaceDepthMax) return;
  if (std::find(nodes.begin(), nodes.end(), self) != nodes.end()) return;
  nodes.push_back(self);
  const Node& n = wants_.node(self);
  for (const NodeId member : n.all_of) add_in_place(member, kind, nodes, depth + 1);
  for (const auto& group : n.any_of) {
    for (const NodeId member : group) add_in_place(member, kind, nodes, depth + 1);
  }
  for (const auto& group : n.one_of) {
    for (const NodeId member : group) add_in_place(member, kind, nodes, depth + 1);
  }
  for (const Node::Conditional& c : n.conditionals) {
    add_in_place(c.if_node, kind, nodes, depth + 1);
    add_in_place(c.then_node, kind, nodes, depth + 1);
    add_in_place(c.else_node, kind, nodes, depth + 1);
  }
  if (kind != ValueKind::kObject) return;
  for (const auto& [name, member] : n.dependent_schemas) add_in_place(member, kind, nodes, depth + 1);
}

ContainerPlan& Frames::plan_for(Want want, ValueKind kind) {
  auto& numbers = plan_of_want_[kind == ValueKind::kObject ? 0 : 1];
  if (want < numbers.size() && numbers[want] != 0) return *plans_[numbers[want] - 1];
  plans_.push_back(std::make_unique<ContainerPlan>());
  ContainerPlan& p = *plans_.back();
  if (want >= numbers.size()) numbers.resize(want + want / 2 + 16, 0);
  numbers[want] = static_cast<uint32_t>(plans_.size());
  p.want = want;
  p.total = wants_.total(want, kind);
  std::vector<uint32_t> atoms;
  const auto add_atoms = [&](Formula f) {
    const auto of_f = formulas_.variables(f);
    atoms.insert(atoms.end(), of_f.begin(), of_f.end());
  };
  for (const uint32_t root : wants_.roots(want)) {
    p.roots.push_back(wants_.expand(static_cast<NodeId>(root), kind));
    add_atoms(p.roots.back());
  }
  std::vector<NodeId> in_place;
  for (const uint32_t atom : atoms) {
    if (Atom::tag(atom) != Atom::kOwn) continue;
    const Node& n = wants_.node(Atom::node(atom));
    const bool has =
        kind == ValueKind::kObject ? n.unevaluated_properties.has_value() : n.unevaluated_items.has_value();
    if (has) add_in_place(Atom::node(atom), kind, in_place, 0);
  }
  p.unevaluated = !in_place.empty();
  for (const NodeId node : in_place) {
    atoms.push_back(Atom::own(node));
    add_atoms(wants_.expand(node, kind));
    if (kind != ValueKind::kObject) continue;
    for (const auto& [name, member] : wants_.node(node).dependent_schemas) {
      atoms.push_back(Atom::present(wants_.strings.intern(name)));
    }
  }
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  p.table = &table_for(kind, atoms);
  p.conjunction =
      formulas_.is_conjunction(p.total) && !p.unevaluated && p.table->containing.empty() && !p.table->has_present;
  // The truth of all roots must follow, too.
  for (const Formula root : p.roots) {
    p.conjunction = p.conjunction && formulas_.is_conjunction(root) && formulas_.all(root, p.total) == p.total;
  }
  p.at_used = kFirstFormula + static_cast<uint32_t>(p.roots.size());
  p.at_contained = p.at_used + p.table->n_words();
  p.at_dead = p.at_contained + static_cast<uint32_t>(p.table->containing.size());
  const auto n_nodes = static_cast<uint32_t>(p.table->nodes.size());
  p.at_clauses = p.at_dead + (p.unevaluated ? (n_nodes + 31) / 32 : 0);
  p.n_words = p.at_clauses + (p.unevaluated ? n_nodes : 0);
  n_bytes_ += static_cast<int64_t>(sizeof(ContainerPlan) + p.roots.size() * 4);
  return p;
}

}  // namespace deepinfer::grammar
