#include "model/kv_memory.h"

#include "base/check.h"

namespace deepinfer {

namespace {

// Rows of a compressor tail: a group's open tokens. Two, so that a row and its partner never share a place.
constexpr int32_t kTailRows = 2;

kv::BlockLayout block_layout(const ModelConfig& config) {
  std::vector<int32_t> ratios;
  for (const int32_t layer : config.kv_source_layer_ids) {
    ratios.push_back(config.compress_ratios[static_cast<size_t>(layer)]);
  }
  return kv::make_block_layout(ratios, config.head_dim, config.index_head_dim);
}

int64_t ring_bytes(const ModelConfig& config, const KvSize& size) {
  return int64_t{size.n_slots} * config.sliding_window * kv::window_row_bytes(config.head_dim);
}

int64_t tail_bytes(const ModelConfig& config, const KvSize& size) {
  return int64_t{size.n_slots} * kTailRows * 2 * config.head_dim * static_cast<int64_t>(sizeof(float));
}

}  // namespace

KvBytes kv_bytes(const ModelConfig& config, const KvSize& size) {
  const kv::BlockLayout layout = block_layout(config);
  KvBytes bytes;
  bytes.blocks = layout.block_bytes * size.n_blocks;
  bytes.rings = ring_bytes(config, size) * config.n_layers;
  for (const kv::SourceLayout& source : layout.sources) bytes.tails += source.ratio > 1 ? tail_bytes(config, size) : 0;
  return bytes;
}

Result<KvMemory> KvMemory::create(const ModelConfig& config, const KvSize& size, ops::Backend& backend) {
  KvMemory memory;
  memory.backend_ = &backend;
  memory.size_ = size;
  const auto take = [&](int64_t n_bytes) -> Result<uint8_t*> {
    DI_ASSIGN_OR_RETURN(ops::Buffer buffer, backend.allocate(n_bytes));
    memory.buffers_.push_back(std::move(buffer));
    return memory.buffers_.back().as<uint8_t>();
  };

  const kv::BlockLayout layout = block_layout(config);
  DI_ASSIGN_OR_RETURN(uint8_t * pool, take(layout.block_bytes * size.n_blocks));
  DI_ASSIGN_OR_RETURN(uint8_t * table, take(int64_t{size.n_slots} * size.blocks_per_slot * int64_t{sizeof(int32_t)}));
  memory.block_table_ = reinterpret_cast<int32_t*>(table);
  for (const kv::SourceLayout& source : layout.sources) {
    memory.views_.sources.push_back({.pool = pool,
                                     .block_bytes = layout.block_bytes,
                                     .block_table = memory.block_table_,
                                     .blocks_per_slot = size.blocks_per_slot,
                                     .layout = source});
    kv::TailView tail{.base = nullptr, .n_rows = kTailRows, .head_dim = config.head_dim};
    if (source.ratio > 1) {
      DI_ASSIGN_OR_RETURN(uint8_t * base, take(tail_bytes(config, size)));
      tail.base = reinterpret_cast<float*>(base);
    }
    memory.views_.tails.push_back(tail);
  }
  for (int32_t layer = 0; layer < config.n_layers; ++layer) {
    DI_ASSIGN_OR_RETURN(uint8_t * base, take(ring_bytes(config, size)));
    memory.views_.rings.push_back({.base = base, .n_rows = config.sliding_window, .head_dim = config.head_dim});
  }
  return memory;
}

Status KvMemory::set_blocks(int32_t slot, std::span<const int32_t> blocks) {
  DI_CHECK(slot >= 0 && slot < size_.n_slots);
  DI_CHECK(blocks.size() <= static_cast<size_t>(size_.blocks_per_slot));
  return backend_->upload(block_table_ + int64_t{slot} * size_.blocks_per_slot, blocks.data(),
                          static_cast<int64_t>(blocks.size_bytes()));
}

}  // namespace deepinfer
