// A fork-join pool: one caller hands out a loop, takes part in it and returns when all of it is done. Knows nothing of
// what runs in it. A call allocates nothing. Which thread runs which piece is not fixed, so bodies must not let results
// depend on it. Idle workers spin for a moment, because steps follow each other closely, then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace deepinfer {

/// A borrowed callable: two pointers, valid while the callable it was made from lives.
template <typename Signature>
class FunctionRef;

template <typename Return, typename... Args>
class FunctionRef<Return(Args...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<Return, F&, Args...>)
      FunctionRef(F&& f)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Return {
          return (*static_cast<std::add_pointer_t<F>>(object))(static_cast<Args>(args)...);
        }) {}

  Return operator()(Args... args) const { return call_(object_, static_cast<Args>(args)...); }

 private:
  void* object_;
  Return (*call_)(void*, Args...);
};

class ThreadPool {
 public:
  using Body = FunctionRef<void(int64_t begin, int64_t end)>;

  /// Starts n_threads - 1 workers; the caller of a loop is the remaining one. n_threads >= 1 (checked). Lets the
  /// std::system_error of a system that gives no more threads through.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end) for disjoint ranges of at most `grain` indices that cover [0, n), and returns when all
  /// calls have: what they wrote is visible to the caller. Inline when there is one thread or one range, and when
  /// called from inside a loop of any pool. Calls from several threads take turns. An exception out of body ends the
  /// process. n >= 0, grain >= 1, fewer than 2^32 ranges (checked).
  void parallel_for(int64_t n, int64_t grain, Body body);

  /// Calls task(i) for every i in [0, n_tasks).
  template <typename Task>
  void run(int64_t n_tasks, Task&& task) {
    parallel_for(n_tasks, 1, [&task](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) task(i);
    });
  }

  /// Inside a loop: which of the pool's threads this is, 0 (the caller) to n_threads() - 1, to pick scratch memory.
  /// 0 outside of any loop.
  static int this_thread_index();

 private:
  /// One loop, read by a worker before it claims a range. Atomics, since a late worker may read while the next loop is
  /// being written; it then finds nothing to claim (thread_pool.cc has the argument).
  struct Job {
    std::atomic<const Body*> body{nullptr};
    std::atomic<int64_t> n{0};
    std::atomic<int64_t> grain{1};
    std::atomic<uint32_t> n_ranges{0};
  };

  void stop();
  void worker_loop(int thread_idx);
  void take_ranges(uint32_t epoch) noexcept;
  void wait_for_epoch_after(uint32_t seen);
  void wait_until_done(uint32_t n_ranges);

  std::mutex call_mutex_;  // held by the thread whose loop is running
  Job job_;
  alignas(64) std::atomic<uint64_t> claim_{0};   // epoch in the upper half, next range in the lower
  alignas(64) std::atomic<uint32_t> n_done_{0};  // ranges finished in this epoch
  alignas(64) std::atomic<bool> stop_{false};
  int64_t spin_ns_max_;

  // Sleeping. The counters are changed under park_mutex_ and read without it (see thread_pool.cc).
  std::mutex park_mutex_;
  std::condition_variable work_ready_;
  std::condition_variable work_done_;
  std::atomic<int> n_parked_{0};
  std::atomic<bool> caller_parked_{false};

  std::vector<std::jthread> workers_;  // last: joined before the rest goes
};

}  // namespace deepinfer
