#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "kv/block_pool.h"
#include "kv/layout.h"
#include "kv/sequence_kv.h"

namespace deepinfer::kv {
namespace {

TEST(Layout, ReleasedSizesAreThoseOfTheSpec) {
  EXPECT_EQ(window_row_bytes(512), 528);
  EXPECT_EQ(compressed_entry_bytes(512), 288);
  EXPECT_EQ(index_entry_bytes(128), 68);
  const BlockLayout layout = make_block_layout({2, 2, 2, 1}, 512, 128);
  EXPECT_EQ(layout.block_bytes, 890 * kBlockTokens);  // 890 bytes a token, no padding at these sizes
}

TEST(Layout, NoTwoBytesOfABlockAreShared) {
  const BlockLayout layout = make_block_layout({2, 1}, 96, 32);
  std::vector<uint8_t> pool(static_cast<size_t>(layout.block_bytes * 3), 0);
  const std::vector<int32_t> table = {2, 0, 1, 1};  // two slots of two blocks; block 1 is shared on purpose below
  std::multiset<const uint8_t*> seen;
  for (const SourceLayout& source : layout.sources) {
    const GlobalView view{pool.data(), layout.block_bytes, table.data(), 2, source};
    for (int32_t j = 0; j < 2 * source.entries_per_block; ++j) {
      const PackedRow value = view.value(0, j);
      const PackedRow key = view.index_key(0, j);
      for (int i = 0; i < source.head_dim / 2; ++i) seen.insert(value.values + i);
      for (int i = 0; i < source.head_dim / 16; ++i) seen.insert(value.scales + i);
      for (int i = 0; i < source.index_dim / 2; ++i) seen.insert(key.values + i);
      for (int i = 0; i < source.index_dim / 32; ++i) seen.insert(key.scales + i);
    }
  }
  EXPECT_EQ(std::set<const uint8_t*>(seen.begin(), seen.end()).size(), seen.size());
  for (const uint8_t* byte : seen) {
    const auto block = (byte - pool.data()) / layout.block_bytes;
    EXPECT_TRUE(block == 2 || block == 0);  // slot 0's blocks only
  }
}

TEST(Layout, RingWrapsByPosition) {
  std::vector<uint8_t> memory(static_cast<size_t>(2 * 8 * window_row_bytes(64)));
  const RingView ring{memory.data(), 8, 64};
  EXPECT_EQ(ring.row(0, 3).values, ring.row(0, 11).values);
  EXPECT_NE(ring.row(0, 3).values, ring.row(1, 3).values);
  EXPECT_EQ(ring.row(0, 1).values - ring.row(0, 0).values, window_row_bytes(64));
  EXPECT_EQ(ring.row(0, 5).scales - ring.row(0, 5).values, 64);
}

TEST(IdPool, LowestFreeIdFirstAndLeasesComeBack) {
  IdPool pool("things", 3);
  Result<Lease> a = pool.take();
  Result<Lease> b = pool.take();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->id(), 0);
  EXPECT_EQ(b->id(), 1);
  { Lease dies = *std::move(a); }
  EXPECT_EQ(pool.n_free(), 2);
  Result<Lease> c = pool.take();
  EXPECT_EQ(c->id(), 0);
  EXPECT_EQ(pool.n_free() + pool.n_leased(), pool.n_total());
}

TEST(IdPool, ExhaustionIsAnErrorThatNamesTheThing) {
  IdPool pool("widgets", 1);
  const Result<Lease> a = pool.take();
  const Result<Lease> b = pool.take();
  ASSERT_FALSE(b.ok());
  EXPECT_EQ(b.error().code, Code::kOutOfCapacity);
  EXPECT_NE(b.error().message.find("widgets"), std::string::npos);
}

TEST(Allocator, GrowsByBlocksAllOrNothing) {
  Allocator allocator(2, 3);
  {
    Result<SequenceKv> a = allocator.open();
    ASSERT_TRUE(a.ok());
    ASSERT_TRUE(allocator.grow(*a, 1).ok());
    EXPECT_EQ(a->blocks().size(), 1U);
    ASSERT_TRUE(allocator.grow(*a, kBlockTokens).ok());
    EXPECT_EQ(a->blocks().size(), 1U);
    ASSERT_TRUE(allocator.grow(*a, kBlockTokens + 1).ok());
    EXPECT_EQ(a->blocks().size(), 2U);
    const Status status = allocator.grow(*a, 4 * kBlockTokens);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kOutOfCapacity);
    EXPECT_EQ(a->blocks().size(), 2U);
    EXPECT_EQ(allocator.blocks().n_free(), 1);
    SequenceKv moved = *std::move(a);
    EXPECT_EQ(moved.blocks().size(), 2U);
  }
  EXPECT_EQ(allocator.blocks().n_free(), 3);
  EXPECT_EQ(allocator.slots().n_free(), 2);
}

}  // namespace
}  // namespace deepinfer::kv
