#include "protocol/stop_matcher.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace deepinfer::protocol {

StopMatcher::StopMatcher(const std::vector<std::string>& stops) {
  size_t n_bytes = 0;
  for (const std::string& stop : stops) n_bytes += stop.size();
  DI_CHECK(n_bytes < static_cast<size_t>(std::numeric_limits<int32_t>::max()));
  nodes_.reserve(n_bytes + 1);
  nodes_.emplace_back();
  add_branches(kRoot);
  for (size_t i = 0; i < stops.size(); ++i) {
    DI_CHECK(!stops[i].empty());
    int32_t node = kRoot;
    for (const char c : stops[i]) node = add_child(node, static_cast<unsigned char>(c));
    int32_t& stop = nodes_[static_cast<size_t>(node)].stop;
    if (stop == kNone) stop = static_cast<int32_t>(i);
  }
  link_fallbacks(stops);
}

void StopMatcher::add_to(WakeBytes& bytes) const {
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t first = child(kRoot, static_cast<unsigned char>(byte));
    if (first == kNone) continue;
    bytes.first[static_cast<size_t>(byte)] = true;
    if (nodes_[static_cast<size_t>(first)].stop != kNone) bytes.is_one_enough = true;
    for (int second = 0; second < 256; ++second) {
      if (child(first, static_cast<unsigned char>(second)) != kNone) bytes.second[static_cast<size_t>(second)] = true;
    }
  }
}

int32_t StopMatcher::add_child(int32_t parent, unsigned char byte) {
  if (const int32_t found = child(parent, byte); found != kNone) return found;
  const auto added = static_cast<int32_t>(nodes_.size());
  nodes_.emplace_back();
  nodes_.back().depth = nodes_[static_cast<size_t>(parent)].depth + 1;
  if (Node& node = nodes_[static_cast<size_t>(parent)]; node.child == kNone) {
    node.child = added;
    node.byte = byte;
    return added;
  }
  add_branches(parent);
  tables_[static_cast<size_t>(nodes_[static_cast<size_t>(parent)].child)][byte] = added;
  return added;
}

/// Moves the children of `parent` into a table.
void StopMatcher::add_branches(int32_t parent) {
  Node& node = nodes_[static_cast<size_t>(parent)];
  if (node.branches) return;
  Branches& table = tables_.emplace_back();
  table.fill(kNone);
  if (node.child != kNone) table[node.byte] = node.child;
  node.child = static_cast<int32_t>(tables_.size() - 1);
  node.branches = true;
}

/// All strings are walked side by side, so that fallbacks, which are shorter, are there before they are needed. Along one
/// string a fallback gets at most one byte longer at each step, so that the steps back are linear in its length as well.
void StopMatcher::link_fallbacks(const std::vector<std::string>& stops) {
  std::vector<int32_t> ends(stops.size(), kRoot);  // where each string's walk stands
  std::vector<size_t> walking(stops.size());
  for (size_t i = 0; i < walking.size(); ++i) walking[i] = i;
  for (size_t depth = 0; !walking.empty(); ++depth) {
    std::erase_if(walking, [&](size_t i) { return stops[i].size() <= depth; });
    for (const size_t i : walking) {
      const auto byte = static_cast<unsigned char>(stops[i][depth]);
      const int32_t parent = ends[i];
      ends[i] = child(parent, byte);
      Node& node = nodes_[static_cast<size_t>(ends[i])];
      if (parent == kRoot || node.fallback != kRoot) continue;
      int32_t end = nodes_[static_cast<size_t>(parent)].fallback;
      while (end != kRoot && child(end, byte) == kNone) end = nodes_[static_cast<size_t>(end)].fallback;
      node.fallback = std::max(child(end, byte), kRoot);
      // -1 is the largest unsigned: no string of one's own is worse than any.
      const int32_t shorter = nodes_[static_cast<size_t>(node.fallback)].stop;
      if (static_cast<uint32_t>(shorter) < static_cast<uint32_t>(node.stop)) node.stop = shorter;
    }
  }
}

}  // namespace deepinfer::protocol
