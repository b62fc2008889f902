// Is there a text, and how long is a shortest one: searches through derivatives, whose results are kept on the nodes.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "grammar/language_store.h"

namespace deepinfer::grammar {

/// All on the way from the start to found_[from] have a text.
void LanguageStore::mark_path(int32_t from) {
  for (int32_t i = from; i >= 0; i = found_[static_cast<size_t>(i)].parent) {
    nodes_[found_[static_cast<size_t>(i)].lang].flags |= kNonEmpty;
  }
}

bool LanguageStore::clash(std::span<const Lang> parts) const {
  uint64_t must = 0, may = ~uint64_t{0};
  for (const Lang part : parts) {
    must |= at(part).must;
    may &= at(part).may;
  }
  return (must & ~may) != 0;
}

bool LanguageStore::is_empty(Lang start) {
  if (exhausted() || live(start) == kNothing) return true;
  if (has(start, kNonEmpty)) return false;
  const uint32_t search = ++n_searches_;
  found_.assign(1, {start, -1, 0});
  nodes_[start].search = search;
  std::vector<int32_t> open = {0};
  std::vector<int32_t> added;
  while (!open.empty()) {
    const int32_t index = open.back();
    open.pop_back();
    const Lang lang = found_[static_cast<size_t>(index)].lang;
    const Walk walk = walks_[static_cast<size_t>(walk_of(lang))];
    added.clear();
    for (int k = 0; k < partitions_[walk.partition].n_classes; ++k) {
      const Lang after = raw_next(walk, lang, k) & ~kUnverified;
      if (exhausted()) return true;
      if (live(after) == kNothing || nodes_[after].search == search) continue;
      if (has(after, kNonEmpty)) {
        mark_path(index);
        return false;
      }
      nodes_[after].search = search;
      added.push_back(static_cast<int32_t>(found_.size()));
      found_.push_back({after, index, 0});
    }
    // What may end soonest is looked at first.
    std::sort(added.begin(), added.end(), [this](int32_t x, int32_t y) {
      return at(found_[static_cast<size_t>(x)].lang).n_min > at(found_[static_cast<size_t>(y)].lang).n_min;
    });
    open.insert(open.end(), added.begin(), added.end());
  }
  for (const Found& item : found_) nodes_[item.lang].flags |= kEmpty | kFinite;
  return true;
}

int64_t LanguageStore::shortest(Lang start) {
  if (is_empty(start)) return -1;
  if (has(start, kExact)) return at(start).n_min;
  // Best first; n_min never says too much, so the first exact one is on a shortest way.
  using Item = std::pair<int64_t, int32_t>;  // estimate, index in found_
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  std::unordered_map<Lang, int64_t> best;
  found_.assign(1, {start, -1, 0});
  open.emplace(at(start).n_min, 0);
  best[start] = 0;
  while (!open.empty()) {
    const auto [estimate, index] = open.top();
    open.pop();
    const Found item = found_[static_cast<size_t>(index)];
    if (best[item.lang] < item.n_before) continue;
    if (has(item.lang, kExact)) {
      for (int32_t i = item.parent; i >= 0; i = found_[static_cast<size_t>(i)].parent) {
        ExprNode& node = nodes_[found_[static_cast<size_t>(i)].lang];
        node.n_min = estimate - found_[static_cast<size_t>(i)].n_before;
        node.flags |= kExact;
      }
      return estimate;
    }
    const Walk walk = walks_[static_cast<size_t>(walk_of(item.lang))];
    for (int k = 0; k < partitions_[walk.partition].n_classes; ++k) {
      const Lang after = raw_next(walk, item.lang, k) & ~kUnverified;
      if (exhausted()) return -1;
      if (live(after) == kNothing) continue;
      const auto [known, is_new] = best.try_emplace(after, item.n_before + 1);
      if (!is_new && known->second <= item.n_before + 1) continue;
      known->second = item.n_before + 1;
      open.emplace(item.n_before + 1 + at(after).n_min, static_cast<int32_t>(found_.size()));
      found_.push_back({after, index, item.n_before + 1});
    }
  }
  return -1;
}

}  // namespace deepinfer::grammar
