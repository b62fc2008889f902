#include "checkpoint/catalog.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr int64_t kQuantBlock = 32;  // rows and columns of an FP8 weight block; columns of an FP4 or Engram block

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// Appends the tensors of one section under growing prefixes.
class Lister {
 public:
  Lister(std::vector<ExpectedTensor>& out, Section section) : out_(out), section_(section) {}

  void plain(std::string name, DType dtype, Shape shape) { out_.push_back({std::move(name), dtype, shape, section_}); }
  void bf16(std::string name, Shape shape) { plain(std::move(name), DType::kBf16, shape); }
  void f32(std::string name, Shape shape) { plain(std::move(name), DType::kF32, shape); }

  /// E4M3 weight with one scale per 32 x 32 block.
  void fp8(const std::string& name, int64_t n_out, int64_t n_in) {
    DI_CHECK(n_out % kQuantBlock == 0);
    DI_CHECK(n_in % kQuantBlock == 0);
    plain(name + ".weight", DType::kF8E4m3, {n_out, n_in});
    plain(name + ".scale", DType::kF8E8m0, {n_out / kQuantBlock, n_in / kQuantBlock});
  }
  /// Packed E2M1 weight, two columns a byte, with one scale per 32 columns of a row.
  void fp4(const std::string& name, int64_t n_out, int64_t n_in) {
    DI_CHECK(n_in % kQuantBlock == 0);
    plain(name + ".weight", DType::kPackedFp4, {n_out, n_in / 2});
    plain(name + ".scale", DType::kF8E8m0, {n_out, n_in / kQuantBlock});
  }
  /// E4M3 table with one scale per 32 columns of a row; rows are gathered one by one.
  void table(const std::string& name, int64_t n_rows, int64_t n_columns) {
    plain(name + ".weight", DType::kF8E4m3, {n_rows, n_columns});
    out_.back().random_access = true;
    plain(name + ".scale", DType::kF8E8m0, {n_rows, n_columns / kQuantBlock});
    out_.back().random_access = true;
  }

 private:
  std::vector<ExpectedTensor>& out_;
  Section section_;
};

void list_engram(Lister& list, const ModelConfig& c, const std::string& prefix, int64_t n_rows) {
  const int64_t d = c.hidden_size;
  list.table(prefix + "embed", n_rows, c.engram_head_dim);
  list.fp8(prefix + "wkv", (c.hc_mult + 1) * d, int64_t{c.n_engram_columns()} * c.engram_head_dim);
  list.bf16(prefix + "q_weight", {c.hc_mult, d});
  list.bf16(prefix + "k_weight", {c.hc_mult, d});
}

void list_hyper_connection(Lister& list, const ModelConfig& c, const std::string& prefix, const std::string& site) {
  list.f32(prefix + "hc_" + site + "_fn", {c.n_mix(), int64_t{c.hc_mult} * c.hidden_size});
  list.f32(prefix + "hc_" + site + "_base", {c.n_mix()});
  list.f32(prefix + "hc_" + site + "_scale", {3});
}

void list_attention(Lister& list, const ModelConfig& c, const std::string& prefix) {
  const int64_t d = c.hidden_size;
  const int64_t heads_dim = int64_t{c.n_heads} * c.head_dim;
  list.fp8(prefix + "wq_a", c.q_lora_rank, d);
  list.bf16(prefix + "q_norm.weight", {c.q_lora_rank});
  list.fp8(prefix + "wq_b", heads_dim, c.q_lora_rank);
  list.fp8(prefix + "wkv", c.head_dim, d);
  list.bf16(prefix + "kv_norm.weight", {c.head_dim});
  list.fp8(prefix + "wo_a", int64_t{c.o_groups} * c.o_lora_rank, heads_dim / c.o_groups);
  list.fp8(prefix + "wo_b", d, int64_t{c.o_groups} * c.o_lora_rank);
  list.f32(prefix + "attn_sink", {c.n_heads});
}

/// `ratio` is that of a KV source: a gate exists only where several tokens are pooled.
void list_compressor(Lister& list, const ModelConfig& c, const std::string& prefix, int32_t ratio) {
  list.bf16(prefix + "compressor.wkv.weight", {c.head_dim, c.hidden_size});
  if (ratio > 1) list.bf16(prefix + "compressor.wgate.weight", {c.head_dim, c.hidden_size});
  list.bf16(prefix + "compressor.norm.weight", {c.head_dim});
  list.bf16(prefix + "indexer.wk.weight", {c.index_head_dim, c.head_dim});
  list.bf16(prefix + "indexer.k_norm.weight", {c.index_head_dim});
}

void list_index_query(Lister& list, const ModelConfig& c, const std::string& prefix) {
  list.fp8(prefix + "indexer.wq_b", int64_t{c.index_n_heads} * c.index_head_dim, c.q_lora_rank);
  list.bf16(prefix + "indexer.weights_proj.weight", {c.index_n_heads, c.hidden_size});
}

