// Finds stop strings in a stream of text and holds back what could still become one. Bytes only; one sequence's state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deepinfer {

class StopStrings {
 public:
  /// `strings` are non-empty.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {}

  /// Appends text; returns what is now certain to be outside of every stop string. The match that completes first
  /// wins, of those that complete together the longest; what comes after it is dropped. Precondition: !matched().
  std::string push(std::string_view text);

  /// The stream is over: what was held back is text after all (nothing after a match).
  std::string finish();

  [[nodiscard]] bool matched() const { return match_ != nullptr; }
  /// Precondition: matched().
  [[nodiscard]] const std::string& match() const { return *match_; }

 private:
  [[nodiscard]] const std::string* completed() const;
  [[nodiscard]] size_t held_bytes() const;

  std::vector<std::string> strings_;
  std::string pending_;  // not yet released; shorter than the longest stop string between calls
  const std::string* match_ = nullptr;
};

}  // namespace deepinfer
