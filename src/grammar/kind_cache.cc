#include "grammar/kind_cache.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kEntryBytes = 192;  // the list's and the table's part of one

}  // namespace

KindCache::Any KindCache::find_any(const KindKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  ++n_hits_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->fact;
}

KindCache::Any KindCache::keep_any(const KindKey& key, Any fact, int64_t n_bytes) {
  std::list<Entry> dropped;  // goes when the lock is gone
  const std::lock_guard lock(mutex_);
  const auto [slot, is_new] = index_.try_emplace(key);
  if (!is_new) return slot->second->fact;
  entries_.push_front({key, fact, n_bytes + kEntryBytes});
  slot->second = entries_.begin();
  n_bytes_ += entries_.front().n_bytes;
  ++n_kept_;
  while (n_bytes_ > n_bytes_max_) {
    const auto last = std::prev(entries_.end());
    n_bytes_ -= last->n_bytes;
    ++n_dropped_;
    index_.erase(last->key);
    dropped.splice(dropped.begin(), entries_, last);
  }
  return fact;
}

KindCache::Stats KindCache::stats() const {
  const std::lock_guard lock(mutex_);
  return {static_cast<int64_t>(entries_.size()), n_bytes_, n_hits_, n_kept_, n_dropped_};
}

}  // namespace deepinfer::grammar
