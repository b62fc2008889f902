#include "base/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace deepinfer {
namespace {

using Words4 = std::array<uint32_t, 4>;

TEST(Philox, KnownAnswersOfTheRandom123Distribution) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryPartOfTheKeyMatters) {
  std::set<Words4> seen;
  for (const uint64_t seed : {uint64_t{1}, uint64_t{1} << 40}) {
    for (const uint64_t position : {uint64_t{1}, uint64_t{1} << 40}) {
      for (const RandomPurpose purpose : {RandomPurpose::kToken, RandomPurpose::kAccept}) {
        for (const uint32_t index : {0u, 1u}) seen.insert(Philox{seed}.block(position, purpose, index));
      }
    }
  }
  EXPECT_EQ(seen.size(), 16u);
}

TEST(Philox, UniformIsOpenAndExactAtItsEnds) {
  EXPECT_EQ(uniform_open(0, 0), 0x1p-53);
  EXPECT_EQ(uniform_open(~0u, ~0u), 1 - 0x1p-53);
  EXPECT_LT(uniform_open(~0u, ~0u), 1.0);
  EXPECT_EQ(uniform_open(0x80000000u, 0), 0.5 + 0x1p-53);
}

TEST(DeriveSeed, FirstSequenceKeepsTheSeedOthersDiffer) {
  EXPECT_EQ(derive_seed(7, 0), 7u);
  std::set<uint64_t> seeds;
  for (uint64_t j = 0; j < 1000; ++j) seeds.insert(derive_seed(7, j));
  for (uint64_t j = 1; j < 1000; ++j) seeds.insert(derive_seed(8, j));
  EXPECT_EQ(seeds.size(), 1999u);
  EXPECT_EQ(derive_seed(7, 3), derive_seed(7, 3));
}

}  // namespace
}  // namespace deepinfer
