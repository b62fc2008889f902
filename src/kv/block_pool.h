// Who holds which block of the global KV pool and which ring slot. Bookkeeping only: it never touches the memory the
// ids stand for. A lease is a value; when it dies its place is free again, so a leak would be a destructor bug, and
// n_free() + n_leased() == n_total() always. One thread (the engine's).
#pragma once

#include <cstdint>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer::kv {

class IdPool;

/// The right to use one id of a pool. Move-only.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  [[nodiscard]] int32_t id() const { return id_; }

 private:
  friend class IdPool;
  Lease(IdPool* pool, int32_t id) : pool_(pool), id_(id) {}

  IdPool* pool_ = nullptr;  // outlives its leases
  int32_t id_ = -1;
};

/// Ids 0..n_total-1, lowest free id first so that runs repeat exactly.
class IdPool {
 public:
  /// `thing` names an id in error messages ("KV blocks", "sequence slots").
  IdPool(const char* thing, int32_t n_total);
  IdPool(const IdPool&) = delete;
  IdPool& operator=(const IdPool&) = delete;
  ~IdPool();  // all leases must be back (checked)

  /// kOutOfCapacity when none is free.
  Result<Lease> take();

  [[nodiscard]] int32_t n_total() const { return n_total_; }
  [[nodiscard]] int32_t n_free() const { return static_cast<int32_t>(free_.size()); }
  [[nodiscard]] int32_t n_leased() const { return n_leased_; }

 private:
  friend class Lease;
  void give_back(int32_t id) noexcept;

  const char* thing_;
  int32_t n_total_;
  int32_t n_leased_ = 0;
  std::vector<int32_t> free_;  // min-heap; capacity reserved once, so giving back never allocates
};

}  // namespace deepinfer::kv
