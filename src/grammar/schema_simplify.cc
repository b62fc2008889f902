#include "grammar/schema_simplify.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr int kNPassesMax = 4;

size_t at(NodeId id) { return static_cast<size_t>(id); }

/// Calls f(NodeId&) on every node that `node` applies to the same value.
template <typename SomeNode, typename F>
void for_each_in_place(SomeNode& node, F f) {
  for (auto& id : node.all_of) f(id);
  for (auto& group : node.any_of) {
    for (auto& id : group) f(id);
  }
  for (auto& group : node.one_of) {
    for (auto& id : group) f(id);
  }
  for (auto& id : node.none_of) f(id);
  for (auto& conditional : node.conditionals) {
    f(conditional.if_node);
    f(conditional.then_node);
    f(conditional.else_node);
  }
  for (auto& [name, id] : node.dependent_schemas) f(id);
}

/// The same for the nodes of its members and items.
template <typename SomeNode, typename F>
void for_each_inside(SomeNode& node, F f) {
  for (auto& [name, id] : node.properties) f(id);
  for (auto& [names, id] : node.pattern_properties) f(id);
  f(node.additional_properties);
  f(node.property_names);
  if (node.unevaluated_properties) f(*node.unevaluated_properties);
  for (auto& id : node.prefix_items) f(id);
  f(node.items);
  if (node.contains) f(*node.contains);
  if (node.unevaluated_items) f(*node.unevaluated_items);
}

bool says_nothing_of_strings(const Node& node) {
  return node.text == kAnyText && node.min_length == 0 && node.max_length < 0;
}

bool says_nothing_of_objects(const Node& node) {
  return node.properties.empty() && node.pattern_properties.empty() && node.additional_properties == kTrueNode &&
         node.property_names == kTrueNode && node.required.empty() && node.dependent_required.empty() &&
         node.dependent_schemas.empty() && node.min_properties == 0 && node.max_properties < 0 &&
         !node.unevaluated_properties && !node.has_additional_properties;
}

bool says_nothing_of_arrays(const Node& node) {
  return node.prefix_items.empty() && node.items == kTrueNode && !node.contains && node.min_items == 0 &&
         node.max_items < 0 && !node.unique_items && !node.unevaluated_items && !node.has_items;
}

/// Nothing but all_of, perhaps.
bool asserts_nothing_itself(const Node& node) {
  return node.types == kEveryType && node.may_be_true && node.may_be_false && says_nothing_of_strings(node) &&
         !node.number && says_nothing_of_objects(node) && says_nothing_of_arrays(node) && node.any_of.empty() &&
         node.one_of.empty() && node.none_of.empty() && node.conditionals.empty();
}

