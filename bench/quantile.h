// Order statistics of measured times.
#pragma once

#include <cstddef>
#include <vector>

namespace deepinfer::bench {

/// Value below which a share of the sorted times lies. Precondition: not empty; 0 <= share <= 1
inline double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace deepinfer::bench
