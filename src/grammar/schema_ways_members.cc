// Frames: the members or items that a way to the end of an object or array takes (schema_ways.cc), and their bytes.
#include <algorithm>
#include <utility>

#include "grammar/schema_ways.h"

namespace deepinfer::grammar {

// ---- objects ----

int64_t Frames::member_cost(View v, const Choice& c, std::span<const NodeId> violated, uint32_t name_class) {
  const MemberTable& table = *plan_of(v).table;
  const Want want = class_want(v, c.holds, violated, name_class, {});
  if (want == kNoValue) return kNever;
  return plus(name_bytes(table, name_class), value_cost(want));
}

/// Of a name with quotes, colon and comma.
int64_t Frames::name_bytes(const MemberTable& table, uint32_t name_class) {
  if (name_class < table.names.size()) return Wants::string_bytes(table.names[name_class]) + 4;
  if (table.other_ways) {
    for (const MemberTable::OtherClass& other : *table.other_ways) {
      if (other.number == name_class) return other.name_bytes;
    }
  }
  return kOtherNameBytes;
}

/// The classes of names that are none of the table's and that there are, as far as they are told apart.
const std::vector<MemberTable::OtherClass>& Frames::other_ways(MemberTable& table) {
  if (table.other_ways) return *table.other_ways;
  Languages& languages = wants_.languages;
  const auto n_patterns = static_cast<uint32_t>(table.patterns.size());
  const bool exact = n_patterns <= kPatternsExact;
  tried_all_ = tried_all_ && exact;
  const uint32_t n_classes = exact ? 1u << n_patterns : n_patterns + 1;
  std::vector<MemberTable::OtherClass> ways;
  for (uint32_t i = 0; i < n_classes && formulas_.spend(); ++i) {
    std::vector<uint32_t> patterns;
    for (uint32_t k = 0; k < n_patterns; ++k) {
      if (exact ? (i >> k & 1) != 0 : i == k + 1) patterns.push_back(k);
    }
    Lang names = kAnyText;
    if (exact && n_patterns > 0) names = names_of_classes(table, uint64_t{1} << i, true);
    if (!exact && i > 0) names = table.patterns[i - 1];
    if (table.unsure_names != kNothing) names = languages.except(names, table.unsure_names);
    if (languages.is_empty(names)) continue;
    const int64_t name_bytes = std::max(kOtherNameBytes, wants_.string_bytes(names) + kFreeNameBytes);
    ways.push_back({static_cast<uint32_t>(table.names.size()) + table.other_classes.intern(patterns), name_bytes});
  }
  table.other_ways = std::move(ways);
  return *table.other_ways;
}

std::vector<std::vector<uint32_t>> Frames::pattern_sets(Frame f) {
  MemberTable& table = *plan(f).table;
  std::vector<std::vector<uint32_t>> sets;
  for (const MemberTable::OtherClass& way : other_ways(table)) {
    const auto patterns = table.other_classes.at(way.number - static_cast<uint32_t>(table.names.size()));
    sets.emplace_back(patterns.begin(), patterns.end());
  }
  return sets;
}

/// A name of the table can be one of the members beside `members`, and asks for no others.
bool Frames::can_come(View v, const Choice& c, std::span<const Member> members, uint32_t name) {
  const MemberTable& table = *plan_of(v).table;
  if (!name_usable(v, name) || has(c.absent, name)) return false;
  if (table.unsure_names != kNothing && wants_.languages.accepts(table.unsure_names, table.names[name])) return false;
  const auto comes = [&](uint32_t other) {
    return has_name(v, other) ||
           std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.name_class == other; });
  };
  for (const Member& m : members) {
    if (m.name_class == name) return false;
  }
  for (const MemberTable::Dependency& d : table.dependencies) {
    if (d.name != name || !has(c.holds, table.nodes[d.node])) continue;
    if (!std::all_of(d.needs.begin(), d.needs.end(), [&](uint32_t need) { return need == name || comes(need); }))
      return false;
  }
  return true;
}

