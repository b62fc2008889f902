#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace deepinfer::cli {

namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(5);
constexpr int64_t kBarColumns = 30;

}  // namespace

ProgressBar::ProgressBar(std::string what, Unit unit, bool enabled)
    : what_(std::move(what)), unit_(unit), enabled_(enabled), is_terminal_(isatty(2) == 1) {
  next_ = Clock::now() + (is_terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kLineInterval));
}

std::string ProgressBar::amount(int64_t n) const {
  if (unit_ == Unit::kCount) return std::to_string(n);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB", static_cast<double>(n) * 1e-9);
  return text;
}

void ProgressBar::show(int64_t done, int64_t total) {
  if (!enabled_ || Clock::now() < next_) return;
  next_ = Clock::now() + (is_terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kLineInterval));
  std::string line = what_ + " ";
  if (total > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
    if (is_terminal_) {
      const auto n_full = static_cast<size_t>(share * static_cast<double>(kBarColumns));
      line += "[" + std::string(n_full, '#') + std::string(static_cast<size_t>(kBarColumns) - n_full, ' ') + "] ";
    }
    line += std::to_string(static_cast<int>(share * 100)) + "%  " + amount(done) + " of " + amount(total);
  } else {
    line += amount(done);
  }
  std::fprintf(stderr, is_terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void ProgressBar::clear() {
  if (!is_drawn_ || !is_terminal_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

}  // namespace deepinfer::cli
