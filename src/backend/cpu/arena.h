// Workspace memory: a stack of typed arrays that grows only when it has to. Pointers stay valid until their Scope ends,
// also when the arena grows meanwhile; after the outermost Scope it is one piece again, so a step that fits what was
// reserved allocates nothing. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

namespace deepinfer::cpu {

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  /// Bytes that take<T>(n) uses up.
  template <typename T>
  static constexpr int64_t bytes(int64_t n) {
    return (n * static_cast<int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// Makes later scopes of up to n_bytes free of allocations. False when there is not that much memory.
  [[nodiscard]] bool reserve(int64_t n_bytes);

  /// n uninitialised elements, aligned to 64 bytes.
  template <typename T>
  T* take(int64_t n) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return static_cast<T*>(take_bytes(bytes<T>(n)));
  }

  /// How often memory was obtained, for tests.
  [[nodiscard]] int64_t n_allocations() const { return n_allocations_; }

  /// Everything taken while it lives is given back at its end. Scopes nest.
  class Scope {
   public:
    explicit Scope(Arena& arena)
        : arena_(arena), used_(arena.used_), n_extra_(arena.extra_.size()), extra_bytes_(arena.extra_bytes_) {}
    ~Scope() { arena_.rewind(used_, n_extra_, extra_bytes_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    int64_t used_;
    size_t n_extra_;
    int64_t extra_bytes_;
  };

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  using Block = std::unique_ptr<void, Free>;

  Block allocate(int64_t n_bytes);
  void* take_bytes(int64_t n_bytes);
  void rewind(int64_t used, size_t n_extra, int64_t extra_bytes);

  Block main_;
  int64_t capacity_ = 0;
  int64_t used_ = 0;          // of main_
  std::vector<Block> extra_;  // what did not fit, one array each
  int64_t extra_bytes_ = 0;
  int64_t wanted_ = 0;  // most bytes that were in use together
  int64_t n_allocations_ = 0;
};

}  // namespace deepinfer::cpu
