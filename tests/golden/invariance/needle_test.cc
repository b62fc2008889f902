// Retrieval beyond the window: the selection is the true top-k over the whole history, across chunks and KV blocks, and
// a key planted far back is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/philox.h"
#include "numerics/block_quant.h"
#include "tests/support/model_harness.h"

namespace deepinfer {
namespace {

using testing::ModelHarness;
using testing::require;

constexpr int64_t kChunk = 48;
constexpr float kNegInf = -std::numeric_limits<float>::infinity();

std::vector<int32_t> random_tokens(size_t n, int32_t vocab_size) {
  std::vector<int32_t> tokens(n);
  for (size_t i = 0; i < n; ++i) {
    tokens[i] =
        static_cast<int32_t>(Philox{77}.block(i, RandomPurpose::kToken, 0)[0] % static_cast<uint32_t>(vocab_size));
  }
  return tokens;
}

/// Keeps the last step's indexer values by layer.
class IndexRecorder : public ForwardObserver {
 public:
  struct Seen {
    std::vector<float> scores;  // [rows, stride]
    int64_t stride = 0;
    std::vector<int32_t> selected;    // [rows, topk]
    std::vector<int32_t> candidates;  // [rows, blocks]
    std::vector<Bf16> query;          // [rows, Hi, Di]
  };

  void on_tensor(int32_t layer, std::string_view name, const TensorView& value) override {
    Seen& seen = by_layer[layer];
    if (name == "index_scores") {
      seen.scores = copy<float>(value);
      seen.stride = value.shape[1];
    }
    if (name == "topk") seen.selected = copy<int32_t>(value);
    if (name == "candidates") seen.candidates = copy<int32_t>(value);
    if (name == "index_q") seen.query = copy<Bf16>(value);
  }

  std::map<int32_t, Seen> by_layer;

 private:
  template <typename T>
  static std::vector<T> copy(const TensorView& value) {
    const auto* data = reinterpret_cast<const T*>(value.data);
    return {data, data + value.shape.n_elements()};
  }
};

/// The specification of the selection, written once more and differently: sort everything.
std::vector<int32_t> top_k(const std::vector<float>& scores, int32_t k) {
  std::vector<int32_t> ids;
  for (size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] != kNegInf) ids.push_back(static_cast<int32_t>(j));
  }
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    const float x = scores[static_cast<size_t>(a)];
    const float y = scores[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(k)));
  std::sort(ids.begin(), ids.end());
  ids.resize(static_cast<size_t>(k), -1);
  return ids;
}

class Needle : public ::testing::TestWithParam<const char*> {
 protected:
  ModelHarness harness_{testing::golden_dir() + "/checkpoint", {.backend = GetParam()}};
  IndexRecorder recorder_;

  void run_step(const std::vector<int32_t>& tokens, int64_t from, int64_t to) {
    const StepSequence sequence{0, std::span(tokens).first(static_cast<size_t>(to)), static_cast<int32_t>(to - from),
                                0};
    recorder_.by_layer.clear();
    harness_.pass().set_observer(&recorder_);
    require(harness_.pass().begin({&sequence, 1}));
    require(harness_.pass().run_layers(0, harness_.config().n_layers, harness_.kv()));
    harness_.pass().set_observer(nullptr);
  }

  [[nodiscard]] std::vector<int32_t> selected(int32_t layer, int64_t row) const {
    const auto& all = recorder_.by_layer.at(layer).selected;
    const auto k = static_cast<int64_t>(harness_.config().index_topk);
    return {all.begin() + row * k, all.begin() + (row + 1) * k};
  }
};

