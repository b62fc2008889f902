// What schema_ways*.cc share. Internal.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/schema_frames.h"

namespace deepinfer::grammar {

inline constexpr int64_t kSomeBytes = 1000;    // there may be a way; nobody knows
inline constexpr int32_t kStepsMax = 20'000;   // of one search
inline constexpr int32_t kWaysMax = 64;        // looked at for the shortest
inline constexpr int32_t kChoicesMax = 128;    // nested
inline constexpr int64_t kOtherNameBytes = 8;  // a name that nobody declared, with quotes, colon and comma, at least
inline constexpr int64_t kFreeNameBytes = 6;   // the same around a shortest name, longer by what makes it another one
inline constexpr int64_t kItemsOneByOne = 64;  // beyond what stands in a prefix
inline constexpr int64_t kNoLimit = kNever;

inline int64_t plus(int64_t a, int64_t b) { return std::min(kNever, a + b); }

inline int64_t times(int64_t n, int64_t cost) {
  if (n <= 0) return 0;
  return cost >= kNever || n > kNever / std::max<int64_t>(cost, 1) ? kNever : n * cost;
}

template <typename T>
bool has(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

struct Frames::Choice {
  std::vector<NodeId> holds, fails;       // own keywords
  std::vector<uint32_t> present, absent;  // names of the table
};

struct Frames::Search {
  View v;
  int64_t best = kNever;
  int32_t n_steps = 0, n_ways = 0, n_found = 0, depth = 0;
  bool cut = false;
  std::vector<int8_t> can_hold, can_fail;  // per node of the table; -1: not asked
};

/// A member that comes.
struct Frames::Member {
  uint32_t name_class;
  int64_t cost;
  std::vector<NodeId> violated;
};

/// An item that comes.
struct Frames::Item {
  uint32_t place;
  int64_t cost;
  std::vector<NodeId> violated;
  std::vector<std::pair<NodeId, bool>> contained;  // more nodes under which it is valid, or is not
};

}  // namespace deepinfer::grammar
