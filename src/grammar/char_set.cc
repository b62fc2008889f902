#include "grammar/char_set.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kLastCodePoint = 0x10FFFF;
constexpr CharRange kSurrogates = {0xD800, 0xDFFF};

}  // namespace

CharSet CharSet::all() { return of({{0, kLastCodePoint}}); }

CharSet CharSet::of(std::vector<CharRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](CharRange x, CharRange y) { return x.first < y.first; });
  std::vector<CharRange> merged;
  for (CharRange range : ranges) {
    range.last = std::min(range.last, kLastCodePoint);
    if (range.first > range.last) continue;
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  CharSet set;
  for (const CharRange range : merged) {
    if (range.last < kSurrogates.first || range.first > kSurrogates.last) {
      set.ranges_.push_back(range);
      continue;
    }
    if (range.first < kSurrogates.first) set.ranges_.push_back({range.first, kSurrogates.first - 1});
    if (range.last > kSurrogates.last) set.ranges_.push_back({kSurrogates.last + 1, range.last});
  }
  return set;
}

bool CharSet::contains(uint32_t c) const {
  const auto found = std::partition_point(ranges_.begin(), ranges_.end(), [c](CharRange r) { return r.last < c; });
  return found != ranges_.end() && found->first <= c;
}

CharSet CharSet::united(const CharSet& other) const {
  std::vector<CharRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return of(std::move(both));
}

CharSet CharSet::common(const CharSet& other) const {
  CharSet set;
  auto x = ranges_.begin();
  auto y = other.ranges_.begin();
  while (x != ranges_.end() && y != other.ranges_.end()) {
    const uint32_t first = std::max(x->first, y->first);
    const uint32_t last = std::min(x->last, y->last);
    if (first <= last) set.ranges_.push_back({first, last});
    if (x->last < y->last) {
      ++x;
    } else {
      ++y;
    }
  }
  return set;
}

CharSet CharSet::others() const {
  std::vector<CharRange> gaps;
  uint32_t next = 0;
  for (const CharRange range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) gaps.push_back({next, kLastCodePoint});
  return of(std::move(gaps));
}

}  // namespace deepinfer::grammar
