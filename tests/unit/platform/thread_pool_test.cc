#include "platform/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

namespace deepinfer {
namespace {

TEST(ThreadPool, CoversEveryIndexOnceForAnyGrain) {
  for (const int n_threads : {1, 2, 3, 7}) {
    ThreadPool pool(n_threads);
    EXPECT_EQ(pool.n_threads(), n_threads);
    for (const int64_t n : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<int> hits(static_cast<size_t>(n), 0);  // plain ints: disjoint ranges need no atomics
        pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LE(end - begin, grain);
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        for (const int h : hits) ASSERT_EQ(h, 1) << n_threads << ' ' << n << ' ' << grain;
      }
    }
  }
}

TEST(ThreadPool, RunCallsEveryTask) {
  ThreadPool pool(3);
  std::vector<int64_t> squares(100);
  pool.run(100, [&](int64_t i) { squares[static_cast<size_t>(i)] = i * i; });
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(squares[static_cast<size_t>(i)], i * i);
}

TEST(ThreadPool, NestedLoopsRunInlineOnTheSameThread) {
  ThreadPool pool(3);
  ThreadPool other(2);
  std::atomic<int> n_inner{0};
  pool.run(20, [&](int64_t) {
    const auto outer_thread = std::this_thread::get_id();
    const int outer_index = ThreadPool::this_thread_index();
    pool.run(5, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer_thread);
      EXPECT_EQ(ThreadPool::this_thread_index(), outer_index);
      ++n_inner;
    });
    other.run(5, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), outer_thread); });
  });
  EXPECT_EQ(n_inner, 100);
}

TEST(ThreadPool, ThreadIndexPicksPrivateScratch) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(4, 0);  // one a thread, unguarded
  pool.run(10000, [&](int64_t i) { sums[static_cast<size_t>(ThreadPool::this_thread_index())] += i; });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 10000 * 9999 / 2);
  EXPECT_EQ(ThreadPool::this_thread_index(), 0);
}

// Back-to-back loops with bodies on the stack: a worker that came late to loop k must not run anything of loop k + 1
// with the state of loop k, nor touch a body that is gone.
// A worker that is late for a short loop must not take the number of ranges of the longer loop that follows for its
// own: it would run one range twice and the caller would wait for ever.
TEST(ThreadPool, ALateWorkerClaimsNothingOfTheNextLoop) {
  for (const int n_threads : {2, 3, 8}) {
    ThreadPool pool(n_threads);
    std::vector<std::atomic<int>> n_calls(64);
    for (int round = 0; round < 20'000; ++round) {
      const int64_t n = round % 2 == 0 ? 2 : 64;
      for (std::atomic<int>& count : n_calls) count.store(0, std::memory_order_relaxed);
      pool.run(n, [&](int64_t i) { n_calls[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed); });
      for (int64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(n_calls[static_cast<size_t>(i)].load(std::memory_order_relaxed), i < n ? 1 : 0)
            << n_threads << " threads, round " << round << ", index " << i;
      }
    }
  }
}

TEST(ThreadPool, StressManyShortLoops) {
  for (const int n_threads : {2, 4}) {
    ThreadPool pool(n_threads);
    int64_t total = 0;
    for (int64_t loop = 0; loop < 3000; ++loop) {
      const int64_t n = 1 + loop % 17;
      std::vector<int64_t> out(static_cast<size_t>(n), -1);
      pool.parallel_for(n, 1 + loop % 3, [&out, loop](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] = loop + i;
      });
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], loop + i);
      total += n;
    }
    EXPECT_GT(total, 0);
  }
}

TEST(ThreadPool, WorkersWakeFromSleepAndTheCallerWaitsForASlowOne) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the spin
    std::atomic<int> n_ran{0};
    pool.run(2, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++n_ran;
    });
    EXPECT_EQ(n_ran, 2);
  }
}

TEST(ThreadPool, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 3; ++c) {
      callers.emplace_back([&] {
        for (int k = 0; k < 200; ++k) pool.run(10, [&](int64_t i) { sum += i; });
      });
    }
  }
  EXPECT_EQ(sum, 3 * 200 * 45);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need more address space than this leaves
TEST(ThreadPoolDeathTest, AThreadThatCannotBeStartedIsAnErrorAndNoHang) {
  const auto start_too_many = [] {
    const rlimit limit{rlim_t{200} << 20, rlim_t{200} << 20};  // room for a few stacks
    setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(512);
    } catch (const std::system_error&) {
      std::exit(7);
    }
    std::exit(0);
  };
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(7), "");
}
#endif

TEST(ThreadPoolDeathTest, AnExceptionOutOfABodyEndsTheProcess) {
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.run(2, [](int64_t) { throw 1; });
      },
      "");
}

}  // namespace
}  // namespace deepinfer
