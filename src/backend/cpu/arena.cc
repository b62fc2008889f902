#include "backend/cpu/arena.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer::cpu {

Arena::Block Arena::allocate(int64_t n_bytes) {
  void* data = std::aligned_alloc(kAlignment, static_cast<size_t>(std::max(n_bytes, kAlignment)));
  DI_CHECK(data != nullptr);  // reserve() sizes are bounded by the options; running out here cannot be repaired
  ++n_allocations_;
  return Block(data);
}

void Arena::reserve(int64_t n_bytes) {
  DI_CHECK(used_ == 0 && extra_.empty());
  n_bytes = bytes<char>(n_bytes);
  if (n_bytes <= capacity_) return;
  main_.reset();
  main_ = allocate(n_bytes);
  capacity_ = n_bytes;
}

void* Arena::take_bytes(int64_t n_bytes) {
  if (used_ + n_bytes <= capacity_) {
    void* data = static_cast<char*>(main_.get()) + used_;
    used_ += n_bytes;
    wanted_ = std::max(wanted_, used_ + extra_bytes_);
    return data;
  }
  extra_.push_back(allocate(n_bytes));
  extra_bytes_ += n_bytes;
  wanted_ = std::max(wanted_, used_ + extra_bytes_);
  return extra_.back().get();
}

void Arena::rewind(int64_t used, size_t n_extra, int64_t extra_bytes) {
  used_ = used;
  if (extra_.size() > n_extra) extra_.resize(n_extra);
  extra_bytes_ = extra_bytes;
  if (used_ == 0 && extra_.empty() && wanted_ > capacity_) reserve(wanted_);
}

}  // namespace deepinfer::cpu
