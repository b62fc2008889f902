#include "kv/layout.h"

#include "base/check.h"

namespace deepinfer::kv {

BlockLayout make_block_layout(const std::vector<int32_t>& ratios, int32_t head_dim, int32_t index_dim) {
  constexpr int64_t kAlignment = 64;  // planes start on a cache line
  BlockLayout layout;
  int64_t offset = 0;
  const auto plane = [&](int64_t n_bytes) {
    const int64_t start = offset;
    offset = (offset + n_bytes + kAlignment - 1) / kAlignment * kAlignment;
    return start;
  };
  for (const int32_t ratio : ratios) {
    DI_CHECK(ratio == 1 || ratio == 2);
    SourceLayout source;
    source.ratio = ratio;
    source.head_dim = head_dim;
    source.index_dim = index_dim;
    source.entries_per_block = kBlockTokens / ratio;
    source.values_offset = plane(int64_t{source.entries_per_block} * (head_dim / 2));
    source.value_scales_offset = plane(int64_t{source.entries_per_block} * (head_dim / 16));
    source.index_offset = plane(int64_t{source.entries_per_block} * (index_dim / 2));
    source.index_scales_offset = plane(int64_t{source.entries_per_block} * (index_dim / 32));
    layout.sources.push_back(source);
  }
  layout.block_bytes = offset;
  return layout;
}

}  // namespace deepinfer::kv
