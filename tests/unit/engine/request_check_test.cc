#include "engine/request_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "engine/memory_plan.h"
#include "engine/sequence_runner.h"

namespace deepinfer {
namespace {

struct BadRequest {
  const char* fragment;
  std::function<void(Request&)> spoil;
};

TEST(RequestCheck, EveryFieldOutOfRangeIsNamedWithItsValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const BadRequest cases[] = {
      {"empty", [](Request& r) { r.prompt.clear(); }},
      {"-1",
       [](Request& r) {
         r.prompt = {5, -1};
       }},
      {"1000000000", [](Request& r) { r.prompt = {1000000000}; }},
      {"101 tokens", [](Request& r) { r.prompt.assign(101, 3); }},
      {"max_tokens is -1", [](Request& r) { r.max_tokens = -1; }},
      {"n is 0", [](Request& r) { r.n_sequences = 0; }},
      {"n is 1000", [](Request& r) { r.n_sequences = 1000; }},
      {"logprobs is -1", [](Request& r) { r.n_logprobs = -1; }},
      {"stop id is 151645", [](Request& r) { r.stop_ids = {151645}; }},
      {"stop string is 0", [](Request& r) { r.stop_strings = {""}; }},
      {"temperature", [nan](Request& r) { r.sampling.temperature = nan; }},
      {"temperature", [](Request& r) { r.sampling.temperature = -1; }},
      {"top_p", [](Request& r) { r.sampling.top_p = 1.5F; }},
      {"top_p", [nan](Request& r) { r.sampling.top_p = nan; }},
      {"min_p", [](Request& r) { r.sampling.min_p = -0.1F; }},
      {"top_k", [](Request& r) { r.sampling.top_k = -2; }},
  };
  for (const BadRequest& bad : cases) {
    Request request;
    request.prompt = {1, 2, 3};
    ASSERT_TRUE(check_request(request, 512, 100).ok());
    bad.spoil(request);
    const Status status = check_request(request, 512, 100);
    ASSERT_FALSE(status.ok()) << bad.fragment;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(bad.fragment), std::string::npos) << status.error().message;
  }
}

TEST(MemoryPlan, TheKvPoolBoundsTheContext) {
  ModelConfig config;
  config.n_layers = 2;
  config.compress_ratios = {1, 1};
  config.kv_source_layer_ids = {0};
  config.head_dim = 64;
  config.index_head_dim = 32;
  config.sliding_window = 8;
  config.max_position_embeddings = 100000;
  const int64_t block = kv_bytes(config, {1, 1, 1}).blocks;
  const Result<MemoryPlan> all = plan_memory(config, {});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->n_context, 100000);
  const Result<MemoryPlan> some = plan_memory(config, {.kv_bytes = 3 * block + 1});
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->kv_size.n_blocks, 3);
  EXPECT_EQ(some->n_context, 3 * kv::kBlockTokens);
  const Result<MemoryPlan> none = plan_memory(config, {.kv_bytes = block - 1});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kOutOfCapacity);
  EXPECT_FALSE(plan_memory(config, {.n_context = 100001}).ok());
  EXPECT_FALSE(check_options({.n_batch_tokens = 0}).ok());
  EXPECT_FALSE(check_options({.n_threads = -1}).ok());
}

TEST(TailRows, AreThoseOfTheSpecForTheReleasedModel) {
  ModelConfig config;
  config.n_layers = 40;
  config.kv_source_layer_ids = {2, 8, 14, 20};
  config.sliding_window = 128;
  config.dspark_block_size = 5;
  EXPECT_EQ(tail_rows(config, {.prefill_tail = PrefillTail::kFull}), 0);
  EXPECT_EQ(tail_rows(config, {.prefill_tail = PrefillTail::kCompact}), 140);
  EXPECT_EQ(tail_rows(config, {.prefill_tail = PrefillTail::kCompact, .n_compact_rows = 133}), 133);
  EXPECT_EQ(tail_rows(config, {.prefill_tail = PrefillTail::kExact}), 2414);
}

}  // namespace
}  // namespace deepinfer
