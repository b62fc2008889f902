#include "checkpoint/config.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/check.h"
#include "checkpoint/config_reader.h"
#include "checkpoint/config_rules.h"
#include "checkpoint/message.h"

namespace deepinfer {
namespace {

// Upper limits of sizes: far above any model of this family, low enough that products of four fit 64 bits.
constexpr int32_t kWidthMax = 1 << 18;
constexpr int32_t kCountMax = 1 << 16;
constexpr int32_t kExpertsMax = 1 << 12;
constexpr int32_t kLayersMax = 1 << 10;
constexpr int32_t kVocabMax = 1 << 24;
constexpr int64_t kTableRowsMax = int64_t{1} << 40;
constexpr int64_t kPositionsMax = int64_t{1} << 30;
constexpr double kRealMin = std::numeric_limits<float>::min();  // stays positive as a float
constexpr double kRealMax = 1e30;

void read_quantization(ConfigReader quantization, std::vector<std::string>& unknown_keys) {
  quantization.require_text("quant_method", "fp8");
  quantization.require_text("activation_scheme", "dynamic");
  quantization.require_integers("weight_block_size", {32, 32});
  quantization.require_text("scale_fmt", "ue8m0");
  quantization.require_text("expert_dtype", "fp4");
  quantization.append_unknown(unknown_keys);
}

/// Settings with one implemented value, and keys that only training or other programs look at.
void read_fixed_settings(ConfigReader& text) {
  if (text.has("model_type")) text.require_text("model_type", "deepseek_v41_text");
  text.require_integer("num_key_value_heads", 1);
  text.require_text("hidden_act", "silu");
  text.require_false("attention_bias");
  text.require_false("tie_word_embeddings");
  text.require_integer("n_shared_experts", 1);
  text.require_text("scoring_func", "sqrtsoftplus");
  text.require_text("topk_method", "noaux_tc");
  for (const char* key : {"attention_dropout", "initializer_range", "use_cache"}) text.ignore(key);
}

YarnConfig read_yarn(ConfigReader& yarn) {
  yarn.require_text("rope_type", "yarn");
  YarnConfig out;
  out.factor = yarn.real("factor", 0, kRealMax);
  out.beta_fast = yarn.real("beta_fast", 0, kRealMax);
  out.beta_slow = yarn.real("beta_slow", 0, kRealMax);
  out.original_max_position_embeddings = yarn.integer("original_max_position_embeddings", 1, kPositionsMax);
  return out;
}

void read_sizes(ConfigReader& text, ModelConfig& c) {
  c.vocab_size = text.integer32("vocab_size", 1, kVocabMax);
  c.hidden_size = text.integer32("hidden_size", 1, kWidthMax);
  c.moe_intermediate_size = text.integer32("moe_intermediate_size", 1, kWidthMax);
  c.n_layers = text.integer32("num_hidden_layers", 1, kLayersMax);
  c.n_heads = text.integer32("num_attention_heads", 1, kCountMax);
  c.head_dim = text.integer32("head_dim", 1, kCountMax);
  c.rope_dim = text.integer32("qk_rope_head_dim", 2, kCountMax);
  c.q_lora_rank = text.integer32("q_lora_rank", 1, kWidthMax);
  c.o_lora_rank = text.integer32("o_lora_rank", 1, kWidthMax);
  c.o_groups = text.integer32("o_groups", 1, kCountMax);
  c.max_position_embeddings = text.integer("max_position_embeddings", 1, kPositionsMax);
  c.sliding_window = text.integer32("sliding_window", 1, kCountMax);
  c.swiglu_limit = static_cast<float>(text.real("swiglu_limit", kRealMin, kRealMax));
  c.rms_norm_eps = static_cast<float>(text.real("rms_norm_eps", kRealMin, 1));
  c.n_routed_experts = text.integer32("n_routed_experts", 1, kExpertsMax);
  c.n_experts_per_token = text.integer32("num_experts_per_tok", 1, kExpertsMax);
  c.routed_scaling_factor = static_cast<float>(text.real("routed_scaling_factor", kRealMin, kRealMax));
  c.norm_topk_prob = text.boolean("norm_topk_prob");
  c.hc_mult = text.integer32("hc_mult", 1, 16);
  c.hc_sinkhorn_iters = text.integer32("hc_sinkhorn_iters", 1, 1000);
  c.hc_eps = static_cast<float>(text.real("hc_eps", kRealMin, 1));
}

/// rope_theta holds for layers without compression; the rest only where compressed layers exist.
void read_attention(ConfigReader& text, ModelConfig& c, std::vector<std::string>& unknown_keys) {
  c.kv_source_layer_ids = text.integers32("kv_source_layer_ids", 0, kLayersMax, kLayersMax);
  c.index_source_layer_ids = text.integers32("index_source_layer_ids", 0, kLayersMax, kLayersMax);
  const bool is_compressed = !c.index_source_layer_ids.empty();
  c.rope_theta = text.real("rope_theta", 1, kRealMax);
  if (is_compressed || text.has("compress_rope_theta")) {
    c.compress_rope_theta = text.real("compress_rope_theta", 1, kRealMax);
  }
  if (text.has("rope_scaling") && !text.is_null("rope_scaling")) {  // absent or null: plain frequencies
    if (auto yarn = text.object("rope_scaling")) {
      c.yarn = read_yarn(*yarn);
      yarn->append_unknown(unknown_keys);
    }
  }
  if (is_compressed || text.has("index_n_heads")) c.index_n_heads = text.integer32("index_n_heads", 1, kCountMax);
  if (is_compressed || text.has("index_head_dim")) c.index_head_dim = text.integer32("index_head_dim", 1, kCountMax);
  if (is_compressed || text.has("index_topk")) c.index_topk = text.integer32("index_topk", 1, kVocabMax);
  if (is_compressed || text.has("candidate_source_layer_id")) {
    c.candidate_source_layer_id = text.integer32("candidate_source_layer_id", -kLayersMax, kLayersMax);
  }
  if (c.candidate_source_layer_id < 0) {
    text.ignore("candidate_topk_blocks");
    text.ignore("candidate_block_size");
  } else {
    c.candidate_topk_blocks = text.integer32("candidate_topk_blocks", 1, kVocabMax);
    c.candidate_block_size = text.integer32("candidate_block_size", 1, kCountMax);
  }
}

void read_engram(ConfigReader& text, ModelConfig& c) {
  c.engram_layer_ids = text.integers32("engram_layer_ids", 0, kLayersMax, kLayersMax);
  if (c.engram_layer_ids.empty()) {
    for (const char* key : {"engram_num_embeddings", "engram_max_ngram_size", "engram_vocab_size", "engram_n_heads",
                            "engram_head_dim", "engram_pad_token_id", "engram_compressed_vocab_size"}) {
      text.ignore(key);
    }
    return;
  }
  c.engram_num_embeddings = text.integers("engram_num_embeddings", 1, kTableRowsMax, kLayersMax);
  c.engram_max_ngram_size = text.integer32("engram_max_ngram_size", 2, 16);
  c.engram_vocab_size = text.integer("engram_vocab_size", 1, kTableRowsMax);
  c.engram_n_heads = text.integer32("engram_n_heads", 1, 256);
  c.engram_head_dim = text.integer32("engram_head_dim", 1, kCountMax);
  c.engram_pad_token_id = text.integer32("engram_pad_token_id", 0, kVocabMax);
  c.engram_compressed_vocab_size = text.integer("engram_compressed_vocab_size", 1, kVocabMax);
}

void read_drafter(ConfigReader& text, ModelConfig& c) {
  c.n_draft_layers = text.integer32("num_nextn_predict_layers", 0, kLayersMax);
  if (c.n_draft_layers == 0) {
    for (const char* key : {"dspark_block_size", "dspark_noise_token_id", "dspark_target_layer_ids",
                            "dspark_markov_rank", "dspark_n_routed_experts", "dspark_num_experts_per_tok"}) {
      text.ignore(key);
    }
    return;
  }
  c.dspark_block_size = text.integer32("dspark_block_size", 1, 256);
  c.dspark_noise_token_id = text.integer32("dspark_noise_token_id", 0, kVocabMax);
  c.dspark_target_layer_ids = text.integers32("dspark_target_layer_ids", 0, kLayersMax, kLayersMax);
  c.dspark_markov_rank = text.integer32("dspark_markov_rank", 1, kWidthMax);
  c.dspark_n_routed_experts = text.integer32("dspark_n_routed_experts", 1, kExpertsMax);
  c.dspark_n_experts_per_token = text.integer32("dspark_num_experts_per_tok", 1, kExpertsMax);
}

VisionConfig read_vision(ConfigReader& vision) {
  if (vision.has("model_type")) vision.require_text("model_type", "deepseek_v41_vision");
  VisionConfig v;
  v.n_layers = vision.integer32("num_hidden_layers", 1, kLayersMax);
  v.hidden_size = vision.integer32("hidden_size", 1, kWidthMax);
  v.n_heads = vision.integer32("num_attention_heads", 1, kCountMax);
  v.intermediate_size = vision.integer32("intermediate_size", 1, kWidthMax);
  v.patch_size = vision.integer32("patch_size", 1, 1024);
  v.downsample_ratio = vision.integer32("downsample_ratio", 1, 64);
  v.max_image_tokens = vision.integer32("max_image_tokens", 4, kVocabMax);
  v.min_pixels = vision.integer("min_pixels", 0, kTableRowsMax);
  v.rope_theta = vision.real("rope_theta", 1, kRealMax);
  if (vision.has("max_wh_ratio")) v.max_wh_ratio = vision.real("max_wh_ratio", 0, kRealMax);
  return v;
}

/// Rules between values of the top level and of vision_config.
void check_tokens_and_vision(const ModelConfig& c, std::vector<std::string>& problems) {
  const std::pair<const char*, int32_t> ids[] = {{"bos_token_id", c.bos_token_id},
                                                 {"eos_token_id", c.eos_token_id},
                                                 {"pad_token_id", c.pad_token_id},
                                                 {"image_token_id", c.image_token_id}};
  for (const auto& [key, id] : ids) {
    if (id >= c.vocab_size) {
      problems.push_back(std::string(key) + " is " + std::to_string(id) + ": must be below text_config.vocab_size (" +
                         std::to_string(c.vocab_size) + ")");
    }
  }
  if (!c.vision) return;
  if (c.vision->hidden_size % c.vision->n_heads != 0 || c.vision->hidden_size / c.vision->n_heads % 4 != 0) {
    problems.push_back("vision_config.hidden_size is " + std::to_string(c.vision->hidden_size) +
                       ": must be a multiple of 4 x num_attention_heads (" + std::to_string(c.vision->n_heads) +
                       "), as rotation needs four equal parts of a head");
  }
}

/// Yarn needs its two ends in order; they are reals, so the ranges above do not say so.
void check_yarn(const ModelConfig& c, std::vector<std::string>& problems) {
  if (!c.yarn) return;
  if (c.yarn->factor < 1) problems.emplace_back("text_config.rope_scaling.factor is below 1");
  if (c.yarn->beta_fast <= c.yarn->beta_slow) {
    problems.emplace_back("text_config.rope_scaling.beta_fast is not above beta_slow");
  }
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json) {
  constexpr std::string_view kTitle = "config.json";
  DI_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, kTitle));
  simdjson::dom::object root;
  if (!json_get(document.root(), root)) return Error{Code::kBadModelFile, "config.json is not a JSON object"};

