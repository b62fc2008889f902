#include "model/forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "numerics/rope.h"

namespace deepinfer {

namespace {

/// The two frequency sets of the model: plain for window-only layers, base and YaRN of the compressed ones.
std::vector<float> frequencies(const ModelConfig& config, bool compressed) {
  if (!compressed || !config.yarn) {
    return rope_frequencies(config.rope_dim, compressed ? config.compress_rope_theta : config.rope_theta, nullptr);
  }
  const YarnParams yarn{config.yarn->factor, config.yarn->beta_fast, config.yarn->beta_slow,
                        config.yarn->original_max_position_embeddings};
  return rope_frequencies(config.rope_dim, config.compress_rope_theta, &yarn);
}

float inverse_sqrt(int32_t n) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(n))); }

}  // namespace

/// Every activation of a step, reserved once. Sizes are rows_max times the comment's shape.
struct ForwardPass::Buffers {
  std::vector<ops::Buffer> owned;

  int32_t *slot, *position, *begin, *token, *late_floor, *logit_row;
  uint8_t* zero_flags = nullptr;
  int64_t* engram_row_id;  // [columns]
  float *inv_freq_plain, *inv_freq_compressed;
  Bf16* streams;                   // [S, dim]
  Bf16* x;                         // [dim] normalised sublayer input
  ops::QuantizedRows x_quantized;  // [dim]
  Bf16* y;                         // [dim] sublayer output
  SiteMix attn_mix, ffn_mix;
  float* one_hot;  // [S] carried mix of the first layer
  Bf16* low;       // [Rq]
  ops::QuantizedRows low_quantized;
  Bf16* q;               // [H, D]
  Bf16* attended;        // [H, D]
  uint8_t* window_rows;  // packed
  int32_t* selected;     // [topk]
  int32_t* candidates;   // [candidate blocks]
  int32_t* expert;       // [active]
  float* expert_weight;  // [active]
  float* logits;         // [logit rows, vocab]

  // Kept rows of prompt tails, [n_slots * n_tail_rows, ...].
  Bf16* tail_streams = nullptr;
  float* tail_carried = nullptr;
  int32_t *tail_selected = nullptr, *tail_candidates = nullptr;

  // Host staging, filled by begin().
  std::vector<int32_t> host_slot, host_position, host_begin, host_token, host_floor;
  std::vector<std::vector<int64_t>> host_engram;  // per Engram layer [rows, columns]

  // Only with an observer.
  ops::Buffer observed_query, observed_scores;
  int64_t observed_stride = 0;
};

ForwardPass::ForwardPass(const Model& model, ops::Backend& backend, const ForwardOptions& options)
    : model_(&model), backend_(&backend), options_(options), buffers_(std::make_unique<Buffers>()) {}
ForwardPass::ForwardPass(ForwardPass&&) noexcept = default;
ForwardPass& ForwardPass::operator=(ForwardPass&&) noexcept = default;
ForwardPass::~ForwardPass() = default;

Result<ForwardPass> ForwardPass::create(const Model& model, ops::Backend& backend, const ForwardOptions& options) {
  DI_CHECK(options.limits.n_rows_max > 0 && options.limits.n_logit_rows_max > 0);
  DI_RETURN_IF_ERROR(backend.reserve(model.config, options.limits));
  ForwardPass pass(model, backend, options);
  DI_RETURN_IF_ERROR(pass.reserve());
  return pass;
}

