// Compiled grammars by content, so that equal constraints are compiled once: refusals are remembered, too, memory is
// bounded, and compilation happens on a few threads of its own. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"

namespace deepinfer::grammar {

/// Text that is equal for constraints that mean the same: kind, source (JSON without blanks between its tokens), options.
/// Remote documents count by identity of their map.
std::string canonical_key(const Constraint& constraint);

/// A compilation that somebody may wait for. Copies wait for the same one.
class PendingGrammar {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool ready() const;
  /// Blocks until the compilation is done or the deadline given to compile_async() has passed; then it is refused.
  [[nodiscard]] Compiled wait() const;

 private:
  friend class GrammarCache;
  struct Job;
  PendingGrammar(std::shared_ptr<Job> job, Clock::time_point deadline) : job_(std::move(job)), deadline_(deadline) {}
  std::shared_ptr<Job> job_;
  Clock::time_point deadline_;
};

struct GrammarCacheOptions {
  int64_t n_bytes_max = int64_t{256} << 20;  // grammars in use elsewhere live on when they are dropped here
  int32_t n_threads = 2;
  int32_t n_queued_max = 256;
  CompileLimits limits;
  /// A refusal for time, which may have been the machine's fault, is tried again after this.
  std::chrono::milliseconds retry_after{30'000};
};

class GrammarCache {
 public:
  using Clock = PendingGrammar::Clock;
  using Compile = std::function<Compiled(const Constraint&, const CompileLimits&)>;
  struct Stats {
    int64_t n_entries, n_bytes, n_hits, n_compiled, n_dropped;
  };

  GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, GrammarCacheOptions options = {});
  /// `compile` does the work: for tests.
  GrammarCache(Compile compile, GrammarCacheOptions options);
  /// Compilations that have not begun are refused. No call may be running.
  ~GrammarCache();
  GrammarCache(const GrammarCache&) = delete;
  GrammarCache& operator=(const GrammarCache&) = delete;

  /// From the cache, or compiled on the calling thread, or waited for where another thread is at it.
  /// Cost     a hit: a hash of the source, and a parse where it is JSON
  Compiled compile(const Constraint& constraint);
  /// Never blocks for long. A full queue and a deadline that passes are refusals, which are not remembered.
  PendingGrammar compile_async(Constraint constraint, Clock::time_point deadline);

  [[nodiscard]] Stats stats() const;

 private:
  using Job = PendingGrammar::Job;
  using Jobs = std::list<std::shared_ptr<Job>>;

  struct Outcome {
    Compiled compiled;
    bool is_hurried = false;  // a refusal for a deadline: not remembered
    Clock::time_point expires = Clock::time_point::max();
  };

  std::shared_ptr<Job> find(const std::string& key, Clock::time_point deadline);
  std::shared_ptr<Job> add(std::string key, Constraint constraint, Clock::time_point deadline);
  void run(const std::shared_ptr<Job>& job);
  bool finish(const std::shared_ptr<Job>& job, Outcome outcome, Clock::time_point deadline);
  void forget(const std::shared_ptr<Job>& job);
  static int64_t n_bytes_of(Job& job);
  void trim();
  void work(const std::stop_token& stop);

  const Compile compile_;
  const GrammarCacheOptions options_;

  mutable std::mutex mutex_;                                    // guards all below
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs_;  // by key, unfinished ones included
  Jobs kept_;                                                   // finished, the last used first
  std::deque<std::shared_ptr<Job>> queue_;
  std::condition_variable_any wake_;
  int64_t n_hits_ = 0, n_compiled_ = 0, n_dropped_ = 0;

  std::vector<std::jthread> threads_;  // last: they stop before the rest goes
};

}  // namespace deepinfer::grammar
