#include "tests/contract/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

// The program is linked with -Wl,--wrap for the C functions: calls from our objects come here, the C library's own do
// not.
extern "C" {
void* __real_malloc(size_t n_bytes);
void* __real_calloc(size_t n, size_t n_bytes);
void* __real_realloc(void* p, size_t n_bytes);
void* __real_aligned_alloc(size_t alignment, size_t n_bytes);
int __real_posix_memalign(void** p, size_t alignment, size_t n_bytes);
}

namespace {

std::atomic<int64_t> g_n_allocations{0};

void count() { g_n_allocations.fetch_add(1, std::memory_order_relaxed); }

void* counted(std::size_t n_bytes) {
  count();
  void* p = __real_malloc(n_bytes == 0 ? 1 : n_bytes);
  if (p == nullptr) std::abort();
  return p;
}

void* counted(std::size_t n_bytes, std::align_val_t alignment) {
  count();
  const auto align = static_cast<std::size_t>(alignment);
  void* p = __real_aligned_alloc(align, (n_bytes + align - 1) / align * align);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

extern "C" {
void* __wrap_malloc(size_t n_bytes) { return count(), __real_malloc(n_bytes); }
void* __wrap_calloc(size_t n, size_t n_bytes) { return count(), __real_calloc(n, n_bytes); }
void* __wrap_realloc(void* p, size_t n_bytes) { return count(), __real_realloc(p, n_bytes); }
void* __wrap_aligned_alloc(size_t alignment, size_t n_bytes) {
  return count(), __real_aligned_alloc(alignment, n_bytes);
}
int __wrap_posix_memalign(void** p, size_t alignment, size_t n_bytes) {
  return count(), __real_posix_memalign(p, alignment, n_bytes);
}
}

void* operator new(std::size_t n) { return counted(n); }
void* operator new[](std::size_t n) { return counted(n); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return counted(n); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, a); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace deepinfer {
int64_t n_allocations() { return g_n_allocations.load(std::memory_order_relaxed); }
}  // namespace deepinfer
