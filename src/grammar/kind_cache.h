// What has been found out about kinds of JSON strings, for all grammars of a vocabulary: each fact is found once, by whoever
// asks first, and is the same whoever finds it. Any thread; one lock, held for a look-up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "grammar/fingerprint.h"

namespace deepinfer::grammar {

/// All that a fact hangs on: which strings, and what is asked of them.
struct KindKey {
  Fingerprint kind;
  uint32_t machine = 0;   // what the machine adds to the kind: Machine::KindName
  uint32_t question = 0;  // of whom the cache is; it tells the type of the fact, too
  int32_t n_chars = 0;    // what the question says of characters
  auto operator<=>(const KindKey&) const = default;
};

class KindCache {
 public:
  static constexpr int64_t kBytesMax = int64_t{64} << 20;

  /// Beyond n_bytes_max the facts go that were not asked for longest. Those that are in use live on.
  explicit KindCache(int64_t n_bytes_max = kBytesMax) : n_bytes_max_(n_bytes_max) {}

  /// nullptr: not there.
  /// Cost     0.1 us
  template <class Fact>
  std::shared_ptr<const Fact> find(const KindKey& key) {
    return std::static_pointer_cast<const Fact>(find_any(key));
  }
  /// The fact of that key from now on: another one if somebody was faster. n_bytes: memory of `fact`.
  template <class Fact>
  std::shared_ptr<const Fact> keep(const KindKey& key, std::shared_ptr<const Fact> fact, int64_t n_bytes) {
    return std::static_pointer_cast<const Fact>(keep_any(key, std::move(fact), n_bytes));
  }

  struct Stats {
    int64_t n_facts, n_bytes, n_hits, n_kept, n_dropped;
  };
  [[nodiscard]] Stats stats() const;

 private:
  using Any = std::shared_ptr<const void>;
  struct Entry {
    KindKey key;
    Any fact;
    int64_t n_bytes;
  };
  struct Hash {
    size_t operator()(const KindKey& key) const {
      return std::hash<Fingerprint>()(key.kind) + 31 * size_t{key.machine} + 7 * size_t{key.question} +
             static_cast<size_t>(key.n_chars);
    }
  };
  Any find_any(const KindKey& key);
  Any keep_any(const KindKey& key, Any fact, int64_t n_bytes);

  const int64_t n_bytes_max_;
  mutable std::mutex mutex_;  // guards all below
  std::list<Entry> entries_;  // the last one asked for is in front
  std::unordered_map<KindKey, std::list<Entry>::iterator, Hash> index_;
  int64_t n_bytes_ = 0, n_hits_ = 0, n_kept_ = 0, n_dropped_ = 0;
};

}  // namespace deepinfer::grammar