TEST_P(Needle, TheSelectionIsTheTopOfTheWholeHistoryInEveryChunk) {
  const ModelConfig& config = harness_.config();
  const std::vector<int32_t> tokens = random_tokens(600, config.vocab_size);
  int64_t n_far = 0;  // selected entries older than the window and the chunk
  for (int64_t from = 0; from < 600; from += kChunk) {
    const int64_t to = std::min<int64_t>(from + kChunk, 600);
    run_step(tokens, from, to);
    for (const auto& [layer, seen] : recorder_.by_layer) {
      if (seen.selected.empty()) continue;
      const LayerPlan& plan = harness_.model().plan[static_cast<size_t>(layer)];
      for (int64_t row = 0; row < to - from; ++row) {
        std::vector<float> scores(seen.scores.begin() + row * seen.stride,
                                  seen.scores.begin() + (row + 1) * seen.stride);
        for (size_t j = 0; j < scores.size(); ++j) {
          const bool visible = static_cast<int64_t>(j) < (from + row + 1) / plan.ratio;
          ASSERT_EQ(scores[j] != kNegInf, visible) << "layer " << layer << " row " << row << " entry " << j;
        }
        if (plan.uses_candidates) {
          const auto& blocks = recorder_.by_layer.at(config.candidate_source_layer_id).candidates;
          std::vector<bool> in(scores.size(), false);
          for (int32_t b = 0; b < config.candidate_topk_blocks; ++b) {
            const int32_t block = blocks[static_cast<size_t>(row * config.candidate_topk_blocks + b)];
            for (int32_t i = 0; block >= 0 && i < config.candidate_block_size; ++i) {
              const auto j = static_cast<size_t>(block * config.candidate_block_size + i);
              if (j < in.size()) in[j] = true;
            }
          }
          for (size_t j = 0; j < scores.size(); ++j) scores[j] = in[j] ? scores[j] : kNegInf;
        }
        const std::vector<int32_t> got = selected(layer, row);
        ASSERT_EQ(got, top_k(scores, config.index_topk)) << "layer " << layer << " position " << from + row;
        n_far += std::count_if(got.begin(), got.end(), [&](int32_t j) {
          return j >= 0 && int64_t{j} * plan.ratio < from - config.sliding_window;
        });
      }
    }
  }
  EXPECT_GT(n_far, 1000);
}

TEST_P(Needle, AKeyPlantedFarBackIsSelected) {
  const ModelConfig& config = harness_.config();
  const std::vector<int32_t> tokens = random_tokens(600, config.vocab_size);
  for (int64_t from = 0; from < 599; from += kChunk) run_step(tokens, from, std::min<int64_t>(from + kChunk, 599));
  run_step(tokens, 599, 600);
  const auto plain = recorder_.by_layer;

  for (size_t source = 0; source < config.kv_source_layer_ids.size(); ++source) {
    const int32_t layer = config.kv_source_layer_ids[source];
    const std::vector<int32_t> before = selected(layer, 0);
    const std::vector<Bf16>& query = plain.at(layer).query;
    const int64_t dim = config.index_head_dim;
    for (const int32_t entry : {0, 1, 127, 128, 200, 255}) {  // both sides of a block's edge at either ratio
      if (std::find(before.begin(), before.end(), entry) != before.end()) continue;  // no needle: it was there already
      const kv::PackedRow key = harness_.kv().sources[source].index_key(0, entry);
      const std::vector<uint8_t> values(key.values, key.values + dim / 2);
      const std::vector<uint8_t> scales(key.scales, key.scales + dim / 32);
      bool found = false;
      // The head weight's sign is not known here: a key like some head's query scores high where that weight is
      // positive.
      for (int64_t head = 0; head < config.index_n_heads && !found; ++head) {
        quantize_mxfp4_block32(query.data() + head * dim, dim, key.values, key.scales);
        for (int64_t i = 0; i < dim / 32; ++i) key.scales[i] = static_cast<uint8_t>(key.scales[i] + 6);  // 64 times it
        run_step(tokens, 599, 600);
        const std::vector<int32_t> after = selected(layer, 0);
        found = std::find(after.begin(), after.end(), entry) != after.end();
      }
      EXPECT_TRUE(found) << "layer " << layer << " entry " << entry;
      std::copy(values.begin(), values.end(), key.values);
      std::copy(scales.begin(), scales.end(), key.scales);
      run_step(tokens, 599, 600);
      EXPECT_EQ(selected(layer, 0), before);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Needle, ::testing::Values("ref", "cpu"));

}  // namespace
}  // namespace deepinfer