Status ForwardPass::reserve() {
  const ModelConfig& c = model_->config;
  Buffers& b = *buffers_;
  const int64_t n = options_.limits.n_rows_max;
  const int64_t n_streams = c.hc_mult;
  const int64_t dim = c.hidden_size;

  Status status;
  const auto take = [&]<typename T>(T*& pointer, int64_t n_elements) {
    if (!status.ok()) return;
    Result<ops::Buffer> buffer = backend_->allocate(n_elements * static_cast<int64_t>(sizeof(T)));
    if (!buffer.ok()) {
      status = std::move(buffer).error();
      return;
    }
    pointer = buffer->as<T>();
    b.owned.push_back(*std::move(buffer));
  };
  const auto take_quantized = [&](ops::QuantizedRows& rows, int64_t width) {
    rows.width = width;
    take(rows.codes, n * width);
    take(rows.scales, n * width / 32);
  };
  const auto take_mix = [&](SiteMix& mix) {
    take(mix.pre, n * n_streams);
    take(mix.post, n * n_streams);
    take(mix.comb, n * n_streams * n_streams);
  };

  for (int32_t** rows : {&b.slot, &b.position, &b.begin, &b.token, &b.late_floor}) take(*rows, n);
  take(b.logit_row, options_.limits.n_logit_rows_max);
  take(b.engram_row_id, n * c.n_engram_columns());
  take(b.inv_freq_plain, c.rope_dim / 2);
  take(b.inv_freq_compressed, c.rope_dim / 2);
  take(b.streams, n * n_streams * dim);
  take(b.x, n * dim);
  take_quantized(b.x_quantized, dim);
  take(b.y, n * dim);
  take_mix(b.attn_mix);
  take_mix(b.ffn_mix);
  take(b.one_hot, n * n_streams);
  take(b.low, n * c.q_lora_rank);
  take_quantized(b.low_quantized, c.q_lora_rank);
  take(b.q, n * c.n_heads * c.head_dim);
  take(b.attended, n * c.n_heads * c.head_dim);
  take(b.window_rows, n * kv::window_row_bytes(c.head_dim));
  take(b.selected, n * c.index_topk);
  take(b.candidates, n * c.candidate_topk_blocks);
  take(b.expert, n * c.n_experts_per_token);
  take(b.expert_weight, n * c.n_experts_per_token);
  take(b.logits, int64_t{options_.limits.n_logit_rows_max} * c.vocab_size);

  const int64_t kept = int64_t{options_.n_slots} * options_.n_tail_rows;
  if (kept > 0) {
    take(b.tail_streams, kept * n_streams * dim);
    take(b.tail_carried, kept * n_streams);
    take(b.tail_selected, kept * c.index_topk);
    take(b.tail_candidates, kept * c.candidate_topk_blocks);
  }
  DI_RETURN_IF_ERROR(status);

  for (std::vector<int32_t>* rows : {&b.host_slot, &b.host_position, &b.host_begin, &b.host_token, &b.host_floor}) {
    rows->reserve(static_cast<size_t>(n));
  }
  b.host_engram.resize(c.engram_layer_ids.size());
  for (auto& rows : b.host_engram) rows.reserve(static_cast<size_t>(n * c.n_engram_columns()));
  sequences_.reserve(static_cast<size_t>(options_.n_slots));

  const std::vector<float> plain = frequencies(c, false);
  const std::vector<float> compressed = frequencies(c, true);
  const auto freq_bytes = static_cast<int64_t>(plain.size() * sizeof(float));
  DI_RETURN_IF_ERROR(backend_->upload(b.inv_freq_plain, plain.data(), freq_bytes));
  DI_RETURN_IF_ERROR(backend_->upload(b.inv_freq_compressed, compressed.data(), freq_bytes));
  std::vector<float> one_hot(static_cast<size_t>(n * n_streams), 0.0F);
  for (int64_t t = 0; t < n; ++t) one_hot[static_cast<size_t>(t * n_streams)] = 1.0F;
  return backend_->upload(b.one_hot, one_hot.data(), static_cast<int64_t>(one_hot.size() * sizeof(float)));
}

