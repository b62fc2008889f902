// The memory behind all sequences' KV, in a backend's hands, and the views operations use. Who owns which slot and
// block is decided elsewhere (kv::Allocator); this only knows where they lie. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "kv/layout.h"
#include "model/forward.h"
#include "ops/backend.h"

namespace deepinfer {

struct KvSize {
  int32_t n_slots = 1;
  int32_t n_blocks = 1;
  int32_t blocks_per_slot = 1;  // most blocks one sequence can have
};

/// Bytes KvMemory will ask for, by part.
struct KvBytes {
  int64_t blocks = 0;  // global KV: compressed entries and index keys
  int64_t rings = 0;   // window KV of every layer
  int64_t tails = 0;   // open compressor groups
  [[nodiscard]] int64_t total() const { return blocks + rings + tails; }
};
KvBytes kv_bytes(const ModelConfig& config, const KvSize& size);

class KvMemory {
 public:
  /// kOutOfCapacity when it does not fit. backend outlives it.
  static Result<KvMemory> create(const ModelConfig& config, const KvSize& size, ops::Backend& backend);

  [[nodiscard]] const KvViews& views() const { return views_; }

  /// Tells the operations which blocks a slot's sequence has. At most blocks_per_slot.
  Status set_blocks(int32_t slot, std::span<const int32_t> blocks);

 private:
  KvMemory() = default;

  ops::Backend* backend_ = nullptr;
  KvSize size_;
  std::vector<ops::Buffer> buffers_;
  int32_t* block_table_ = nullptr;  // [n_slots, blocks_per_slot]
  KvViews views_;
};

}  // namespace deepinfer