/// False: one of them cannot come.
bool Frames::names_to_come(View v, const Choice& c, std::vector<uint32_t>& names) {
  const MemberTable& table = *plan_of(v).table;
  names = c.present;
  const auto add = [&](uint32_t name) {
    if (!has_name(v, name) && !has(names, name)) names.push_back(name);
  };
  for (const NodeId node : c.holds) {
    for (const uint32_t name : table.required[static_cast<size_t>(table.index_of(node))]) {
      if (!has_name(v, name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (bool more = !table.dependencies.empty(); more;) {
    const size_t n_before = names.size();
    for (const MemberTable::Dependency& d : table.dependencies) {
      if (!has_name(v, d.name) && !has(names, d.name)) continue;
      if (!has(c.holds, table.nodes[d.node])) continue;
      for (const uint32_t need : d.needs) add(need);
    }
    more = names.size() > n_before;
  }
  return std::all_of(names.begin(), names.end(),
                     [&](uint32_t name) { return name_usable(v, name) && !has(c.absent, name); });
}

int64_t Frames::object_cost(View v, const Choice& c) {
  const MemberTable& table = *plan_of(v).table;
  std::vector<uint32_t> names;
  if (!names_to_come(v, c, names)) return kNever;
  const int64_t count = v[kCount];
  int64_t low = count + static_cast<int64_t>(names.size()), high = kNoLimit;
  for (const NodeId node : c.holds) {
    const Node& n = wants_.node(node);
    low = std::max(low, n.min_properties);
    if (n.max_properties >= 0) high = std::min(high, n.max_properties);
  }
  if (low > high) return kNever;
  formulas_.spend(static_cast<int64_t>(names.size()));
  std::vector<Member> members;
  int64_t sum = 0;
  const uint32_t open = v[kChildClass];  // counts already, and its name is written
  if (open != kNoClass) names.insert(names.begin(), open);
  for (const uint32_t name : names) {
    members.push_back({name, member_cost(v, c, {}, name), {}});
    sum = plus(sum, members.back().cost);
    if (sum >= kNever) return kNever;
  }
  const int64_t n_more = low - count - static_cast<int64_t>(names.size()) + (open != kNoClass ? 1 : 0);
  for (const NodeId node : c.fails) {
    if (!object_can_fail(v, c, node, members, low, high)) return kNever;
  }
  const int64_t others = fill(v, c, n_more, members);
  if (others >= kNever) return kNever;
  if (!exact_) return plus(sum, others);
  sum = plus(others, make_fail(v, c, members, low, high));
  for (const Member& m : members) sum = plus(sum, m.cost);
  return open == kNoClass || sum >= kNever ? sum : sum - name_bytes(table, open);
}

/// Adds `n_more` members, the cheapest of the declared ones first; bytes of those with other names, which are not listed.
int64_t Frames::fill(View v, const Choice& c, int64_t n_more, std::vector<Member>& members) {
  MemberTable& table = *plan_of(v).table;
  if (n_more <= 0) return 0;
  std::vector<Member> found;
  for (uint32_t name = 0; name < table.names.size(); ++name) {
    if (!exact_ && static_cast<int64_t>(found.size()) >= n_more) break;
    if (exact_ ? !can_come(v, c, members, name) : !name_usable(v, name) || has(c.absent, name)) continue;
    const auto is_name = [&](const Member& m) { return m.name_class == name; };
    if (std::any_of(members.begin(), members.end(), is_name)) continue;
    const int64_t cost = member_cost(v, c, {}, name);
    if (cost < kNever) found.push_back({name, cost, {}});
  }
  int64_t best = kNever;  // any number of names of one class, as if it held that many
  uint32_t best_class = 0;
  if (exact_ || static_cast<int64_t>(found.size()) < n_more) {
    for (const MemberTable::OtherClass& other : other_ways(table)) {
      const int64_t cost = member_cost(v, c, {}, other.number);
      if (cost >= best) continue;
      best = cost;
      best_class = other.number;
    }
    if (best >= kNever && table.patterns.size() > kPatternsExact) best = kSomeBytes;
  }
  std::stable_sort(found.begin(), found.end(), [](const Member& a, const Member& b) { return a.cost < b.cost; });
  for (Member& m : found) {
    if (n_more <= 0 || m.cost > best) break;
    members.push_back(std::move(m));
    --n_more;
  }
  for (int listed = 0; n_more > 0 && best < kSomeBytes && listed < 8; ++listed, --n_more) {
    members.push_back({best_class, best, {}});
  }
  return times(n_more, best);
}

/// Whether the node fails if these members come, whatever their values are.
bool Frames::fails_anyway(View v, NodeId node, std::span<const Member> members, int64_t n_members) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const Node& n = wants_.node(node);
  const auto i = static_cast<uint32_t>(table.index_of(node));
  if (p.unevaluated && (v[p.at_dead + i / 32] >> (i % 32) & 1) != 0) return true;
  if (n_members < n.min_properties || (n.max_properties >= 0 && n_members > n.max_properties)) return true;
  const auto comes = [&](uint32_t name) {
    return has_name(v, name) ||
           std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.name_class == name; });
  };
  if (!std::all_of(table.required[i].begin(), table.required[i].end(), comes)) return true;
  for (const MemberTable::Dependency& d : table.dependencies) {
    if (d.node == i && comes(d.name) && !std::all_of(d.needs.begin(), d.needs.end(), comes)) return true;
  }
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& m) { return use(*p.table, m.name_class).parts[i].fails; });
}

