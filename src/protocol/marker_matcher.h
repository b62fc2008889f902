// Finds one fixed marker in a stream of symbols, one symbol at a time (Knuth, Morris, Pratt). Internal to the output
// parser; one sequence's state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::protocol {

/// Symbols are bytes of text, and two bytes that no UTF-8 has for the special tokens that are markers.
inline constexpr unsigned char kThinkCloseSymbol = 0xFE;
inline constexpr unsigned char kDsmlSymbol = 0xFF;

/// Which bytes concern matchers that are idle. All others leave them idle.
struct WakeBytes {
  std::array<bool, 256> first{};   // get one going
  std::array<bool, 256> second{};  // may keep it going, when they come right after such a byte
  bool is_one_enough = false;      // some marker is a single byte
};

class MarkerMatcher {
 public:
  /// Precondition: `symbols` is not empty. `with_newlines`: a run of newlines directly before the marker belongs to it.
  MarkerMatcher(std::string symbols, bool with_newlines);

  /// True when `symbol` completes the marker. Then n_bytes() is the length of the match and only reset() may follow.
  bool step(unsigned char symbol) {
    if (symbol == '\n' && n_matched_ == 0 && with_newlines_) {
      ++n_newlines_;
      return false;
    }
    if (symbol == static_cast<unsigned char>(symbols_[n_matched_])) return ++n_matched_ == symbols_.size();
    if (n_matched_ > 0) fall_back(symbol);
    n_newlines_ = 0;  // also where a newline breaks a partial match: that one does not begin a run
    return false;
  }

  /// Goes on along the marker, without completing it and past no byte of `wakes`. Gives how many bytes of `text` it ate.
  size_t run(std::string_view text, const std::array<bool, 256>& wakes) {
    size_t n = 0;
    while (n < text.size() && text[n] == symbols_[n_matched_] && n_matched_ + 1 < symbols_.size() &&
           !wakes[static_cast<unsigned char>(text[n])]) {
      ++n;
      ++n_matched_;
    }
    return n;
  }

  void reset() { n_matched_ = n_newlines_ = 0; }

  /// Bytes of text that may turn out to be the marker's beginning, newlines included.
  [[nodiscard]] size_t n_bytes() const { return n_newlines_ + prefix_bytes_[n_matched_]; }
  [[nodiscard]] bool is_idle() const { return (n_matched_ | n_newlines_) == 0; }
  /// Adds what it takes to tell from two symbols that an idle matcher has nothing to do with them.
  void add_to(WakeBytes& bytes) const;

 private:
  void fall_back(unsigned char symbol);

  std::string symbols_;
  std::vector<uint32_t> prefix_bytes_;  // [n]: bytes of text that the first n symbols stand for
  std::vector<uint32_t> borders_;       // [n]: longest proper prefix of the first n + 1 symbols that also ends them
  size_t n_matched_ = 0;                // symbols
  size_t n_newlines_ = 0;               // directly before them
  bool with_newlines_;
};

}  // namespace deepinfer::protocol
