// The promise below everything else: a row's logits depend on its token, its position and its sequence alone. Bitwise,
// on the golden checkpoint, whose small window, top-k and candidate filter are all active within 40 tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/philox.h"
#include "tests/support/model_harness.h"

namespace deepinfer {
namespace {

using testing::ModelHarness;
using testing::require;

std::vector<int32_t> random_tokens(uint64_t seed, size_t n, int32_t vocab_size) {
  std::vector<int32_t> tokens(n);
  for (size_t i = 0; i < n; ++i) {
    const auto block = Philox{seed}.block(i, RandomPurpose::kToken, 0);
    tokens[i] = static_cast<int32_t>(block[0] % static_cast<uint32_t>(vocab_size));
  }
  return tokens;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Invariance : public ::testing::TestWithParam<const char*> {
 protected:
  ModelHarness make(int n_threads = 2, int32_t n_tail_rows = 0) {
    return ModelHarness(testing::golden_dir() + "/checkpoint",
                        {.backend = GetParam(), .n_threads = n_threads, .n_tail_rows = n_tail_rows});
  }
  static std::vector<int64_t> one_by_one(size_t n) {
    std::vector<int64_t> ends(n);
    std::iota(ends.begin(), ends.end(), 1);
    return ends;
  }
};

TEST_P(Invariance, ChunkSplitAtEveryOffset) {
  ModelHarness harness = make();
  const std::vector<int32_t> tokens = random_tokens(1, 41, harness.config().vocab_size);
  const auto n = static_cast<int64_t>(tokens.size());
  const std::vector<float> whole = harness.run_chunks(0, tokens, {n});
  for (int64_t split = 1; split < n; ++split) {
    EXPECT_TRUE(same_bits(whole, harness.run_chunks(1, tokens, {split, n}))) << "split at " << split;
  }
}

TEST_P(Invariance, DecodeFromPositionZeroEqualsPrefill) {
  ModelHarness harness = make();
  const std::vector<int32_t> tokens = random_tokens(2, 64, harness.config().vocab_size);
  EXPECT_TRUE(same_bits(harness.run_chunks(0, tokens, {64}), harness.run_chunks(1, tokens, one_by_one(64))));
}

TEST_P(Invariance, RandomChunkings) {
  ModelHarness harness = make();
  const std::vector<int32_t> tokens = random_tokens(3, 600, harness.config().vocab_size);  // three KV blocks
  std::vector<float> whole;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::vector<int64_t> ends;
    for (int64_t at = 0; at < 600;) {
      at = std::min<int64_t>(600,
                             at + 1 + Philox{seed}.block(static_cast<uint64_t>(at), RandomPurpose::kToken, 1)[0] % 64);
      ends.push_back(at);
    }
    std::vector<float> logits = harness.run_chunks(0, tokens, ends);
    if (seed == 0) {
      whole = std::move(logits);
    } else {
      EXPECT_TRUE(same_bits(whole, logits)) << "chunking " << seed;
    }
  }
}

TEST_P(Invariance, ThreadCountChangesNothing) {
  ModelHarness one = make(1);
  ModelHarness three = make(3);
  const std::vector<int32_t> tokens = random_tokens(4, 50, one.config().vocab_size);
  EXPECT_TRUE(same_bits(one.run_chunks(0, tokens, {50}), three.run_chunks(0, tokens, {50})));
}

TEST_P(Invariance, NeighboursInAStepChangeNothing) {
  ModelHarness harness = make();
  const auto n_layers = harness.config().n_layers;
  const auto vocab = static_cast<size_t>(harness.config().vocab_size);
  std::vector<std::vector<int32_t>> sequences;
  std::vector<std::vector<float>> alone;
  for (int32_t s = 0; s < 3; ++s) {
    sequences.push_back(
        random_tokens(10 + static_cast<uint64_t>(s), 20 + 7 * static_cast<size_t>(s), harness.config().vocab_size));
    alone.push_back(harness.run_chunks(3, sequences.back(), {static_cast<int64_t>(sequences.back().size())}));
  }
  // All three in the same steps: an uneven prefill, then one row each, in another order of sequences.
  std::vector<int64_t> done(3, 0);
  for (int round = 0; round < 40; ++round) {
    std::vector<StepSequence> step;
    for (const int32_t s : {2, 0, 1}) {
      const auto& tokens = sequences[static_cast<size_t>(s)];
      const int64_t left = static_cast<int64_t>(tokens.size()) - done[static_cast<size_t>(s)];
      if (left == 0) continue;
      const auto n = static_cast<int32_t>(round == 0 ? std::min<int64_t>(left, 5 + 4 * s) : 1);
      done[static_cast<size_t>(s)] += n;
      step.push_back({s, std::span(tokens).first(static_cast<size_t>(done[static_cast<size_t>(s)])), n, 0});
    }
    if (step.empty()) break;
    require(harness.pass().begin(step));
    require(harness.pass().run_layers(0, n_layers, harness.kv()));
    std::vector<int32_t> rows(static_cast<size_t>(harness.pass().n_rows()));
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<float> logits(rows.size() * vocab);
    require(harness.pass().logits(rows, logits.data()));
    size_t row = 0;
    for (const StepSequence& sequence : step) {
      const size_t first = sequence.tokens.size() - static_cast<size_t>(sequence.n_rows);
      const float* expected = alone[static_cast<size_t>(sequence.slot)].data() + first * vocab;
      const size_t n_floats = static_cast<size_t>(sequence.n_rows) * vocab;
      EXPECT_EQ(std::memcmp(expected, logits.data() + row * vocab, n_floats * sizeof(float)), 0)
          << "slot " << sequence.slot << " round " << round;
      row += static_cast<size_t>(sequence.n_rows);
    }
  }
}

TEST_P(Invariance, TheHaloTailEqualsFullPrefillAndLaterDecode) {
  // m late layers need W + (m-1)(W-1) rows: 8 + 1*7 = 15 here (layers 4 and 5).
  constexpr int32_t kHalo = 15;
  ModelHarness harness = make(2, kHalo);
  const auto vocab = static_cast<size_t>(harness.config().vocab_size);
  const std::vector<int32_t> tokens = random_tokens(5, 70, harness.config().vocab_size);
  const std::vector<int32_t> prompt(tokens.begin(), tokens.begin() + 60);
  const std::vector<float> full = harness.run_chunks(0, tokens, {60, 70});
  const std::vector<float> last_row(full.begin() + 59 * static_cast<int64_t>(vocab),
                                    full.begin() + 60 * static_cast<int64_t>(vocab));
  const std::vector<std::vector<int64_t>> chunkings = {{60}, {1, 47, 60}, {59, 60}, {20, 40, 50, 60}};
  for (const std::vector<int64_t>& ends : chunkings) {
    for (const int32_t tail_chunk : {15, 4, 1}) {
      EXPECT_TRUE(same_bits(last_row, harness.run_tail_prefill(1, prompt, ends, kHalo, tail_chunk)));
      const std::vector<float> rest = harness.run_chunk(1, tokens, 60, 70);
      EXPECT_EQ(std::memcmp(rest.data(), full.data() + 60 * vocab, rest.size() * sizeof(float)), 0);
    }
  }
}

TEST_P(Invariance, TheCompactTailDoesNotDependOnChunkingAndIsExactForShortPrompts) {
  constexpr int32_t kKeep = 20;
  ModelHarness harness = make(2, kKeep);
  const auto vocab = static_cast<size_t>(harness.config().vocab_size);
  const std::vector<int32_t> tokens = random_tokens(6, 60, harness.config().vocab_size);
  const std::vector<float> once = harness.run_tail_prefill(0, tokens, {60}, kKeep, kKeep);
  EXPECT_TRUE(same_bits(once, harness.run_tail_prefill(1, tokens, {7, 31, 58, 60}, kKeep, kKeep)));
  EXPECT_TRUE(same_bits(once, harness.run_tail_prefill(1, tokens, {33, 60}, kKeep, 6)));

  const std::vector<int32_t> prompt(tokens.begin(), tokens.begin() + kKeep);
  const std::vector<float> full = harness.run_chunks(0, prompt, {kKeep});
  const std::vector<float> last_row(full.end() - static_cast<int64_t>(vocab), full.end());
  EXPECT_TRUE(same_bits(last_row, harness.run_tail_prefill(1, prompt, {kKeep}, kKeep, kKeep)));
}

INSTANTIATE_TEST_SUITE_P(Backends, Invariance, ::testing::Values("ref", "cpu"));

}  // namespace
}  // namespace deepinfer
