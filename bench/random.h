// The benches' and contract tests' own source of numbers: the same bits on every machine and standard library, fast
// enough to fill a gigabyte of weights. One thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace deepinfer::bench {

/// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// [0, n), n > 0. The bias of the modulus does not matter here.
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  /// [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  /// [0, 1).
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  /// Mean 0, variance 1, within +-6: a sum of twelve uniforms, which needs no libm.
  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  float sign() { return (next() & 1u) != 0 ? -1.0f : 1.0f; }
  /// 2^k, k uniform in [low, high].
  float power_of_two(int low, int high) { return std::ldexp(1.0f, static_cast<int>(between(low, high))); }

 private:
  uint64_t state_;
};

}  // namespace deepinfer::bench
