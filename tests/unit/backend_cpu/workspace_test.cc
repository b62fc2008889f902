// What reserve() reserves is enough for the very first step of every operation: the formulas beside the operations and
// the memory they take agree. Linked with --wrap=aligned_alloc, which all workspace memory comes from.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "backend/cpu/arena.h"
#include "backend/cpu/cpu_backend.h"
#include "bench/op_case.h"

namespace {
std::atomic<int64_t> g_n_aligned_allocs{0};
}  // namespace

extern "C" {
void* __real_aligned_alloc(size_t alignment, size_t size);
void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  ++g_n_aligned_allocs;
  return __real_aligned_alloc(alignment, size);
}
}

namespace deepinfer {
namespace {

TEST(Workspace, IsReservedForTheFirstStep) {
  for (const bench::OpCase& c : bench::contract_cases()) {
    SCOPED_TRACE(c.name);
    const std::unique_ptr<ops::Backend> backend = make_cpu_backend(2);
    ASSERT_TRUE(backend->reserve(c.config, c.limits).ok());
    bench::BoundCase bound(*backend);
    c.bind(bound);
    ASSERT_TRUE(bound.status().ok());
    const int64_t before = g_n_aligned_allocs;
    ASSERT_TRUE(bound.step({0, c.n_rows}).ok());
    EXPECT_EQ(g_n_aligned_allocs - before, 0);
  }
}

#ifndef __SANITIZE_ADDRESS__  // its allocator ends the process instead
TEST(Arena, SaysSoWhenThereIsNotThatMuchMemory) {
  cpu::Arena arena;
  EXPECT_FALSE(arena.reserve(int64_t{1} << 60));
  EXPECT_TRUE(arena.reserve(256));
}
#endif

TEST(Arena, KeepsPointersWhenItGrowsAndIsOnePieceAfterwards) {
  cpu::Arena arena;
  ASSERT_TRUE(arena.reserve(256));
  for (int round = 0; round < 3; ++round) {
    const cpu::Arena::Scope outer(arena);
    int32_t* first = arena.take<int32_t>(16);
    first[0] = 7;
    {
      const cpu::Arena::Scope inner(arena);
      float* large = arena.take<float>(1000);
      large[999] = 1;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % cpu::Arena::kAlignment, 0u);
    }
    EXPECT_EQ(first[0], 7);
  }
  EXPECT_EQ(arena.n_allocations(), 3);  // 256 bytes, the array that did not fit, all in one
}

}  // namespace
}  // namespace deepinfer