Status ForwardPass::set_rows(std::span<const StepSequence> sequences) {
  Buffers& b = *buffers_;
  for (auto* rows : {&b.host_slot, &b.host_position, &b.host_begin, &b.host_token, &b.host_floor}) rows->clear();
  for (auto& rows : b.host_engram) rows.clear();
  sequences_.assign(sequences.begin(), sequences.end());

  for (const StepSequence& sequence : sequences) {
    DI_CHECK(sequence.slot >= 0 && sequence.slot < options_.n_slots);
    DI_CHECK(sequence.n_rows > 0 && static_cast<size_t>(sequence.n_rows) <= sequence.tokens.size());
    const auto first_row = static_cast<int32_t>(b.host_slot.size());
    const auto first_position = static_cast<int64_t>(sequence.tokens.size()) - sequence.n_rows;
    for (int32_t i = 0; i < sequence.n_rows; ++i) {
      const int64_t position = first_position + i;
      b.host_slot.push_back(sequence.slot);
      b.host_position.push_back(static_cast<int32_t>(position));
      b.host_begin.push_back(first_row);
      b.host_token.push_back(sequence.tokens[static_cast<size_t>(position)]);
      b.host_floor.push_back(sequence.late_window_floor);
      for (size_t e = 0; e < b.host_engram.size(); ++e) {
        const auto n_columns = static_cast<size_t>(model_->engram_hasher.n_columns());
        std::vector<int64_t>& rows = b.host_engram[e];
        rows.resize(rows.size() + n_columns);
        model_->engram_hasher.rows(static_cast<int32_t>(e), sequence.tokens, position,
                                   rows.data() + rows.size() - n_columns);
      }
    }
  }
  rows_ = {static_cast<int32_t>(b.host_slot.size()), b.slot, b.position, b.begin};
  DI_CHECK(rows_.n > 0 && rows_.n <= options_.limits.n_rows_max);

  const auto bytes = static_cast<int64_t>(rows_.n) * static_cast<int64_t>(sizeof(int32_t));
  DI_RETURN_IF_ERROR(backend_->upload(b.slot, b.host_slot.data(), bytes));
  DI_RETURN_IF_ERROR(backend_->upload(b.position, b.host_position.data(), bytes));
  DI_RETURN_IF_ERROR(backend_->upload(b.begin, b.host_begin.data(), bytes));
  DI_RETURN_IF_ERROR(backend_->upload(b.token, b.host_token.data(), bytes));
  return backend_->upload(b.late_floor, b.host_floor.data(), bytes);
}

Status ForwardPass::begin(std::span<const StepSequence> sequences) {
  DI_RETURN_IF_ERROR(set_rows(sequences));
  Buffers& b = *buffers_;
  pending_ = nullptr;
  carried_ = b.one_hot;
  return backend_->embed({.n_rows = rows_.n,
                          .token = b.token,
                          .table = model_->weights.embed,
                          .n_streams = model_->config.hc_mult,
                          .streams = b.streams});
}

Status ForwardPass::run_layers(int32_t first, int32_t last, const KvViews& kv) {
  for (int32_t layer = first; layer < last; ++layer) DI_RETURN_IF_ERROR(run_layer(layer, kv));
  return {};
}

ops::MhcExpandArgs ForwardPass::pending_expand() const {
  const Buffers& b = *buffers_;
  ops::MhcExpandArgs args{
      .n_rows = rows_.n, .n_streams = model_->config.hc_mult, .dim = model_->config.hidden_size, .streams = b.streams};
  if (pending_ != nullptr) {
    args.y = b.y;
    args.post = pending_->post;
    args.comb = pending_->comb;
  }
  return args;
}

Status ForwardPass::flush_expand() {
  if (pending_ == nullptr) return {};
  DI_RETURN_IF_ERROR(backend_->mhc_expand(pending_expand()));
  pending_ = nullptr;
  return {};
}

ops::Rope ForwardPass::rope_of(int32_t layer) const {
  const bool compressed = model_->plan[static_cast<size_t>(layer)].ratio > 0;
  return {compressed ? buffers_->inv_freq_compressed : buffers_->inv_freq_plain, model_->config.rope_dim / 2};
}

