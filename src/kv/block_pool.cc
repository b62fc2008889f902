#include "kv/block_pool.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "base/check.h"

namespace deepinfer::kv {

Lease::Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(std::exchange(other.id_, -1)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(id_, other.id_);
  return *this;
}

Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(id_);
}

IdPool::IdPool(const char* thing, int32_t n_total) : thing_(thing), n_total_(n_total) {
  free_.resize(static_cast<size_t>(n_total));
  for (int32_t i = 0; i < n_total; ++i) free_[static_cast<size_t>(i)] = i;  // ascending is already a min-heap
}

IdPool::~IdPool() { DI_CHECK(n_leased_ == 0); }

Result<Lease> IdPool::take() {
  if (free_.empty()) {
    return Error{Code::kOutOfCapacity, std::string("all ") + std::to_string(n_total_) + " " + thing_ + " are in use"};
  }
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t id = free_.back();
  free_.pop_back();
  ++n_leased_;
  return Lease(this, id);
}

void IdPool::give_back(int32_t id) noexcept {
  --n_leased_;
  free_.push_back(id);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  DI_CHECK(n_free() + n_leased_ == n_total_);
}

}  // namespace deepinfer::kv
