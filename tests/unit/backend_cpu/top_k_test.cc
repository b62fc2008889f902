#include "backend/cpu/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/random.h"
#include "numerics/bf16.h"

namespace deepinfer::cpu {
namespace {

std::vector<int32_t> by_sorting(const std::vector<Bf16>& score, int32_t k) {
  std::vector<int32_t> id(score.size());
  std::iota(id.begin(), id.end(), 0);
  const auto value = [&](int32_t i) { return to_float(score[static_cast<size_t>(i)]); };
  std::erase_if(id, [&](int32_t i) { return value(i) == -INFINITY; });
  std::stable_sort(id.begin(), id.end(), [&](int32_t a, int32_t b) { return value(a) > value(b); });
  if (id.size() > static_cast<size_t>(k)) id.resize(static_cast<size_t>(k));
  std::sort(id.begin(), id.end());
  return id;
}

std::vector<int32_t> selected(const std::vector<Bf16>& score, int32_t k) {
  std::vector<uint16_t> key;
  for (const Bf16 s : score) key.push_back(score_key(s.bits));
  std::vector<int32_t> id(static_cast<size_t>(k));
  id.resize(static_cast<size_t>(select_top(key.data(), static_cast<int64_t>(key.size()), k, id.data())));
  return id;
}

TEST(TopK, EqualsAStableSort) {
  bench::Random random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Bf16> score(static_cast<size_t>(random.between(0, 700)));
    const bool ties = random.one_in(2);  // few values, both zeros, both infinities
    for (Bf16& s : score) {
      constexpr float kFew[] = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, INFINITY, -INFINITY, 1e-40f};
      s = to_bf16(ties ? kFew[random.below(8)] : 100 * random.normal());
    }
    const auto k = static_cast<int32_t>(random.between(1, 600));
    ASSERT_EQ(selected(score, k), by_sorting(score, k));
  }
}

TEST(TopK, KeysAscendWithTheNumber) {
  float last = -INFINITY;
  for (uint32_t key = kKeyOfNegativeInfinity; key <= kKeyOfInfinity; ++key) {
    const auto bits = static_cast<uint16_t>(key < 0x8000u ? ~key : key & 0x7fffu);
    if (bits == 0x8000u) continue;
    EXPECT_EQ(score_key(bits), key);
    EXPECT_GE(to_float(Bf16{bits}), last);
    last = to_float(Bf16{bits});
  }
  EXPECT_EQ(score_key(0x8000), score_key(0));
  EXPECT_EQ(last, INFINITY);
}

TEST(TopK, NothingToSelect) {
  EXPECT_TRUE(selected({}, 4).empty());
  EXPECT_TRUE(selected({to_bf16(-INFINITY)}, 4).empty());
}

}  // namespace
}  // namespace deepinfer::cpu