Status ForwardPass::run_layer(int32_t layer, const KvViews& kv) {
  const ModelConfig& c = model_->config;
  const LayerWeights& w = model_->weights.layers[static_cast<size_t>(layer)];
  Buffers& b = *buffers_;
  const int64_t n = rows_.n;
  const int64_t n_streams = c.hc_mult;
  const Shape mix_shape{n, n_streams};
  const Shape comb_shape{n, n_streams, n_streams};
  const Shape stream_shape{n, n_streams, c.hidden_size};
  const Shape x_shape{n, c.hidden_size};

  if (observer_ != nullptr) {
    DI_RETURN_IF_ERROR(flush_expand());
    DI_RETURN_IF_ERROR(observe(layer, "streams_in", b.streams, DType::kBf16, stream_shape));
    DI_RETURN_IF_ERROR(observe(layer, "p_in", carried_, DType::kF32, mix_shape));
  }
  if (w.engram) DI_RETURN_IF_ERROR(run_engram(layer));

  const auto run_site = [&](const MhcWeights& mhc, const SiteMix& mix, const Bf16* norm) -> Status {
    DI_RETURN_IF_ERROR(backend_->mhc_site({.expand = pending_expand(),
                                           .fn = mhc.fn,
                                           .base = mhc.base,
                                           .scale = mhc.scale,
                                           .sinkhorn_iters = c.hc_sinkhorn_iters,
                                           .hc_eps = c.hc_eps,
                                           .rms_eps = c.rms_norm_eps,
                                           .carried = carried_,
                                           .pre = mix.pre,
                                           .post = mix.post,
                                           .comb = mix.comb,
                                           .norm_weight = norm,
                                           .x = b.x,
                                           .x_quantized = b.x_quantized}));
    pending_ = &mix;
    carried_ = mix.pre;
    const std::string site = &mix == &b.attn_mix ? "attn" : "ffn";
    DI_RETURN_IF_ERROR(observe(layer, site + "_pre", mix.pre, DType::kF32, mix_shape));
    DI_RETURN_IF_ERROR(observe(layer, site + "_post", mix.post, DType::kF32, mix_shape));
    DI_RETURN_IF_ERROR(observe(layer, site + "_comb", mix.comb, DType::kF32, comb_shape));
    return observe(layer, site + "_in", b.x, DType::kBf16, x_shape);
  };

  DI_RETURN_IF_ERROR(run_site(w.hc_attn, b.attn_mix, w.attn_norm));
  DI_RETURN_IF_ERROR(run_attention(layer, kv));
  DI_RETURN_IF_ERROR(observe(layer, "attn_out", b.y, DType::kBf16, x_shape));

  DI_RETURN_IF_ERROR(run_site(w.hc_ffn, b.ffn_mix, w.ffn_norm));
  DI_RETURN_IF_ERROR(backend_->router({.n_rows = rows_.n,
                                       .x = b.x,
                                       .gate = w.gate,
                                       .bias = w.gate_bias,
                                       .bias_image = w.gate_bias_image,
                                       .n_active = c.n_experts_per_token,
                                       .normalize = c.norm_topk_prob,
                                       .scaling = c.routed_scaling_factor,
                                       .expert = b.expert,
                                       .weight = b.expert_weight}));
  DI_RETURN_IF_ERROR(observe(layer, "experts", b.expert, DType::kI32, {n, c.n_experts_per_token}));
  DI_RETURN_IF_ERROR(observe(layer, "routing_weights", b.expert_weight, DType::kF32, {n, c.n_experts_per_token}));
  DI_RETURN_IF_ERROR(backend_->moe({.n_rows = rows_.n,
                                    .x = b.x_quantized,
                                    .n_active = c.n_experts_per_token,
                                    .expert = b.expert,
                                    .weight = b.expert_weight,
                                    .experts = w.experts.data(),
                                    .n_experts = c.n_routed_experts,
                                    .shared = w.shared,
                                    .swiglu_limit = c.swiglu_limit,
                                    .y = b.y}));
  DI_RETURN_IF_ERROR(observe(layer, "ffn_out", b.y, DType::kBf16, x_shape));
  if (observer_ == nullptr) return {};
  DI_RETURN_IF_ERROR(flush_expand());
  DI_RETURN_IF_ERROR(observe(layer, "streams_out", b.streams, DType::kBf16, stream_shape));
  return observe(layer, "p_out", carried_, DType::kF32, mix_shape);
}

