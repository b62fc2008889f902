#include "engine/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {

const std::string* StopStrings::completed() const {
  const std::string* longest = nullptr;
  for (const std::string& stop : strings_) {
    if (pending_.ends_with(stop) && (longest == nullptr || stop.size() > longest->size())) longest = &stop;
  }
  return longest;
}

size_t StopStrings::held_bytes() const {
  size_t held = 0;
  for (const std::string& stop : strings_) {
    for (size_t n = std::min(stop.size() - 1, pending_.size()); n > held; --n) {
      if (pending_.compare(pending_.size() - n, n, stop, 0, n) == 0) held = n;
    }
  }
  return held;
}

std::string StopStrings::push(std::string_view text) {
  DI_CHECK(!matched());
  std::string released;
  for (const char byte : text) {
    pending_ += byte;
    match_ = completed();
    if (matched()) {
      released += pending_.substr(0, pending_.size() - match_->size());
      pending_.clear();
      return released;
    }
    const size_t n_certain = pending_.size() - held_bytes();
    released.append(pending_, 0, n_certain);
    pending_.erase(0, n_certain);
  }
  return released;
}

std::string StopStrings::finish() { return std::exchange(pending_, {}); }

}  // namespace deepinfer