class Simplifier {
 public:
  explicit Simplifier(Schema& schema) : nodes_(schema.nodes), root_(schema.root), stands_for_(nodes_.size()) {
    for (size_t i = 0; i < nodes_.size(); ++i) stands_for_[i] = static_cast<NodeId>(i);
    counts_evaluated_ = std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
      return node.unevaluated_items.has_value() || node.unevaluated_properties.has_value();
    });
  }

  void run() {
    if (!counts_evaluated_) {
      for (Node& node : nodes_) node.has_items = node.has_additional_properties = false;
    }
    // Nodes are mostly made after those that refer to them, so one pass from the end does nearly all.
    bool changed = true;
    for (int pass = 0; changed && pass < kNPassesMax; ++pass) {
      changed = false;
      for (size_t i = nodes_.size(); i-- > 2;) {
        if (stands_for_[i] != static_cast<NodeId>(i)) continue;
        simplify_node(nodes_[i]);
        const NodeId other = substitute(nodes_[i]);
        if (other < 0) continue;
        stands_for_[i] = other;
        changed = true;
      }
    }
    for (Node& node : nodes_) {
      for_each_in_place(node, [this](NodeId& id) { id = final_id(id); });
      for_each_inside(node, [this](NodeId& id) { id = final_id(id); });
    }
    root_ = final_id(root_);
    drop_unused();
  }

 private:
  /// Chains end: a node stands for another only along in-place references, which have no cycles.
  [[nodiscard]] NodeId final_id(NodeId id) const {
    while (stands_for_[at(id)] != id) id = stands_for_[at(id)];
    return id;
  }

  void simplify_node(Node& node) {
    for_each_in_place(node, [this](NodeId& id) { id = final_id(id); });
    for_each_inside(node, [this](NodeId& id) { id = final_id(id); });
    if (!node.may_be_true && !node.may_be_false) node.types &= ~kBooleanBit;
    if ((node.text == kNothing && !node.text_at_most) || (node.max_length >= 0 && node.min_length > node.max_length))
      node.types &= ~kStringBit;
    if (node.number && *node.number == kNothing && !node.number_at_most) node.types &= ~kNumberBit;
    if (node.max_items >= 0 && node.min_items > node.max_items) node.types &= ~kArrayBit;
    if (node.max_properties >= 0 && node.min_properties > node.max_properties) node.types &= ~kObjectBit;

    std::erase(node.all_of, kTrueNode);
    if (holds(node.none_of, kTrueNode) || holds(node.all_of, kFalseNode)) node.types = 0;
    std::erase(node.none_of, kFalseNode);
    for (auto& group : node.any_of) {
      std::erase(group, kFalseNode);
      if (group.empty()) node.types = 0;
      if (group.size() == 1) node.all_of.push_back(group[0]);
      if (!counts_evaluated_ && holds(group, kTrueNode)) group.clear();
    }
    std::erase_if(node.any_of, [](const auto& group) { return group.size() < 2; });
    for (auto& group : node.one_of) {
      std::erase(group, kFalseNode);
      if (group.empty()) node.types = 0;
      if (group.size() == 1) node.all_of.push_back(group[0]);
      if (std::count(group.begin(), group.end(), kTrueNode) > 1) node.types = 0;
    }
    std::erase_if(node.one_of, [](const auto& group) { return group.size() < 2; });
    std::erase_if(node.conditionals, [&](const Node::Conditional& conditional) {
      return conditional.then_node == kTrueNode && conditional.else_node == kTrueNode && !counts_evaluated_;
    });
  }

  /// What stands for `node`, or -1: it must stay.
  [[nodiscard]] NodeId substitute(const Node& node) const {
    if (node.types == 0) return kFalseNode;
    if (node.all_of.size() > 1 || !asserts_nothing_itself(node)) return -1;
    return node.all_of.empty() ? kTrueNode : node.all_of[0];
  }

  static bool holds(const std::vector<NodeId>& ids, NodeId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  void drop_unused() {
    std::vector<NodeId> new_id(nodes_.size(), -1);
    std::vector<NodeId> open{root_};
    new_id[kTrueNode] = kTrueNode;
    new_id[kFalseNode] = kFalseNode;
    if (root_ > kFalseNode) new_id[at(root_)] = root_;
    const auto reach = [&](NodeId id) {
      if (new_id[at(id)] >= 0) return;
      new_id[at(id)] = id;
      open.push_back(id);
    };
    while (!open.empty()) {
      const Node& node = nodes_[at(open.back())];
      open.pop_back();
      for_each_in_place(node, [&](NodeId id) { reach(id); });
      for_each_inside(node, [&](NodeId id) { reach(id); });
    }
    NodeId n = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (new_id[i] < 0) continue;
      new_id[i] = n;
      if (at(n) != i) nodes_[at(n)] = std::move(nodes_[i]);
      ++n;
    }
    nodes_.resize(at(n));
    const auto rename = [&](NodeId& id) { id = new_id[at(id)]; };
    for (Node& node : nodes_) {
      for_each_in_place(node, rename);
      for_each_inside(node, rename);
    }
    rename(root_);
  }

  std::vector<Node>& nodes_;
  NodeId& root_;
  std::vector<NodeId> stands_for_;
  bool counts_evaluated_ = false;
};

}  // namespace

std::vector<NodeId> find_in_place_cycle(const Schema& schema) {
  enum class Colour : uint8_t { kNew, kOpen, kDone };
  struct Visit {
    NodeId id;
    std::vector<NodeId> next;
  };
  std::vector<Colour> colours(schema.nodes.size(), Colour::kNew);
  std::vector<Visit> way;
  const auto open = [&](NodeId id) {
    colours[at(id)] = Colour::kOpen;
    Visit& visit = way.emplace_back(Visit{id, {}});
    for_each_in_place(schema.nodes[at(id)], [&](NodeId next) { visit.next.push_back(next); });
  };
  for (size_t i = 0; i < schema.nodes.size(); ++i) {
    if (colours[i] != Colour::kNew) continue;
    open(static_cast<NodeId>(i));
    while (!way.empty()) {
      if (way.back().next.empty()) {
        colours[at(way.back().id)] = Colour::kDone;
        way.pop_back();
        continue;
      }
      const NodeId next = way.back().next.back();
      way.back().next.pop_back();
      if (colours[at(next)] == Colour::kNew)
        open(next);
      else if (colours[at(next)] == Colour::kOpen) {
        std::vector<NodeId> cycle;
        auto first = std::find_if(way.begin(), way.end(), [&](const Visit& visit) { return visit.id == next; });
        for (; first != way.end(); ++first) cycle.push_back(first->id);
        return cycle;
      }
    }
  }
  return {};
}

void simplify(Schema& schema) { Simplifier(schema).run(); }

}  // namespace deepinfer::grammar