Status ForwardPass::run_engram(int32_t layer) {
  const ModelConfig& c = model_->config;
  const LayerWeights& w = model_->weights.layers[static_cast<size_t>(layer)];
  const auto engram = static_cast<size_t>(model_->plan[static_cast<size_t>(layer)].engram);
  Buffers& b = *buffers_;
  DI_RETURN_IF_ERROR(flush_expand());
  const std::vector<int64_t>& ids = b.host_engram[engram];
  DI_RETURN_IF_ERROR(backend_->upload(b.engram_row_id, ids.data(), static_cast<int64_t>(ids.size() * sizeof(int64_t))));
  DI_RETURN_IF_ERROR(
      observe(layer, "engram_rows", b.engram_row_id, DType::kI64, {int64_t{rows_.n}, c.n_engram_columns()}));
  DI_RETURN_IF_ERROR(backend_->engram({.n_rows = rows_.n,
                                       .n_columns = c.n_engram_columns(),
                                       .head_dim = c.engram_head_dim,
                                       .row_id = b.engram_row_id,
                                       .table_codes = w.engram->table_codes,
                                       .table_scales = w.engram->table_scales,
                                       .wkv = w.engram->wkv,
                                       .q_weight = w.engram->q_weight,
                                       .k_weight = w.engram->k_weight,
                                       .rms_eps = c.rms_norm_eps,
                                       .n_streams = c.hc_mult,
                                       .dim = c.hidden_size,
                                       .streams = b.streams}));
  return observe(layer, "engram_out", b.streams, DType::kBf16, {int64_t{rows_.n}, c.hc_mult, c.hidden_size});
}

Status ForwardPass::run_attention(int32_t layer, const KvViews& kv) {
  const ModelConfig& c = model_->config;
  const LayerPlan& plan = model_->plan[static_cast<size_t>(layer)];
  const LayerWeights& w = model_->weights.layers[static_cast<size_t>(layer)];
  Buffers& b = *buffers_;
  const ops::Rope rope = rope_of(layer);
  const kv::RingView& ring = kv.rings[static_cast<size_t>(layer)];
  const kv::WindowRows step{b.window_rows, c.head_dim};

  DI_RETURN_IF_ERROR(backend_->query({.rows = rows_,
                                      .x = b.x_quantized,
                                      .wq_a = w.wq_a,
                                      .q_norm = w.q_norm,
                                      .rms_eps = c.rms_norm_eps,
                                      .wq_b = w.wq_b,
                                      .n_heads = c.n_heads,
                                      .head_dim = c.head_dim,
                                      .rope = rope,
                                      .low = b.low,
                                      .low_quantized = b.low_quantized,
                                      .q = b.q}));
  DI_RETURN_IF_ERROR(observe(layer, "qr", b.low, DType::kBf16, {int64_t{rows_.n}, c.q_lora_rank}));
  DI_RETURN_IF_ERROR(backend_->window_kv({.rows = rows_,
                                          .x = b.x_quantized,
                                          .wkv = w.wkv,
                                          .kv_norm = w.kv_norm,
                                          .rms_eps = c.rms_norm_eps,
                                          .rope = rope,
                                          .out = step}));
  DI_RETURN_IF_ERROR(observe(layer, "window_rows", b.window_rows, DType::kF8E4m3,
                             {int64_t{rows_.n}, kv::window_row_bytes(c.head_dim)}));
  if (w.compressor) {
    const auto source = static_cast<size_t>(plan.kv_source);
    DI_RETURN_IF_ERROR(backend_->compress({.rows = rows_,
                                           .x = b.x,
                                           .wkv = w.compressor->wkv,
                                           .wgate = w.compressor->wgate,
                                           .norm = w.compressor->norm,
                                           .wk = w.compressor->wk,
                                           .k_norm = w.compressor->k_norm,
                                           .rms_eps = c.rms_norm_eps,
                                           .rope = rope,
                                           .tail = kv.tails[source],
                                           .out = kv.sources[source]}));
  }
  if (w.indexer) DI_RETURN_IF_ERROR(select_entries(layer, kv));

  ops::AttentionArgs attention{.rows = rows_,
                               .q = b.q,
                               .n_heads = c.n_heads,
                               .head_dim = c.head_dim,
                               .softmax_scale = inverse_sqrt(c.head_dim),
                               .window = c.sliding_window,
                               .ring = ring,
                               .step = step,
                               .sink = w.attn_sink,
                               .rope = rope,
                               .out = b.attended};
  if (layer > last_kv_source_layer(c)) attention.window_floor = b.late_floor;
  if (plan.kv_source >= 0) {
    attention.topk = c.index_topk;
    attention.selected = b.selected;
    attention.global = kv.sources[static_cast<size_t>(plan.kv_source)];
  }
  DI_RETURN_IF_ERROR(backend_->attention(attention));
  DI_RETURN_IF_ERROR(backend_->window_commit({.rows = rows_, .step = step, .ring = ring}));
  return backend_->output_projection(
      {.n_rows = rows_.n, .n_groups = c.o_groups, .o = b.attended, .wo_a = w.wo_a, .wo_b = w.wo_b, .y = b.y});
}

