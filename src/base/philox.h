// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC11). A number is a pure function of (seed, position, purpose, index), so a draw does not depend on what
// else was drawn, by whom or in what order. No state, any thread.
#pragma once

#include <array>
#include <cstdint>

namespace deepinfer {

/// The bijection itself: ten rounds.
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// What a random number is for. Different purposes at one position are independent. Values are part of the promise
/// that a seed reproduces a text: append, never renumber.
enum class RandomPurpose : uint32_t {
  kToken = 0,         // Gumbel noise of a token id, shared by target and drafter
  kAccept = 1,        // acceptance test of a drafted token
  kResidual = 2,      // draw from the residual after a rejection
  kSequenceSeed = 3,  // seed of sequence j of a request
};

/// The stream of one seed.
struct Philox {
  uint64_t seed;

  [[nodiscard]] std::array<uint32_t, 4> block(uint64_t position, RandomPurpose purpose, uint32_t index) const {
    return philox4x32(
        {index, static_cast<uint32_t>(purpose), static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32)},
        {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
};

/// (k + 1/2) / 2^52 with the upper 52 bits of hi:lo as k: exact, never 0 or 1, symmetric about 1/2.
inline double uniform_open(uint32_t hi, uint32_t lo) {
  const uint64_t k = ((static_cast<uint64_t>(hi) << 32) | lo) >> 12;
  return (static_cast<double>(k) + 0.5) * 0x1p-52;
}

/// Seed of sequence j of a request: j = 0 keeps the request's seed, others are unrelated to it and to each other.
uint64_t derive_seed(uint64_t seed, uint64_t sequence_idx);

}  // namespace deepinfer
