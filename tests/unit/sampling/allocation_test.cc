// Counts heap allocations of this program, to show that a steady call makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"

namespace {
std::atomic<int64_t> n_allocations{0};
}

// noinline: seen through, GCC takes the pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(size_t n_bytes) {
  ++n_allocations;
  if (void* p = std::malloc(n_bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t n_bytes, const std::nothrow_t&) noexcept {
  ++n_allocations;
  return std::malloc(n_bytes);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace deepinfer {
namespace {

TEST(Sampler, AllocatesNothing) {
  constexpr int64_t kVocab = 5000;
  std::vector<float> logits(kVocab);
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 3);
  for (float& l : logits) l = normal(rng);
  Sampler sampler(kVocab);
  TokenLogprob top[20];
  int64_t sum = 0;
  const int64_t before = n_allocations;
  for (const int64_t top_k : {0, 50, 4000}) {
    for (const float top_p : {1.0f, 0.9f, 0.99999f}) {
      for (const float temperature : {0.0f, 1.0f, 100.0f}) {
        const SamplingParams params{.temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = 0.001f};
        sum += *sampler.sample(logits, 3, params);
        sum += static_cast<int64_t>(sampler.survivors(logits, params)->size());
      }
    }
  }
  sum += top_logprobs(logits, log_sum_exp(logits), top);
  EXPECT_EQ(n_allocations, before);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace deepinfer