Status ForwardPass::select_entries(int32_t layer, const KvViews& kv) {
  const ModelConfig& c = model_->config;
  const LayerPlan& plan = model_->plan[static_cast<size_t>(layer)];
  const LayerWeights& w = model_->weights.layers[static_cast<size_t>(layer)];
  Buffers& b = *buffers_;
  ops::IndexSelectArgs args{.rows = rows_,
                            .low = b.low_quantized,
                            .x = b.x,
                            .wq_b = w.indexer->wq_b,
                            .weights_proj = w.indexer->weights_proj,
                            .weight_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.index_head_dim) *
                                                                               static_cast<double>(c.index_n_heads))),
                            .n_heads = c.index_n_heads,
                            .head_dim = c.index_head_dim,
                            .rope = rope_of(layer),
                            .keys = kv.sources[static_cast<size_t>(plan.kv_source)],
                            .topk = c.index_topk,
                            .selected = b.selected,
                            .candidate_topk_blocks = c.candidate_topk_blocks,
                            .candidate_block_size = c.candidate_block_size};
  if (plan.publishes_candidates) args.publish = b.candidates;
  if (plan.uses_candidates) args.use = b.candidates;
  if (observer_ != nullptr) {
    b.observed_stride = (1 + *std::max_element(b.host_position.begin(), b.host_position.end())) / plan.ratio;
    const int64_t width = int64_t{c.index_n_heads} * c.index_head_dim;
    DI_ASSIGN_OR_RETURN(b.observed_query, backend_->allocate(rows_.n * width * int64_t{sizeof(Bf16)}));
    DI_ASSIGN_OR_RETURN(b.observed_scores, backend_->allocate(rows_.n * b.observed_stride * int64_t{sizeof(float)}));
    args.query_out = b.observed_query.as<Bf16>();
    args.scores_out = b.observed_scores.as<float>();
    args.scores_stride = b.observed_stride;
  }
  DI_RETURN_IF_ERROR(backend_->index_select(args));
  DI_RETURN_IF_ERROR(
      observe(layer, "index_q", args.query_out, DType::kBf16, {int64_t{rows_.n}, c.index_n_heads, c.index_head_dim}));
  DI_RETURN_IF_ERROR(
      observe(layer, "index_scores", args.scores_out, DType::kF32, {int64_t{rows_.n}, b.observed_stride}));
  DI_RETURN_IF_ERROR(observe(layer, "topk", b.selected, DType::kI32, {int64_t{rows_.n}, c.index_topk}));
  if (!plan.publishes_candidates) return {};
  return observe(layer, "candidates", b.candidates, DType::kI32, {int64_t{rows_.n}, c.candidate_topk_blocks});
}

Status ForwardPass::logits(std::span<const int32_t> rows, float* out) {
  const ModelConfig& c = model_->config;
  Buffers& b = *buffers_;
  const auto n = static_cast<int32_t>(rows.size());
  DI_CHECK(n <= options_.limits.n_logit_rows_max);
  if (n == 0) return {};
  DI_RETURN_IF_ERROR(flush_expand());
  DI_RETURN_IF_ERROR(backend_->upload(b.logit_row, rows.data(), n * int64_t{sizeof(int32_t)}));
  DI_RETURN_IF_ERROR(backend_->head({.n_out_rows = n,
                                     .row = b.logit_row,
                                     .n_streams = c.hc_mult,
                                     .dim = c.hidden_size,
                                     .streams = b.streams,
                                     .carried = carried_,
                                     .norm_weight = model_->weights.norm,
                                     .rms_eps = c.rms_norm_eps,
                                     .head = model_->weights.head,
                                     .logits = b.logits}));
  return backend_->download(out, b.logits, int64_t{n} * c.vocab_size * int64_t{sizeof(float)});
}