/// Whether the node can fail where these members must come and up to `high` in all may. True if it is not known.
bool Frames::object_can_fail(View v, const Choice& c, NodeId node, std::span<const Member> members, int64_t low,
                             int64_t high) {
  const ContainerPlan& p = plan_of(v);
  MemberTable& table = *p.table;
  const Node& n = wants_.node(node);
  const auto i = static_cast<uint32_t>(table.index_of(node));
  if (p.unevaluated && n.unevaluated_properties) return true;
  if (n.max_properties >= 0 && high > n.max_properties) return true;
  if (fails_anyway(v, node, members, low)) return true;
  // The frame's open member is listed and counts already; what fills up may be what fails.
  const int64_t n_open = v[kChildClass] != kNoClass ? 1 : 0;
  const bool may_add = int64_t{v[kCount]} + static_cast<int64_t>(members.size()) - n_open < high;
  for (const MemberTable::Dependency& d : table.dependencies) {
    if (d.node == i && may_add && name_usable(v, d.name)) return true;
  }
  const NodeId violated[] = {node};
  for (const Member& m : members) {
    if (member_cost(v, c, violated, m.name_class) < kNever) return true;
  }
  if (!may_add) return false;
  formulas_.spend(static_cast<int64_t>(table.names.size() / 8));
  for (uint32_t name = 0; name < table.names.size(); ++name) {
    if (name_usable(v, name) && !has(c.absent, name) && member_cost(v, c, violated, name) < kNever) return true;
  }
  if (table.patterns.size() > kPatternsExact) return true;
  const auto& others = other_ways(table);
  return std::any_of(others.begin(), others.end(), [&](const MemberTable::OtherClass& other) {
    return member_cost(v, c, violated, other.number) < kNever;
  });
}

/// Chooses values, and more members where it takes them, so that all of c.fails do; one after the other, each in the
/// cheapest way. Bytes that come on top of the members'.
int64_t Frames::make_fail(View v, const Choice& c, std::vector<Member>& members, int64_t n_members, int64_t high) {
  MemberTable& table = *plan_of(v).table;
  std::vector<NodeId> done;
  for (bool more = !c.fails.empty(); more;) {
    more = false;
    for (const NodeId node : c.fails) {
      if (has(done, node) || fails_anyway(v, node, members, n_members)) continue;
      int64_t best = kNever;
      Member chosen{0, kNever, {}};
      size_t at = members.size();
      for (size_t i = 0; i < members.size() && best > 0; ++i) {
        std::vector<NodeId> violated = members[i].violated;
        violated.push_back(node);
        const int64_t cost = member_cost(v, c, violated, members[i].name_class);
        if (cost >= kNever || cost - members[i].cost >= best) continue;
        best = cost - members[i].cost;
        chosen = {members[i].name_class, cost, std::move(violated)};
        at = i;
      }
      const auto try_new = [&](uint32_t name_class) {
        const NodeId violated[] = {node};
        const int64_t cost = member_cost(v, c, violated, name_class);
        if (cost >= best) return;
        best = cost;
        chosen = {name_class, cost, {node}};
        at = members.size();
      };
      // A member more costs more than its name.
      const bool may_add = n_members < high && best > 0;
      for (uint32_t name = 0; name < table.names.size() && may_add; ++name) {
        if (Wants::string_bytes(table.names[name]) + 4 < best && can_come(v, c, members, name)) try_new(name);
      }
      if (may_add && kOtherNameBytes < best) {
        for (const MemberTable::OtherClass& other : other_ways(table)) try_new(other.number);
      }
      if (best >= kNever) return kSomeBytes;
      if (at == members.size()) {
        members.push_back(std::move(chosen));
        ++n_members;
      } else {
        members[at] = std::move(chosen);
      }
      done.push_back(node);
      more = true;
    }
  }
  return 0;
}

