#include "backend/cpu/top_k.h"

namespace deepinfer::cpu {

namespace {

/// The bin that holds the k-th largest of the counted values, and how many lie in bins above it.
struct Cut {
  int32_t bin;
  int64_t n_above;
};

Cut find_cut(const int64_t* count, int64_t k) {
  int64_t n_above = 0;
  for (int32_t bin = 255; bin >= 0; --bin) {
    if (n_above + count[bin] >= k) return {bin, n_above};
    n_above += count[bin];
  }
  return {-1, n_above};
}

}  // namespace

int32_t select_top(const uint16_t* key, int64_t n, int32_t k, int32_t* index) {
  if (k <= 0) return 0;
  int64_t count[256] = {};
  for (int64_t i = 0; i < n; ++i) {
    if (key[i] > kKeyOfNegativeInfinity) ++count[key[i] >> 8];
  }
  const Cut high = find_cut(count, k);
  int32_t threshold = kKeyOfNegativeInfinity;  // keys above are taken, and of those equal to it the first n_equal
  int64_t n_equal = 0;
  if (high.bin >= 0) {
    int64_t low_count[256] = {};
    for (int64_t i = 0; i < n; ++i) {
      if (key[i] > kKeyOfNegativeInfinity && key[i] >> 8 == high.bin) ++low_count[key[i] & 255u];
    }
    const Cut low = find_cut(low_count, k - high.n_above);
    threshold = high.bin * 256 + low.bin;
    n_equal = k - high.n_above - low.n_above;
  }
  int32_t n_selected = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (key[i] < threshold) continue;
    if (key[i] == threshold && n_equal-- <= 0) continue;
    index[n_selected++] = static_cast<int32_t>(i);
  }
  return n_selected;
}

}  // namespace deepinfer::cpu