void list_moe(Lister& list, const ModelConfig& c, const std::string& prefix, int32_t n_experts) {
  const int64_t d = c.hidden_size;
  const int64_t inner = c.moe_intermediate_size;
  list.bf16(prefix + "gate.weight", {n_experts, d});
  list.f32(prefix + "gate.bias", {n_experts});
  if (c.vision) list.f32(prefix + "gate.bias_vl", {n_experts});
  for (int32_t e = 0; e < n_experts; ++e) {
    const std::string expert = prefix + "experts." + std::to_string(e);
    list.fp4(expert + ".w1", inner, d);
    list.fp4(expert + ".w3", inner, d);
    list.fp4(expert + ".w2", d, inner);
  }
  list.fp8(prefix + "shared_experts.w1", inner, d);
  list.fp8(prefix + "shared_experts.w3", inner, d);
  list.fp8(prefix + "shared_experts.w2", d, inner);
}

/// What backbone and drafter layers have in common: the norms, both mix sites, attention and experts.
void list_layer(Lister& list, const ModelConfig& c, const std::string& prefix, int32_t n_experts) {
  list.bf16(prefix + "attn_norm.weight", {c.hidden_size});
  list.bf16(prefix + "ffn_norm.weight", {c.hidden_size});
  list_hyper_connection(list, c, prefix, "attn");
  list_hyper_connection(list, c, prefix, "ffn");
  list_attention(list, c, prefix + "attn.");
  list_moe(list, c, prefix + "ffn.", n_experts);
}

void list_text(Lister list, const ModelConfig& c) {
  list.bf16("embed.weight", {c.vocab_size, c.hidden_size});
  for (int32_t layer = 0; layer < c.n_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto engram = std::find(c.engram_layer_ids.begin(), c.engram_layer_ids.end(), layer);
    if (engram != c.engram_layer_ids.end()) {
      const auto idx = static_cast<size_t>(engram - c.engram_layer_ids.begin());
      list_engram(list, c, prefix + "engram.", c.engram_num_embeddings[idx]);
    }
    list_layer(list, c, prefix, c.n_routed_experts);
    if (contains(c.kv_source_layer_ids, layer)) {
      list_compressor(list, c, prefix + "attn.", c.compress_ratios[static_cast<size_t>(layer)]);
    }
    if (contains(c.index_source_layer_ids, layer)) list_index_query(list, c, prefix + "attn.");
  }
  list.bf16("norm.weight", {c.hidden_size});
  list.bf16("head.weight", {c.vocab_size, c.hidden_size});
}

void list_drafter(Lister list, const ModelConfig& c) {
  const int64_t d = c.hidden_size;
  for (int32_t stage = 0; stage < c.n_draft_layers; ++stage) {
    const std::string prefix = "mtp." + std::to_string(stage) + ".";
    list_layer(list, c, prefix, c.dspark_n_routed_experts);
    if (stage == 0) {
      list.fp8(prefix + "main_proj", d, static_cast<int64_t>(c.dspark_target_layer_ids.size()) * d);
      list.bf16(prefix + "main_norm.weight", {d});
    }
    if (stage == c.n_draft_layers - 1) {
      list.bf16(prefix + "norm.weight", {d});
      list.bf16(prefix + "markov_head.embed.weight", {c.vocab_size, c.dspark_markov_rank});
      list.bf16(prefix + "markov_head.head.weight", {c.vocab_size, c.dspark_markov_rank});
      list.bf16(prefix + "confidence_head.proj.weight", {1, d + c.dspark_markov_rank});
    }
  }
}

void list_vision(Lister list, const ModelConfig& c) {
  const VisionConfig& v = *c.vision;
  const int64_t d = c.hidden_size;
  const int64_t width = v.hidden_size;
  constexpr int64_t kChannels = 3;
  list.bf16("vision.patch_embed.proj.weight", {width, kChannels * v.patch_size * v.patch_size});
  list.bf16("vision.patch_embed.proj.bias", {width});
  for (int32_t block = 0; block < v.n_layers; ++block) {
    const std::string prefix = "vision.blocks." + std::to_string(block) + ".";
    list.bf16(prefix + "norm1.weight", {width});
    list.bf16(prefix + "attn.wqkv.weight", {3 * width, width});
    list.bf16(prefix + "attn.wqkv.bias", {3 * width});
    list.bf16(prefix + "attn.wo.weight", {width, width});
    list.bf16(prefix + "attn.wo.bias", {width});
    list.bf16(prefix + "norm2.weight", {width});
    list.bf16(prefix + "mlp.w1.weight", {int64_t{2} * v.intermediate_size, width});
    list.bf16(prefix + "mlp.w2.weight", {width, v.intermediate_size});
  }
  list.bf16("vision.norm.weight", {width});
  list.bf16("aligner.w1.weight", {d, width * v.downsample_ratio * v.downsample_ratio});
  list.bf16("aligner.w1.bias", {d});
  list.bf16("aligner.w2.weight", {d, d});
  list.bf16("aligner.w2.bias", {d});
  list.bf16("image_start", {d});
  list.bf16("image_end", {d});
  list.bf16("image_newline", {d});
}

}  // namespace

std::string_view section_name(Section section) {
  switch (section) {
    case Section::kText:
      return "text";
    case Section::kDrafter:
      return "drafter";
    case Section::kVision:
      return "vision";
  }
  DI_CHECK(false);
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> tensors;
  list_text(Lister(tensors, Section::kText), config);
  if (config.n_draft_layers > 0) list_drafter(Lister(tensors, Section::kDrafter), config);
  if (config.vision) list_vision(Lister(tensors, Section::kVision), config);
  return tensors;
}

}  // namespace deepinfer
