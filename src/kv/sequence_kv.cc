#include "kv/sequence_kv.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "kv/layout.h"

namespace deepinfer::kv {

Result<SequenceKv> Allocator::open() {
  DI_ASSIGN_OR_RETURN(Lease slot, slots_.take());
  return SequenceKv(std::move(slot));
}

Status Allocator::grow(SequenceKv& sequence, int64_t n_tokens) {
  const int64_t n_blocks = (n_tokens + kBlockTokens - 1) / kBlockTokens;
  const int64_t n_more = n_blocks - static_cast<int64_t>(sequence.leases_.size());
  if (n_more > blocks_.n_free()) {
    return Error{Code::kOutOfCapacity, "a sequence of " + std::to_string(n_tokens) + " tokens needs " +
                                           std::to_string(n_more) + " more KV blocks, " +
                                           std::to_string(blocks_.n_free()) + " of " +
                                           std::to_string(blocks_.n_total()) + " are free"};
  }
  for (int64_t i = 0; i < n_more; ++i) {
    Result<Lease> lease = blocks_.take();
    DI_CHECK(lease.ok());
    sequence.block_ids_.push_back(lease->id());
    sequence.leases_.push_back(*std::move(lease));
  }
  return {};
}

}  // namespace deepinfer::kv
