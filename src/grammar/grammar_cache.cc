#include "grammar/grammar_cache.h"

#include <algorithm>
#include <utility>

#include "grammar/compiled_grammar.h"
#include "text/json.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kTrimEvery = 256;                // hits; grammars grow in use
constexpr int64_t kEntryBytes = 512;               // a job and its places in map and list
constexpr size_t kJsonBytesMax = size_t{4} << 20;  // larger schemas are refused anyway, and not parsed for that
constexpr int32_t kRegionDepthMax = 8;  // of regions in the content of regions; deeper ones are refused anyway

void append_number(int64_t number, std::string& out) { (out += std::to_string(number)) += ';'; }

void append_text(std::string_view text, std::string& out) {
  append_number(static_cast<int64_t>(text.size()), out);
  out += text;
}

/// Precondition: a JSON text, so that nothing but blanks stands between tokens
std::string without_blanks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\') out += text[++i];
      in_string = c != '"';
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      out += c;
      in_string = c == '"';
    }
  }
  return out;
}

void append_key(const Constraint& constraint, int32_t depth, std::string& out) {
  // All members by name, so that a new one cannot be forgotten here.
  const auto& [kind, source, choices, regions, region_required, free_text, schema] = constraint;
  const auto& [dialect, formats, order, escapes, remotes, line_ends_max, blanks_max] = schema;
  append_number(static_cast<int64_t>(kind), out);
  const bool is_json =
      kind == Constraint::Kind::kJsonSchema && source.size() <= kJsonBytesMax && json::parse(source).ok();
  append_number(is_json ? 1 : 0, out);
  if (kind != Constraint::Kind::kJsonObject) append_text(is_json ? without_blanks(source) : source, out);
  for (const std::string& choice : choices) append_text(choice, out);
  out += '|';
  for (const Constraint::Region& region : regions) {
    append_text(region.begin, out);
    append_text(region.end, out);
    if (region.content != nullptr && depth < kRegionDepthMax) append_key(*region.content, depth + 1, out);
  }
  out += '|';
  for (const int64_t option :
       {int64_t{region_required}, int64_t{free_text}, static_cast<int64_t>(dialect), static_cast<int64_t>(formats),
        static_cast<int64_t>(order), static_cast<int64_t>(escapes), int64_t{line_ends_max}, int64_t{blanks_max},
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(remotes.get()))})
    append_number(option, out);
}

Compiled refused(std::string reason) { return {nullptr, Refusal{"", "", std::move(reason)}, {}}; }

Compiled too_late() { return refused("the constraint was not compiled before its deadline"); }

}  // namespace

std::string canonical_key(const Constraint& constraint) {
  std::string key;
  append_key(constraint, 0, key);
  return key;
}

struct PendingGrammar::Job {
  // Set before the job is shared.
  std::string key;
  Constraint constraint;  // also keeps the remotes of the key alive

  std::mutex mutex;  // guards the three below
  std::condition_variable done;
  std::optional<Compiled> result;
  Clock::time_point deadline;  // the latest of those who wait

  // Guarded by the cache's mutex.
  std::list<std::shared_ptr<Job>>::iterator place;  // in kept_, once is_kept
  bool is_kept = false;
  Clock::time_point expires = Clock::time_point::max();
};

bool PendingGrammar::ready() const {
  const std::lock_guard lock(job_->mutex);
  return job_->result.has_value() || Clock::now() >= deadline_;
}

Compiled PendingGrammar::wait() const {
  std::unique_lock lock(job_->mutex);
  const auto is_done = [this] { return job_->result.has_value(); };
  if (deadline_ == Clock::time_point::max()) {
    job_->done.wait(lock, is_done);
  } else if (!job_->done.wait_until(lock, deadline_, is_done)) {
    return too_late();
  }
  return *job_->result;
}

GrammarCache::GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, GrammarCacheOptions options)
    : GrammarCache(
          [vocabulary = std::move(vocabulary)](const Constraint& constraint, const CompileLimits& limits) {
            return grammar::compile(vocabulary, constraint, limits);
          },
          std::move(options)) {}

