// The states that a sequence went through, as a list whose forks share what they have in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "grammar/machine.h"

namespace deepinfer::grammar {

/// Copying is O(1). One object belongs to one thread at a time; copies may live on different threads.
class StepList {
 public:
  StepList() = default;
  StepList(const StepList& other) : last_(other.last_) { keep(last_); }
  StepList(StepList&& other) noexcept : last_(std::exchange(other.last_, nullptr)) {}
  StepList& operator=(StepList other) noexcept {
    std::swap(last_, other.last_);
    return *this;
  }
  ~StepList() { drop(last_); }

  [[nodiscard]] int32_t size() const { return last_ == nullptr ? 0 : last_->size; }
  /// Preconditions of both: size() > 0
  [[nodiscard]] State state() const { return last_->state; }
  [[nodiscard]] bool ended() const { return last_->ended; }

  void push(State state, bool ended) {
    last_ = new Step{.before = last_, .state = state, .size = size() + 1, .ended = ended};
  }
  /// Cost     O(n). Precondition: n <= size()
  void pop(int32_t n) {
    DI_CHECK(n <= size());
    for (; n > 0; --n) {
      Step* const before = last_->before;
      keep(before);
      drop(last_);
      last_ = before;
    }
  }

 private:
  struct Step {
    std::atomic<int32_t> n_refs{1};
    Step* before;
    State state;
    int32_t size;
    bool ended;
  };

  static void keep(Step* step) {
    if (step != nullptr) step->n_refs.fetch_add(1, std::memory_order_relaxed);
  }
  /// A loop, because lists are as long as texts. The release of each reference happens before the delete by the last.
  static void drop(Step* step) {
    while (step != nullptr && step->n_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Step* const before = step->before;
      delete step;
      step = before;
    }
  }

  Step* last_ = nullptr;
};

}  // namespace deepinfer::grammar