Status ForwardPass::copy_tail_rows(bool save) {
  const ModelConfig& c = model_->config;
  Buffers& b = *buffers_;
  const int64_t kept = options_.n_tail_rows;
  const auto copy = [&]<typename T>(T* step, T* tail, int64_t width, int64_t row, int64_t tail_row,
                                    int64_t n) -> Status {
    T* to = save ? tail + tail_row * width : step + row * width;
    const T* from = save ? step + row * width : tail + tail_row * width;
    return n * width == 0 ? Status{} : backend_->copy(to, from, n * width * static_cast<int64_t>(sizeof(T)));
  };
  int64_t sequence_end = 0;  // row after the sequence's last
  for (const StepSequence& sequence : sequences_) {
    sequence_end += sequence.n_rows;
    const auto end = static_cast<int64_t>(sequence.tokens.size());
    int64_t n_left = std::min<int64_t>(sequence.n_rows, kept);
    while (n_left > 0) {  // position p lies in kept row p mod kept; a run ends where that wraps
      const int64_t position = end - n_left;
      const int64_t n = std::min(n_left, kept - position % kept);
      const int64_t row = sequence_end - n_left;
      const int64_t tail_row = sequence.slot * kept + position % kept;
      DI_RETURN_IF_ERROR(copy(b.streams, b.tail_streams, int64_t{c.hc_mult} * c.hidden_size, row, tail_row, n));
      DI_RETURN_IF_ERROR(copy(b.ffn_mix.pre, b.tail_carried, c.hc_mult, row, tail_row, n));
      DI_RETURN_IF_ERROR(copy(b.selected, b.tail_selected, c.index_topk, row, tail_row, n));
      DI_RETURN_IF_ERROR(copy(b.candidates, b.tail_candidates, c.candidate_topk_blocks, row, tail_row, n));
      n_left -= n;
    }
  }
  return {};
}

Status ForwardPass::save_tail() {
  DI_CHECK(options_.n_tail_rows > 0 && carried_ == buffers_->ffn_mix.pre);
  DI_RETURN_IF_ERROR(flush_expand());
  return copy_tail_rows(true);
}

Status ForwardPass::begin_tail(std::span<const StepSequence> sequences) {
  for (const StepSequence& sequence : sequences) DI_CHECK(sequence.n_rows <= options_.n_tail_rows);
  DI_RETURN_IF_ERROR(set_rows(sequences));
  pending_ = nullptr;
  carried_ = buffers_->ffn_mix.pre;
  return copy_tail_rows(false);
}

Status ForwardPass::set_state(std::span<const Bf16> streams, std::span<const float> carried) {
  Buffers& b = *buffers_;
  DI_CHECK(streams.size() == static_cast<size_t>(rows_.n) * static_cast<size_t>(model_->config.hc_mult) *
                                 static_cast<size_t>(model_->config.hidden_size));
  DI_CHECK(carried.size() == static_cast<size_t>(rows_.n) * static_cast<size_t>(model_->config.hc_mult));
  pending_ = nullptr;
  carried_ = b.ffn_mix.pre;
  DI_RETURN_IF_ERROR(backend_->upload(b.streams, streams.data(), static_cast<int64_t>(streams.size_bytes())));
  return backend_->upload(b.ffn_mix.pre, carried.data(), static_cast<int64_t>(carried.size_bytes()));
}

Status ForwardPass::observe(int32_t layer, std::string_view name, const void* data, DType dtype, Shape shape) {
  if (observer_ == nullptr) return {};
  std::vector<std::byte> host(static_cast<size_t>(shape.n_elements() * element_bytes(dtype)));
  DI_RETURN_IF_ERROR(backend_->download(host.data(), data, static_cast<int64_t>(host.size())));
  observer_->on_tensor(layer, name, TensorView{host.data(), dtype, shape});
  return {};
}

}  // namespace deepinfer