GrammarCache::GrammarCache(Compile compile, GrammarCacheOptions options)
    : compile_(std::move(compile)), options_(std::move(options)) {
  for (int32_t i = 0; i < options_.n_threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

GrammarCache::~GrammarCache() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  for (const auto& job : queue_)
    finish(job, {.compiled = refused("the service ends"), .is_hurried = true}, Clock::time_point::max());
}

/// The job of this key, finished or not, for somebody who waits until `deadline`; null if there is none.
/// Precondition: mutex_ is held
std::shared_ptr<GrammarCache::Job> GrammarCache::find(const std::string& key, Clock::time_point deadline) {
  const auto at = jobs_.find(key);
  if (at == jobs_.end()) return nullptr;
  std::shared_ptr<Job> job = at->second;
  if (job->is_kept && job->expires <= Clock::now()) {
    forget(job);
    return nullptr;
  }
  if (job->is_kept) kept_.splice(kept_.begin(), kept_, job->place);
  if (++n_hits_ % kTrimEvery == 0) trim();
  const std::lock_guard lock(job->mutex);
  job->deadline = std::max(job->deadline, deadline);
  return job;
}

/// Precondition: mutex_ is held
std::shared_ptr<GrammarCache::Job> GrammarCache::add(std::string key, Constraint constraint,
                                                     Clock::time_point deadline) {
  auto job = std::make_shared<Job>();
  job->key = std::move(key);
  job->constraint = std::move(constraint);
  job->deadline = deadline;
  jobs_.emplace(job->key, job);
  return job;
}

Compiled GrammarCache::compile(const Constraint& constraint) {
  std::string key = canonical_key(constraint);
  std::shared_ptr<Job> job;
  bool is_mine = false;
  {
    const std::lock_guard lock(mutex_);
    job = find(key, Clock::time_point::max());
    is_mine = job == nullptr;
    if (is_mine) job = add(std::move(key), constraint, Clock::time_point::max());
  }
  if (is_mine) run(job);
  return PendingGrammar(job, Clock::time_point::max()).wait();
}

PendingGrammar GrammarCache::compile_async(Constraint constraint, Clock::time_point deadline) {
  std::string key = canonical_key(constraint);
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<Job> job = find(key, deadline)) return {std::move(job), deadline};
  if (threads_.empty() || queue_.size() >= static_cast<size_t>(options_.n_queued_max)) {
    auto job = std::make_shared<Job>();
    job->result =
        refused("the queue of constraints to compile is full (" + std::to_string(options_.n_queued_max) + ")");
    return {std::move(job), deadline};
  }
  std::shared_ptr<Job> job = add(std::move(key), std::move(constraint), deadline);
  queue_.push_back(job);
  wake_.notify_one();
  return {std::move(job), deadline};
}

void GrammarCache::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !queue_.empty(); })) {
    if (stop.stop_requested()) return;
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run(job);
    lock.lock();
  }
}

void GrammarCache::run(const std::shared_ptr<Job>& job) {
  for (;;) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point deadline;
    {
      const std::lock_guard lock(job->mutex);
      deadline = job->deadline;
    }
    CompileLimits limits = options_.limits;
    if (deadline != Clock::time_point::max())
      limits.time = std::min(limits.time, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - begin));
    Outcome outcome;
    if (limits.time.count() <= 0) {
      outcome = {.compiled = too_late(), .is_hurried = true};
    } else {
      outcome.compiled = compile_(job->constraint, limits);
      const bool was_slow = outcome.compiled.refusal && Clock::now() - begin >= limits.time;
      outcome.is_hurried = was_slow && limits.time < options_.limits.time;
      if (was_slow) outcome.expires = Clock::now() + options_.retry_after;
    }
    if (finish(job, std::move(outcome), deadline)) return;
  }
}

/// Publishes the outcome. False: it was hurried for a deadline, and somebody with more time waits by now.
bool GrammarCache::finish(const std::shared_ptr<Job>& job, Outcome outcome, Clock::time_point deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (outcome.is_hurried) {
      const std::lock_guard job_lock(job->mutex);
      if (job->deadline > deadline) return false;
      jobs_.erase(job->key);
    } else {
      kept_.push_front(job);
      job->place = kept_.begin();
      job->is_kept = true;
      job->expires = outcome.expires;
    }
    ++n_compiled_;
  }
  {
    const std::lock_guard lock(job->mutex);
    job->result = std::move(outcome.compiled);
    job->done.notify_all();
  }
  const std::lock_guard lock(mutex_);
  trim();
  return true;
}

/// Precondition of both: mutex_ is held.
void GrammarCache::forget(const std::shared_ptr<Job>& job) {
  kept_.erase(job->place);
  job->is_kept = false;
  jobs_.erase(job->key);
}

/// The source counts four times: in job, key, map and grammar.
int64_t GrammarCache::n_bytes_of(Job& job) {
  const std::lock_guard lock(job.mutex);
  const int64_t n_bytes = kEntryBytes + 4 * static_cast<int64_t>(job.key.size());
  return n_bytes + (job.result && job.result->grammar ? job.result->grammar->n_bytes() : 0);
}

void GrammarCache::trim() {
  int64_t n_bytes = 0;
  for (auto at = kept_.begin(); at != kept_.end();) {
    const std::shared_ptr<Job> job = *at++;
    n_bytes += n_bytes_of(*job);
    if (n_bytes <= options_.n_bytes_max) continue;
    forget(job);
    ++n_dropped_;
  }
}

GrammarCache::Stats GrammarCache::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats{.n_entries = static_cast<int64_t>(kept_.size()),
              .n_bytes = 0,
              .n_hits = n_hits_,
              .n_compiled = n_compiled_,
              .n_dropped = n_dropped_};
  for (const auto& job : kept_) stats.n_bytes += n_bytes_of(*job);
  return stats;
}

}  // namespace deepinfer::grammar