  ModelConfig config;
  std::vector<std::string> problems;
  ConfigReader top(root, "", problems);
  top.require_listed("architectures", "DeepseekV41ForCausalLM");
  if (top.has("model_type")) top.require_text("model_type", "deepseek_v41");
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (top.has(key)) top.require_text(key, "bfloat16");
  }
  if (top.has("tie_word_embeddings")) top.require_false("tie_word_embeddings");
  for (const char* key : {"transformers_version", "_name_or_path", "use_cache", "auto_map"}) top.ignore(key);
  config.bos_token_id = top.integer32("bos_token_id", 0, kVocabMax);
  config.eos_token_id = top.integer32("eos_token_id", 0, kVocabMax);
  config.pad_token_id = top.integer32("pad_token_id", 0, kVocabMax);
  const bool has_vision = top.has("vision_config");
  if (has_vision || top.has("image_token_id")) config.image_token_id = top.integer32("image_token_id", 0, kVocabMax);

  if (auto quantization = top.object("quantization_config")) read_quantization(*quantization, config.unknown_keys);
  std::vector<int32_t> ratios;
  if (auto text = top.object("text_config")) {
    read_fixed_settings(*text);
    read_sizes(*text, config);
    read_attention(*text, config, config.unknown_keys);
    read_engram(*text, config);
    read_drafter(*text, config);
    ratios = text->integers32("compress_ratios", 0, 2, 2 * size_t{kLayersMax});
    text->append_unknown(config.unknown_keys);
  }
  if (has_vision) {
    if (auto vision = top.object("vision_config")) {
      config.vision = read_vision(*vision);
      vision->append_unknown(config.unknown_keys);
    }
  }
  top.append_unknown(config.unknown_keys);
  DI_RETURN_IF_ERROR(problems_status(kTitle, problems));  // the rules below need values inside their ranges

  const size_t n_backbone = std::min(ratios.size(), static_cast<size_t>(config.n_layers));
  config.compress_ratios.assign(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(n_backbone));
  ratios.erase(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(n_backbone));
  problems = config_rule_problems(config, ratios);
  check_tokens_and_vision(config, problems);
  check_yarn(config, problems);
  DI_RETURN_IF_ERROR(problems_status(kTitle, problems));
  return config;
}

}  // namespace deepinfer
