// Progress on standard error: a bar that is redrawn on a terminal, else a line every few seconds. Main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "deepinfer/engine.h"

namespace deepinfer::cli {

class ProgressBar {
 public:
  enum class Unit { kCount, kBytes };

  /// `what` stands in front ("loading"). Shows nothing when not `enabled`.
  ProgressBar(std::string what, Unit unit, bool enabled);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// total 0: unknown.
  void show(int64_t done, int64_t total);
  /// Takes the bar off the terminal; a later show() draws it again.
  void clear();

  /// Borrows this.
  [[nodiscard]] Progress callback() {
    return [this](int64_t done, int64_t total) { show(done, total); };
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string amount(int64_t n) const;

  std::string what_;
  Unit unit_;
  bool enabled_;
  bool is_terminal_;
  bool is_drawn_ = false;
  Clock::time_point next_;
};

}  // namespace deepinfer::cli