// ---- arrays ----

int64_t Frames::item_cost(View v, const Choice& c, const Item& item) {
  return plus(1, value_cost(class_want(v, c.holds, item.violated, item.place, item.contained)));
}

int64_t Frames::array_cost(View v, const Choice& c) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const int64_t count = v[kCount];
  const bool open = v[kChildClass] != kNoClass;  // the next item is to come, and does not count yet
  int64_t low = count + (open ? 1 : 0), high = kNoLimit;
  for (const NodeId node : c.holds) {
    const Node& n = wants_.node(node);
    low = std::max(low, n.min_items);
    if (n.max_items >= 0) high = std::min(high, n.max_items);
  }
  int64_t n_contained = 0;  // one after the other
  for (size_t i = 0; i < table.containing.size(); ++i) {
    const NodeId node = table.nodes[table.containing[i]];
    if (!has(c.holds, node)) continue;
    const int64_t n_more = std::max<int64_t>(wants_.node(node).min_contains - v[p.at_contained + i], 0);
    low = std::max(low, count + n_more);
    n_contained += n_more;
  }
  if (low > high) return kNever;
  const auto place_of = [&](int64_t i) { return static_cast<uint32_t>(std::min<int64_t>(i, table.n_prefix)); };
  // How far items can go at all.
  for (int64_t i = count; i < high && (i < low || (i <= table.n_prefix && !(c.fails.empty() && n_contained == 0)));
       ++i) {
    if (i > table.n_prefix) break;
    if (item_cost(v, c, {place_of(i), 0, {}, {}}) < kNever) continue;
    high = i;
  }
  if (low > high) return kNever;
  for (size_t i = 0; i < table.containing.size(); ++i) {
    const NodeId node = table.nodes[table.containing[i]];
    if (!has(c.holds, node) || wants_.node(node).min_contains <= v[p.at_contained + i]) continue;
    bool found = false;
    for (int64_t at = count; at < high && at <= std::max<int64_t>(table.n_prefix, count) && !found; ++at) {
      found = item_cost(v, c, {place_of(at), 0, {}, {{table.containing_node[i], true}}}) < kNever;
    }
    if (!found) return kNever;
  }
  for (const NodeId node : c.fails) {
    if (!array_can_fail(v, c, node, low, high)) return kNever;
  }
  if (!exact_) return 0;
  std::vector<int64_t> lengths{low,
                               low + 1,
                               low + 2,
                               count + n_contained,
                               std::max<int64_t>(low, table.n_prefix),
                               std::max<int64_t>(low, table.n_prefix) + std::max<int64_t>(n_contained, 1)};
  for (const NodeId node : c.fails) {
    if (wants_.node(node).max_items >= 0) lengths.push_back(wants_.node(node).max_items + 1);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  int64_t best = kNever;
  for (const int64_t length : lengths) {
    if (length < low || length > high) continue;
    best = std::min(best, items_cost(v, c, length));
    if (best < kNever && c.fails.empty() && length >= count + n_contained) break;
  }
  if (best >= kNever) return kSomeBytes;
  return open ? best - 1 : best;  // its comma is written
}

bool Frames::array_can_fail(View v, const Choice& c, NodeId node, int64_t low, int64_t high) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const Node& n = wants_.node(node);
  const auto index = static_cast<uint32_t>(table.index_of(node));
  const int64_t count = v[kCount];
  if (p.unevaluated && ((v[p.at_dead + index / 32] >> (index % 32) & 1) != 0 || n.unevaluated_items)) return true;
  if (low < n.min_items || (n.max_items >= 0 && high > n.max_items)) return true;
  for (size_t i = 0; i < table.containing.size(); ++i) {
    if (table.containing[i] != index) continue;
    const int64_t n_found = v[p.at_contained + i];
    if (n_found < n.min_contains || (n.max_contains >= 0 && n_found > n.max_contains)) return true;
    if (n.max_contains >= 0 && high > count) return true;
  }
  if (n.unique_items && high > count) return true;
  for (int64_t i = count; i < high && i <= std::max<int64_t>(table.n_prefix, count); ++i) {
    const auto place = static_cast<uint32_t>(std::min<int64_t>(i, table.n_prefix));
    if (item_cost(v, c, {place, 0, {node}, {}}) < kNever) return true;
  }
  return false;
}

