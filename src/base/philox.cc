#include "base/philox.h"

namespace deepinfer {

uint64_t derive_seed(uint64_t seed, uint64_t sequence_idx) {
  if (sequence_idx == 0) return seed;
  const std::array<uint32_t, 4> words = Philox{seed}.block(sequence_idx, RandomPurpose::kSequenceSeed, 0);
  return (static_cast<uint64_t>(words[1]) << 32) | words[0];
}

}  // namespace deepinfer
