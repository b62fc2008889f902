// config.json of the released form (nested `text_config`): typed, and refused unless every validity rule of the model
// holds, so that code above may rely on them. Knows no tensor and no file layout beyond this one file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

/// YaRN frequency blend of the compressed layers' rotation (no magnitude scaling).
struct YarnConfig {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  int64_t original_max_position_embeddings = 0;
};

struct VisionConfig {
  int32_t n_layers = 0;
  int32_t hidden_size = 0;
  int32_t n_heads = 0;
  int32_t intermediate_size = 0;
  int32_t patch_size = 0;
  int32_t downsample_ratio = 0;
  int32_t max_image_tokens = 0;
  int64_t min_pixels = 0;
  double rope_theta = 10000;
  std::optional<double> max_wh_ratio;
};

/// All of config.json that changes what the model computes. Names follow the JSON keys where those are clear; the
/// comment gives the key otherwise. Layer ids are 0-based everywhere.
struct ModelConfig {
  // top level
  int32_t bos_token_id = 0;
  int32_t eos_token_id = 1;
  int32_t pad_token_id = 2;
  int32_t image_token_id = -1;  // negative: none

  // sizes
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t moe_intermediate_size = 0;
  int32_t n_layers = 0;  // num_hidden_layers
  int32_t n_heads = 0;   // num_attention_heads
  int32_t head_dim = 0;
  int32_t rope_dim = 0;  // qk_rope_head_dim: rotated channels, the last ones of a head
  int32_t q_lora_rank = 0;
  int32_t o_lora_rank = 0;
  int32_t o_groups = 0;
  int64_t max_position_embeddings = 0;

  // numbers
  float swiglu_limit = 0;
  float rms_norm_eps = 0;
  double rope_theta = 0;
  double compress_rope_theta = 0;
  std::optional<YarnConfig> yarn;  // rope_scaling

  // mixture of experts
  int32_t n_routed_experts = 0;
  int32_t n_experts_per_token = 0;  // num_experts_per_tok
  float routed_scaling_factor = 1;
  bool norm_topk_prob = true;

  // attention plan
  int32_t sliding_window = 0;
  std::vector<int32_t> compress_ratios;  // one a layer (drafter layers follow in the file and are kept apart below)
  std::vector<int32_t> kv_source_layer_ids;
  std::vector<int32_t> index_source_layer_ids;
  int32_t index_n_heads = 0;
  int32_t index_head_dim = 0;
  int32_t index_topk = 0;
  int32_t candidate_source_layer_id = -1;  // negative: no candidate filter
  int32_t candidate_topk_blocks = 0;
  int32_t candidate_block_size = 0;

  // hyper-connections
  int32_t hc_mult = 0;
  int32_t hc_sinkhorn_iters = 0;
  float hc_eps = 0;

  // Engram; empty engram_layer_ids: none
  std::vector<int32_t> engram_layer_ids;
  std::vector<int64_t> engram_num_embeddings;  // table rows, one entry a layer of engram_layer_ids
  int32_t engram_max_ngram_size = 0;
  int64_t engram_vocab_size = 0;
  int32_t engram_n_heads = 0;
  int32_t engram_head_dim = 0;
  int32_t engram_pad_token_id = 0;
  int64_t engram_compressed_vocab_size = 0;

  // DSpark drafter; n_draft_layers == 0: none
  int32_t n_draft_layers = 0;  // num_nextn_predict_layers
  int32_t dspark_block_size = 0;
  int32_t dspark_noise_token_id = 0;
  std::vector<int32_t> dspark_target_layer_ids;
  int32_t dspark_markov_rank = 0;
  int32_t dspark_n_routed_experts = 0;
  int32_t dspark_n_experts_per_token = 0;  // dspark_num_experts_per_tok

  std::optional<VisionConfig> vision;

  /// Keys of config.json this engine does not know ("text_config.rope_scaling.mscale"), for a warning: they may ask for
  /// something that is not done. Keys known to be without effect on inference are not listed.
  std::vector<std::string> unknown_keys;

  /// Hash columns of one Engram layer: (max n-gram - 1) * heads.
  [[nodiscard]] int32_t n_engram_columns() const { return (engram_max_ngram_size - 1) * engram_n_heads; }
  /// Rows of a mix projection: pre, post and comb of one site.
  [[nodiscard]] int32_t n_mix() const { return (2 + hc_mult) * hc_mult; }
};

/// Parses and validates. kBadModelFile names the key, its value and the rule it breaks: missing keys, wrong types,
/// values out of range, impossible layer plans (spec 2.1), widths that do not fit the quantisation blocks, and every
/// setting this engine does not implement (another quant_method, hidden_act, scoring_func, ...). Nothing is defaulted
/// except what the release itself leaves out.
Result<ModelConfig> parse_model_config(std::string_view json);

}  // namespace deepinfer
