// Memory order. One loop is one epoch.
//
// Publishing. The caller closes claim_, writes job_, resets n_done_ and stores claim_ = (epoch, 0) with release. A
// worker loads claim_ with acquire, so it sees the job_ of that epoch or of a later one.
//
// Claiming. A worker loads claim_ = (e, i), reads job_, and if i < n_ranges swaps in (e, i + 1). The swap must fail
// when the job_ it read was already that of the next loop. For that the caller first stores claim_ = (e, closed) and
// then job_ with release: a worker that reads a new n_ranges (acquire) can only find claim_ closed or later, never
// again the (e, i) it expects, short of 2^32 loops during one claim. (Without closing, the last state (e, n_ranges)
// would pass for claimable as soon as a larger n_ranges is there.) Hence a successful swap proves that job_ was read
// whole for epoch e and that the caller still waits for range i, which keeps the body alive.
//
// Finishing. A worker adds the number of ranges it ran to n_done_ with release after running them; the caller reads
// n_done_ == n_ranges with acquire. All additions of an epoch have arrived by then, so the next reset cannot lose one.
//
// Sleeping. A sleeper raises its counter, then looks at what it waits for; a waker changes that, then looks at the
// counter. All four are sequentially consistent, so at least one sees the other: either the sleeper does not sleep, or
// the waker takes park_mutex_, after which the sleeper is inside wait() (and is notified) or has yet to test its
// predicate under the mutex (and finds it true).
#include "platform/thread_pool.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "platform/cpu_features.h"

namespace deepinfer {
namespace {

constexpr int64_t kSpinNsMax = 50'000;
// As the next range to claim: there is none, whatever n_ranges says.
constexpr uint32_t kClosed = 0xffffffff;

thread_local bool in_loop = false;
thread_local int thread_index = 0;

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Spins until ready() or until ns_max have passed; the last ready().
template <typename Ready>
bool spin(int64_t ns_max, Ready ready) {
  if (ready()) return true;
  if (ns_max == 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns_max);
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      cpu_relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

uint32_t epoch_of(uint64_t claim) { return static_cast<uint32_t>(claim >> 32); }
uint32_t range_of(uint64_t claim) { return static_cast<uint32_t>(claim); }

}  // namespace

ThreadPool::ThreadPool(int n_threads) {
  DI_CHECK(n_threads >= 1);
  // With more threads than processors a spinning thread only delays the one it waits for.
  spin_ns_max_ = n_threads <= available_cpus() ? kSpinNsMax : 0;
  workers_.reserve(static_cast<size_t>(n_threads - 1));
  try {
    for (int i = 1; i < n_threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (...) {  // the system gives no more threads: those that run must end before the caller hears of it
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::scoped_lock lock(park_mutex_);
    stop_.store(true);
  }
  work_ready_.notify_all();
  workers_.clear();
}

int ThreadPool::this_thread_index() { return thread_index; }

void ThreadPool::parallel_for(int64_t n, int64_t grain, Body body) {
  DI_CHECK(n >= 0);
  DI_CHECK(grain >= 1);
  if (n == 0) return;
  const int64_t n_ranges = (n - 1) / grain + 1;
  if (n_ranges == 1 || workers_.empty() || in_loop) {
    [&]() noexcept {
      for (int64_t begin = 0; begin < n; begin += std::min(grain, n - begin))
        body(begin, begin + std::min(grain, n - begin));
    }();
    return;
  }
  DI_CHECK(n_ranges < int64_t{kClosed});

  const std::scoped_lock turn(call_mutex_);
  const uint32_t last_epoch = epoch_of(claim_.load(std::memory_order_relaxed));
  claim_.store(static_cast<uint64_t>(last_epoch) << 32 | kClosed, std::memory_order_relaxed);
  job_.body.store(&body, std::memory_order_release);
  job_.n.store(n, std::memory_order_release);
  job_.grain.store(grain, std::memory_order_release);
  job_.n_ranges.store(static_cast<uint32_t>(n_ranges), std::memory_order_release);
  n_done_.store(0, std::memory_order_relaxed);
  const uint32_t epoch = last_epoch + 1;
  claim_.store(static_cast<uint64_t>(epoch) << 32, std::memory_order_seq_cst);
  if (n_parked_.load(std::memory_order_seq_cst) > 0) {
    { const std::scoped_lock lock(park_mutex_); }
    work_ready_.notify_all();
  }
  in_loop = true;
  take_ranges(epoch);
  in_loop = false;
  wait_until_done(static_cast<uint32_t>(n_ranges));
}

void ThreadPool::worker_loop(int thread_idx) {
  in_loop = true;  // loops started by a body run inline
  thread_index = thread_idx;
  uint32_t seen = 0;
  while (true) {
    wait_for_epoch_after(seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = epoch_of(claim_.load(std::memory_order_acquire));
    take_ranges(seen);
  }
}

void ThreadPool::take_ranges(uint32_t epoch) noexcept {
  uint32_t n_ran = 0;
  uint32_t n_ranges = 0;
  uint64_t claim = claim_.load(std::memory_order_acquire);
  while (epoch_of(claim) == epoch) {
    const Body* body = job_.body.load(std::memory_order_relaxed);
    const int64_t n = job_.n.load(std::memory_order_relaxed);
    const int64_t grain = job_.grain.load(std::memory_order_relaxed);
    n_ranges = job_.n_ranges.load(std::memory_order_acquire);
    if (range_of(claim) >= n_ranges) break;
    if (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    const int64_t begin = static_cast<int64_t>(range_of(claim)) * grain;
    (*body)(begin, begin + std::min(grain, n - begin));
    ++n_ran;
    claim = claim_.load(std::memory_order_acquire);
  }
  if (n_ran == 0) return;
  // Ranges this thread ran are not counted yet, so the epoch is still open and n_ranges is its number.
  const uint32_t n_done = n_done_.fetch_add(n_ran, std::memory_order_seq_cst) + n_ran;
  if (n_done == n_ranges && caller_parked_.load(std::memory_order_seq_cst)) {
    { const std::scoped_lock lock(park_mutex_); }
    work_done_.notify_one();
  }
}

void ThreadPool::wait_for_epoch_after(uint32_t seen) {
  const auto ready = [this, seen] {
    return epoch_of(claim_.load(std::memory_order_seq_cst)) != seen || stop_.load(std::memory_order_relaxed);
  };
  if (spin(spin_ns_max_, ready)) return;
  std::unique_lock lock(park_mutex_);
  n_parked_.fetch_add(1, std::memory_order_seq_cst);
  work_ready_.wait(lock, ready);
  n_parked_.fetch_sub(1, std::memory_order_seq_cst);
}

void ThreadPool::wait_until_done(uint32_t n_ranges) {
  const auto done = [this, n_ranges] { return n_done_.load(std::memory_order_seq_cst) == n_ranges; };
  if (spin(spin_ns_max_, done)) return;
  std::unique_lock lock(park_mutex_);
  caller_parked_.store(true, std::memory_order_seq_cst);
  work_done_.wait(lock, done);
  caller_parked_.store(false, std::memory_order_seq_cst);
}

}  // namespace deepinfer
