#include "bench/ceilings.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "platform/cpu_features.h"
#include "platform/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace deepinfer::bench {
namespace {

constexpr int kPasses = 12;

/// Results nobody needs go here, so that the work is not optimised away.
std::atomic<uint64_t> g_unused{0};

/// Twice the last-level cache, at least 64 MiB.
size_t beyond_cache_bytes() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::max<size_t>(size_t{64} << 20, l3 > 0 ? 2 * static_cast<size_t>(l3) : 0);
}

template <typename Work>
double best_seconds(const Work& work) {
  double best = 1e30;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

uint64_t read_all(const char* data, size_t n_bytes) {
  uint64_t sum[8] = {};
  for (size_t i = 0; i + 64 <= n_bytes; i += 64) {
    uint64_t word[8];
    std::memcpy(word, data + i, 64);
    for (int j = 0; j < 8; ++j) sum[j] += word[j];
  }
  uint64_t total = 0;
  for (const uint64_t s : sum) total += s;
  return total;
}

// One burst of multiply-adds on independent accumulators, enough of them to hide the latency, unrolled so that they
// stay in registers; returns operations done.
constexpr int64_t kBurst = 1 << 20;
constexpr int kChains = 12;

double burst_generic() {
  using Vector = float __attribute__((vector_size(16)));
  Vector sum[kChains] = {};
  const Vector a = {0.5f, 0.5f, 0.5f, 0.5f};
  for (int64_t i = 0; i < kBurst; ++i) {
#pragma GCC unroll 12
    for (Vector& s : sum) s = s * a + a;
  }
  float unused = 0;
  for (const Vector& s : sum) unused += s[0];
  g_unused.fetch_add(static_cast<uint64_t>(unused), std::memory_order_relaxed);
  return 2.0 * 4 * kChains * kBurst;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double burst_avx2() {
  __m256 sum[kChains];
  const __m256 a = _mm256_set1_ps(0.5f);
  for (__m256& s : sum) s = a;
  for (int64_t i = 0; i < kBurst; ++i) {
#pragma GCC unroll 12
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, a, a);
  }
  float unused = 0;
  for (const __m256& s : sum) unused += _mm256_cvtss_f32(s);
  g_unused.fetch_add(static_cast<uint64_t>(unused), std::memory_order_relaxed);
  return 2.0 * 8 * kChains * kBurst;
}

__attribute__((target("avx512f"))) double burst_avx512() {
  __m512 sum[kChains];
  const __m512 a = _mm512_set1_ps(0.5f);
  for (__m512& s : sum) s = a;
  for (int64_t i = 0; i < kBurst; ++i) {
#pragma GCC unroll 12
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, a, a);
  }
  float unused = 0;
  for (const __m512& s : sum) unused += _mm512_cvtss_f32(s);
  g_unused.fetch_add(static_cast<uint64_t>(unused), std::memory_order_relaxed);
  return 2.0 * 16 * kChains * kBurst;
}
#endif

using Burst = double (*)();

Burst burst_of(std::string_view isa) {
  if (isa == "generic") return burst_generic;
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  if (isa == "avx2" && features.avx2 && features.fma) return burst_avx2;
  if (isa == "avx512" && features.avx512f) return burst_avx512;
#endif
  return nullptr;
}

}  // namespace

MemoryCeilings measure_memory(int n_threads) {
  const size_t part = beyond_cache_bytes() / static_cast<size_t>(n_threads) / 64 * 64;
  std::vector<char> from(part * static_cast<size_t>(n_threads), 1);
  std::vector<char> to(from.size(), 2);
  ThreadPool pool(n_threads);
  const double read = best_seconds([&] {
    pool.run(n_threads, [&](int64_t i) {
      g_unused.fetch_add(read_all(from.data() + static_cast<size_t>(i) * part, part), std::memory_order_relaxed);
    });
  });
  const double copy = best_seconds([&] {
    pool.run(n_threads, [&](int64_t i) {
      std::memcpy(to.data() + static_cast<size_t>(i) * part, from.data() + static_cast<size_t>(i) * part, part);
    });
  });
  g_unused.fetch_add(static_cast<uint64_t>(to[part / 2]), std::memory_order_relaxed);
  const auto n_bytes = static_cast<double>(from.size());
  return {.read_gbps = n_bytes / read * 1e-9, .copy_gbps = 2 * n_bytes / copy * 1e-9};
}

double measure_fma_gflops(std::string_view isa, int n_threads) {
  const Burst burst = burst_of(isa);
  if (burst == nullptr) return 0;
  ThreadPool pool(n_threads);
  std::vector<double> done(static_cast<size_t>(n_threads));
  const double seconds =
      best_seconds([&] { pool.run(n_threads, [&](int64_t i) { done[static_cast<size_t>(i)] = burst(); }); });
  double total = 0;
  for (const double n : done) total += n;
  return total / seconds * 1e-9;
}

CacheEviction::CacheEviction() : buffer_(beyond_cache_bytes(), 1) {}

void CacheEviction::run() { g_unused.fetch_add(read_all(buffer_.data(), buffer_.size()), std::memory_order_relaxed); }

}  // namespace deepinfer::bench