/// Bytes of the items of an array that ends with `n_items`; kNever: none were found.
int64_t Frames::items_cost(View v, const Choice& c, int64_t n_items) {
  const ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const int64_t count = v[kCount];
  std::vector<std::pair<NodeId, bool>> every;  // under what no item may be
  const auto is_chosen = [&](const std::vector<NodeId>& nodes, size_t i) {
    return has(nodes, table.nodes[table.containing[i]]);
  };
  std::vector<NodeId> too_few;  // fail because nothing more is contained
  for (size_t i = 0; i < table.containing.size(); ++i) {
    const NodeId node = table.nodes[table.containing[i]];
    const Node& n = wants_.node(node);
    const bool too_many = n.max_contains >= 0 && v[p.at_contained + i] + n_items - count > n.max_contains;
    if (is_chosen(c.holds, i) && too_many) every.emplace_back(table.containing_node[i], false);
    if (!is_chosen(c.fails, i) || v[p.at_contained + i] >= n.min_contains) continue;
    every.emplace_back(table.containing_node[i], false);
    too_few.push_back(node);
  }
  const int64_t n_single = std::min(n_items - count, std::max<int64_t>(table.n_prefix - count, 0) + kItemsOneByOne);
  std::vector<Item> items;
  for (int64_t i = 0; i < n_single; ++i) {
    items.push_back({static_cast<uint32_t>(std::min<int64_t>(count + i, table.n_prefix)), 0, {}, every});
    items.back().cost = item_cost(v, c, items.back());
  }
  const int64_t n_rest = n_items - count - n_single;
  const int64_t rest = n_rest > 0 ? times(n_rest, item_cost(v, c, {table.n_prefix, 0, {}, every})) : 0;
  const auto change = [&](auto&& add, bool fresh) {  // the item for which it costs least; the last of equals
    int64_t best = kNever;
    Item chosen;
    size_t at = items.size();
    for (size_t i = items.size(); i-- > 0 && best > 0;) {
      Item item = items[i];
      if (!add(item, fresh)) continue;
      item.cost = item_cost(v, c, item);
      const int64_t before = items[i].cost >= kNever ? 0 : items[i].cost;
      if (item.cost >= kNever || item.cost - before >= best) continue;
      best = item.cost - before;
      chosen = std::move(item);
      at = i;
    }
    if (at < items.size()) items[at] = std::move(chosen);
    return best < kNever;
  };
  for (size_t i = 0; i < table.containing.size(); ++i) {
    if (!is_chosen(c.holds, i)) continue;
    const std::pair<NodeId, bool> is{table.containing_node[i], true}, is_not{table.containing_node[i], false};
    const auto add = [&](Item& item, bool fresh) {
      if (has(item.contained, is)) return false;
      for (const auto& more : item.contained) {
        if (fresh && more.second) return false;
      }
      std::erase(item.contained, is_not);
      item.contained.push_back(is);
      return true;
    };
    const int64_t n_more = wants_.node(table.nodes[table.containing[i]]).min_contains - v[p.at_contained + i];
    if (n_more > kItemsOneByOne) return kNever;
    for (int64_t k = 0; k < n_more; ++k) {
      if (!change(add, true) && !change(add, false)) return kNever;
    }
  }
  for (const NodeId node : c.fails) {
    const Node& n = wants_.node(node);
    const auto index = static_cast<uint32_t>(table.index_of(node));
    if (p.unevaluated && (v[p.at_dead + index / 32] >> (index % 32) & 1) != 0) continue;
    if (n_items < n.min_items || (n.max_items >= 0 && n_items > n.max_items) || has(too_few, node)) continue;
    const auto add = [&](Item& item, bool) {
      item.violated.push_back(node);
      return true;
    };
    if (!change(add, true)) return kNever;
  }
  int64_t sum = rest;
  for (const Item& item : items) sum = plus(sum, item.cost);
  return sum;
}

}  // namespace deepinfer::grammar
