#include "backend/cpu/arena.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer::cpu {

Arena::Block Arena::allocate(int64_t n_bytes) {
  void* data = std::aligned_alloc(kAlignment, static_cast<size_t>(std::max(n_bytes, kAlignment)));
  ++n_allocations_;
  return Block(data);
}

bool Arena::reserve(int64_t n_bytes) {
  DI_CHECK(used_ == 0 && extra_.empty());
  n_bytes = bytes<char>(n_bytes);
  if (n_bytes <= capacity_) return true;
  main_.reset();
  main_ = allocate(n_bytes);
  capacity_ = main_ ? n_bytes : 0;
  return main_ != nullptr;
}

void* Arena::take_bytes(int64_t n_bytes) {
  if (used_ + n_bytes <= capacity_) {
    void* data = static_cast<char*>(main_.get()) + used_;
    used_ += n_bytes;
    wanted_ = std::max(wanted_, used_ + extra_bytes_);
    return data;
  }
  extra_.push_back(allocate(n_bytes));
  DI_CHECK(extra_.back() != nullptr);  // reserve() was to cover every step; running out here cannot be repaired
  extra_bytes_ += n_bytes;
  wanted_ = std::max(wanted_, used_ + extra_bytes_);
  return extra_.back().get();
}

void Arena::rewind(int64_t used, size_t n_extra, int64_t extra_bytes) {
  used_ = used;
  if (extra_.size() > n_extra) extra_.resize(n_extra);
  extra_bytes_ = extra_bytes;
  if (used_ == 0 && extra_.empty() && wanted_ > capacity_) {
    static_cast<void>(reserve(wanted_));  // if it fails, the next scope takes its pieces one by one again
  }
}

}  // namespace deepinfer::cpu
