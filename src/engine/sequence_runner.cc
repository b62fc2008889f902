#include "engine/sequence_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace deepinfer {

int32_t tail_rows(const ModelConfig& config, const EngineOptions& options) {
  const int32_t n_late = config.n_layers - 1 - last_kv_source_layer(config);
  if (options.prefill_tail == PrefillTail::kFull || n_late == 0) return 0;
  if (options.prefill_tail == PrefillTail::kCompact) {
    if (options.n_compact_rows > 0) return options.n_compact_rows;
    return config.sliding_window + 2 * (config.dspark_block_size + 1);
  }
  // The last window of every late layer must be exact, and each of them reaches back W-1 rows of the one before.
  return config.sliding_window + (n_late - 1) * (config.sliding_window - 1);
}

Result<SequenceRunner> SequenceRunner::create(const RunnerContext& context) {
  DI_ASSIGN_OR_RETURN(kv::SequenceKv kv, context.allocator->open());
  return SequenceRunner(context, std::move(kv));
}

Status SequenceRunner::make_room(int64_t n_tokens) {
  const size_t n_blocks = kv_.blocks().size();
  DI_RETURN_IF_ERROR(context_.allocator->grow(kv_, n_tokens));
  if (kv_.blocks().size() == n_blocks) return {};
  return context_.kv_memory->set_blocks(kv_.slot(), kv_.blocks());
}

StepSequence SequenceRunner::step(int64_t end, int64_t n_rows) const {
  return {.slot = kv_.slot(),
          .tokens = std::span(tokens_).first(static_cast<size_t>(end)),
          .n_rows = static_cast<int32_t>(n_rows),
          .late_window_floor = late_window_floor_};
}

Status SequenceRunner::run_full_chunk(int64_t begin, int64_t end) {
  const StepSequence sequence = step(end, end - begin);
  DI_RETURN_IF_ERROR(context_.pass->begin({&sequence, 1}));
  return context_.pass->run_layers(0, context_.model->config.n_layers, context_.kv_memory->views());
}

Status SequenceRunner::prefill(std::span<const int32_t> prompt, std::span<float> logits, const Progress& progress) {
  DI_CHECK(tokens_.empty() && !prompt.empty());
  tokens_.assign(prompt.begin(), prompt.end());
  const auto n_tokens = static_cast<int64_t>(tokens_.size());
  DI_RETURN_IF_ERROR(make_room(n_tokens));
  if (context_.n_tail_rows > 0) {
    DI_RETURN_IF_ERROR(prefill_tail(progress));
  } else {
    for (int64_t begin = 0; begin < n_tokens; begin += context_.n_batch_tokens) {
      const int64_t end = std::min<int64_t>(begin + context_.n_batch_tokens, n_tokens);
      DI_RETURN_IF_ERROR(run_full_chunk(begin, end));
      if (progress) progress(end, n_tokens);
    }
  }
  const int32_t last_row = context_.pass->n_rows() - 1;
  return context_.pass->logits({&last_row, 1}, logits.data());
}

Status SequenceRunner::prefill_tail(const Progress& progress) {
  const auto n_tokens = static_cast<int64_t>(tokens_.size());
  const int32_t n_layers = context_.model->config.n_layers;
  const int32_t n_early = last_kv_source_layer(context_.model->config) + 1;
  ForwardPass& pass = *context_.pass;
  for (int64_t begin = 0; begin < n_tokens; begin += context_.n_batch_tokens) {
    const int64_t end = std::min<int64_t>(begin + context_.n_batch_tokens, n_tokens);
    const StepSequence sequence = step(end, end - begin);
    DI_RETURN_IF_ERROR(pass.begin({&sequence, 1}));
    DI_RETURN_IF_ERROR(pass.run_layers(0, n_early, context_.kv_memory->views()));
    DI_RETURN_IF_ERROR(pass.save_tail());
    if (progress) progress(end, n_tokens);
  }
  const int64_t start = std::max<int64_t>(0, n_tokens - context_.n_tail_rows);
  late_window_floor_ = static_cast<int32_t>(start);
  for (int64_t begin = start; begin < n_tokens; begin += context_.n_batch_tokens) {
    const int64_t end = std::min<int64_t>(begin + context_.n_batch_tokens, n_tokens);
    const StepSequence sequence = step(end, end - begin);
    DI_RETURN_IF_ERROR(pass.begin_tail({&sequence, 1}));
    DI_RETURN_IF_ERROR(pass.run_layers(n_early, n_layers, context_.kv_memory->views()));
  }
  return {};
}

Status SequenceRunner::score(std::span<const int32_t> tokens, const LogitsSink& sink, const Progress& progress) {
  DI_CHECK(tokens_.empty());
  tokens_.assign(tokens.begin(), tokens.end());
  const auto n_tokens = static_cast<int64_t>(tokens_.size());
  DI_RETURN_IF_ERROR(make_room(n_tokens));
  const auto vocab_size = static_cast<size_t>(context_.model->config.vocab_size);
  const int64_t n_logit_rows = context_.pass->limits().n_logit_rows_max;
  std::vector<float> logits(static_cast<size_t>(n_logit_rows) * vocab_size);
  for (int64_t begin = 0; begin < n_tokens; begin += context_.n_batch_tokens) {
    const int64_t end = std::min<int64_t>(begin + context_.n_batch_tokens, n_tokens);
    DI_RETURN_IF_ERROR(run_full_chunk(begin, end));
    for (int64_t first = begin; first < end; first += n_logit_rows) {
      std::vector<int32_t> rows(static_cast<size_t>(std::min(n_logit_rows, end - first)));
      std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first - begin));
      DI_RETURN_IF_ERROR(context_.pass->logits(rows, logits.data()));
      DI_RETURN_IF_ERROR(sink(first, std::span(logits).first(rows.size() * vocab_size)));
    }
    if (progress) progress(end, n_tokens);
  }
  return {};
}

Status SequenceRunner::decode(int32_t token, std::span<float> logits) {
  tokens_.push_back(token);
  const auto n_tokens = static_cast<int64_t>(tokens_.size());
  DI_RETURN_IF_ERROR(make_room(n_tokens));
  DI_RETURN_IF_ERROR(run_full_chunk(n_tokens - 1, n_tokens));
  const int32_t row = 0;
  return context_.pass->logits({&row, 1}, logits.data());
}

}  // namespace deepinfer
