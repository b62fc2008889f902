#include "tests/support/model_harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "deepinfer/tokenizer.h"
#include "numerics/block_quant.h"
#include "tokenizer/token_map.h"

namespace deepinfer::testing {

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "test setup failed: %s\n", status.error().message.c_str());
  std::abort();
}

std::unique_ptr<ops::Backend> make_backend(const std::string& name, int n_threads) {
  if (name == "ref") return make_ref_backend(n_threads);
  if (name == "cpu") return make_cpu_backend({.n_threads = n_threads});
  std::fprintf(stderr, "test setup failed: no backend %s\n", name.c_str());
  std::abort();
}

std::string golden_dir() { return DI_TESTS_DIR "/golden/golden-v41"; }

ModelHarness::ModelHarness(const std::string& checkpoint_dir, const HarnessOptions& options)
    : backend_(make_backend(options.backend, options.n_threads)) {
  checkpoint_ = std::make_unique<Checkpoint>(require(Checkpoint::open(checkpoint_dir)));
  require(checkpoint_->load({Section::kText}));
  std::vector<int32_t> token_map;
  if (!checkpoint_->config().engram_layer_ids.empty()) {
    const Tokenizer tokenizer = require(Tokenizer::open(checkpoint_dir));
    token_map = require(compressed_token_map(tokenizer, checkpoint_->config().vocab_size)).class_of;
  }
  model_ = std::make_unique<Model>(require(Model::bind(*checkpoint_, std::move(token_map), *backend_)));
  const auto blocks_per_slot = static_cast<int32_t>((options.n_context + kv::kBlockTokens - 1) / kv::kBlockTokens);
  const KvSize size{options.n_slots, options.n_slots * blocks_per_slot, blocks_per_slot};
  kv_ = std::make_unique<KvMemory>(require(KvMemory::create(model_->config, size, *backend_)));
  for (int32_t slot = 0; slot < options.n_slots; ++slot) {
    // Slots interleave their blocks, so that an address computed without the table is wrong at once.
    std::vector<int32_t> blocks(static_cast<size_t>(blocks_per_slot));
    for (int32_t i = 0; i < blocks_per_slot; ++i) {
      blocks[static_cast<size_t>(i)] = (blocks_per_slot - 1 - i) * options.n_slots + slot;
    }
    require(kv_->set_blocks(slot, blocks));
  }
  pass_ = std::make_unique<ForwardPass>(
      require(ForwardPass::create(*model_, *backend_,
                                  {.limits = {options.n_rows_max, options.n_rows_max, options.n_context},
                                   .n_slots = options.n_slots,
                                   .n_tail_rows = options.n_tail_rows})));
}

std::vector<float> ModelHarness::run_chunk(int32_t slot, const std::vector<int32_t>& tokens, int64_t from, int64_t to) {
  const auto n = static_cast<int32_t>(to - from);
  const StepSequence sequence{slot, std::span(tokens).first(static_cast<size_t>(to)), n, 0};
  require(pass_->begin({&sequence, 1}));
  require(pass_->run_layers(0, config().n_layers, kv()));
  std::vector<int32_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> logits(rows.size() * static_cast<size_t>(config().vocab_size));
  require(pass_->logits(rows, logits.data()));
  return logits;
}

std::vector<float> ModelHarness::run_chunks(int32_t slot, const std::vector<int32_t>& tokens,
                                            const std::vector<int64_t>& ends) {
  std::vector<float> all;
  int64_t from = 0;
  for (const int64_t to : ends) {
    const std::vector<float> logits = run_chunk(slot, tokens, from, to);
    all.insert(all.end(), logits.begin(), logits.end());
    from = to;
  }
  return all;
}

std::vector<float> ModelHarness::run_tail_prefill(int32_t slot, const std::vector<int32_t>& tokens,
                                                  const std::vector<int64_t>& ends, int32_t keep, int32_t tail_chunk) {
  const int32_t n_early = last_kv_source_layer(config()) + 1;
  int64_t from = 0;
  for (const int64_t to : ends) {
    const StepSequence sequence{slot, std::span(tokens).first(static_cast<size_t>(to)), static_cast<int32_t>(to - from),
                                0};
    require(pass_->begin({&sequence, 1}));
    require(pass_->run_layers(0, n_early, kv()));
    require(pass_->save_tail());
    from = to;
  }
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  const int64_t start = std::max<int64_t>(0, n_tokens - keep);
  for (from = start; from < n_tokens;) {
    const int64_t to = std::min<int64_t>(from + tail_chunk, n_tokens);
    const StepSequence sequence{slot, std::span(tokens).first(static_cast<size_t>(to)), static_cast<int32_t>(to - from),
                                static_cast<int32_t>(start)};
    require(pass_->begin_tail({&sequence, 1}));
    require(pass_->run_layers(n_early, config().n_layers, kv()));
    from = to;
  }
  const int32_t last_row = pass_->n_rows() - 1;
  std::vector<float> logits(static_cast<size_t>(config().vocab_size));
  require(pass_->logits({&last_row, 1}, logits.data()));
  return logits;
}

std::vector<Bf16> ModelHarness::compressed_kv(int32_t source, int32_t slot, int32_t n_entries) const {
  const kv::GlobalView& view = kv().sources[static_cast<size_t>(source)];
  const int64_t dim = view.layout.head_dim;
  std::vector<Bf16> values(static_cast<size_t>(n_entries * dim));
  for (int32_t j = 0; j < n_entries; ++j) {
    const kv::PackedRow row = view.value(slot, j);
    dequantize_nvfp4_block16(row.values, row.scales, dim, values.data() + j * dim);
  }
  return values;
}

std::vector<Bf16> ModelHarness::index_keys(int32_t source, int32_t slot, int32_t n_entries) const {
  const kv::GlobalView& view = kv().sources[static_cast<size_t>(source)];
  const int64_t dim = view.layout.index_dim;
  std::vector<Bf16> values(static_cast<size_t>(n_entries * dim));
  for (int32_t j = 0; j < n_entries; ++j) {
    const kv::PackedRow row = view.index_key(slot, j);
    dequantize_mxfp4_block32(row.values, row.scales, dim, values.data() + j * dim);
  }
  return values;
}

}  // namespace deepinfer::testing
