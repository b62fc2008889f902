// The KV places of sequences: one ring slot each and as many blocks as their length needs. Bookkeeping only. One
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deepinfer/status.h"
#include "kv/block_pool.h"

namespace deepinfer::kv {

/// What one sequence holds. Gives it back when it dies. Move-only.
class SequenceKv {
 public:
  [[nodiscard]] int32_t slot() const { return slot_.id(); }
  /// Block ids in order of position, kBlockTokens tokens each.
  [[nodiscard]] std::span<const int32_t> blocks() const { return block_ids_; }

 private:
  friend class Allocator;
  explicit SequenceKv(Lease slot) : slot_(std::move(slot)) {}

  Lease slot_;
  std::vector<Lease> leases_;
  std::vector<int32_t> block_ids_;
};

class Allocator {
 public:
  Allocator(int32_t n_slots, int32_t n_blocks) : slots_("sequence slots", n_slots), blocks_("KV blocks", n_blocks) {}

  /// kOutOfCapacity when all slots are taken.
  Result<SequenceKv> open();
  /// Makes room for n_tokens tokens in all; all or nothing. kOutOfCapacity names what was asked and what there is.
  Status grow(SequenceKv& sequence, int64_t n_tokens);

  [[nodiscard]] const IdPool& blocks() const { return blocks_; }
  [[nodiscard]] const IdPool& slots() const { return slots_; }

 private:
  IdPool slots_;
  IdPool blocks_;
};

}  // namespace deepinfer::kv
