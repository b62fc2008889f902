// Names for things that must be told apart by what they are, whoever made them: a keyed hash of 128 bits. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace deepinfer::grammar {

/// Equal things have equal fingerprints, in one process: the hash is keyed with a secret that is drawn anew in each, so
/// that nobody can look for texts that collide. Others have equal ones by chance only: of 2^40 things two with 2^-49.
struct Fingerprint {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Fingerprint&) const = default;
};

/// SipHash-2-4 with 128 bits of result (Aumasson and Bernstein, 2012), over words.
/// Cost     3 ns a word and 20 ns
class Fingerprinter {
 public:
  Fingerprinter();
  void add(uint64_t word);
  void add(std::string_view bytes);  // and how many
  void add(const Fingerprint& print) {
    add(print.low);
    add(print.high);
  }
  /// Of all that was added; nothing may follow.
  Fingerprint finish();

 private:
  void round();
  uint64_t v0_, v1_, v2_, v3_;
  uint64_t n_words_ = 0;
};

}  // namespace deepinfer::grammar

template <>
struct std::hash<deepinfer::grammar::Fingerprint> {
  size_t operator()(const deepinfer::grammar::Fingerprint& print) const { return static_cast<size_t>(print.low); }
};
