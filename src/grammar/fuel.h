// A limit on work: steps and wall time. Everything that a client's text can make long spends from one of these.
#pragma once

#include <chrono>
#include <cstdint>

namespace deepinfer::grammar {

/// One thread. Once empty it stays empty, so callers may finish a piece of work and look afterwards.
class Fuel {
 public:
  using Clock = std::chrono::steady_clock;

  /// The time begins with the first look at the clock, after some steps: what is soon done never looks.
  Fuel(int64_t n_steps, Clock::duration time) : left_(n_steps), time_(time) {}

  /// False: out of steps or time; stop and report. The clock is read every 1,024 steps.
  bool spend(int64_t n_steps = 1) {
    left_ -= n_steps;
    since_look_ += n_steps;
    if (since_look_ >= 1024) {
      since_look_ = 0;
      const Clock::time_point now = Clock::now();
      if (deadline_ == Clock::time_point()) {
        deadline_ = now + time_;
      } else if (now > deadline_) {
        left_ = -1;
      }
    }
    return left_ >= 0;
  }
  [[nodiscard]] int64_t n_left() const { return left_; }
  [[nodiscard]] bool empty() const { return left_ < 0; }

 private:
  int64_t left_;
  int64_t since_look_ = 0;
  Clock::duration time_;
  Clock::time_point deadline_{};  // not set: the clock has not been read
};

}  // namespace deepinfer::grammar
