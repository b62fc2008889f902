#include "checkpoint/config_rules.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace deepinfer {
namespace {

constexpr int64_t kQuantBlock = 32;
constexpr int64_t kLayerExpertsMax = int64_t{1} << 18;  // bounds the catalogue; the release has 15,360

/// Collects; each method is one kind of rule.
class Rules {
 public:
  void add(std::string problem) { problems_.push_back("text_config." + std::move(problem)); }

  void multiple_of_block(std::string_view key, int64_t value) {
    if (value % kQuantBlock != 0) {
      add(std::string(key) + " is " + std::to_string(value) + ": must be a multiple of " + std::to_string(kQuantBlock) +
          ", the quantisation block");
    }
  }
  void at_most(std::string_view key, int64_t value, std::string_view limit_key, int64_t limit) {
    if (value > limit) {
      add(std::string(key) + " is " + std::to_string(value) + ": must be at most " + std::string(limit_key) + " (" +
          std::to_string(limit) + ")");
    }
  }
  void below(std::string_view key, int64_t value, std::string_view limit_key, int64_t limit) {
    if (value >= limit) {
      add(std::string(key) + " is " + std::to_string(value) + ": must be below " + std::string(limit_key) + " (" +
          std::to_string(limit) + ")");
    }
  }
  /// Strictly increasing layer ids below n_layers. True when so.
  bool layer_ids(std::string_view key, const std::vector<int32_t>& ids, int32_t n_layers) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || ids[i] >= n_layers) {
        add(std::string(key) + " has " + std::to_string(ids[i]) + ": must be a layer below num_hidden_layers (" +
            std::to_string(n_layers) + ")");
        return false;
      }
      if (i > 0 && ids[i] <= ids[i - 1]) {
        add(std::string(key) + " has " + std::to_string(ids[i]) + " after " + std::to_string(ids[i - 1]) +
            ": must be strictly increasing");
        return false;
      }
    }
    return true;
  }

  std::vector<std::string> take() { return std::move(problems_); }

 private:
  std::vector<std::string> problems_;
};

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void check_widths(const ModelConfig& c, Rules& rules) {
  rules.multiple_of_block("hidden_size", c.hidden_size);
  rules.multiple_of_block("moe_intermediate_size", c.moe_intermediate_size);
  rules.multiple_of_block("q_lora_rank", c.q_lora_rank);
  rules.multiple_of_block("o_lora_rank", c.o_lora_rank);
  rules.multiple_of_block("head_dim", c.head_dim);
  if (c.n_heads % c.o_groups != 0) {
    rules.add("num_attention_heads is " + std::to_string(c.n_heads) + ": must be a multiple of o_groups (" +
              std::to_string(c.o_groups) + ")");
  }
  if (c.rope_dim % 2 != 0) rules.add("qk_rope_head_dim is " + std::to_string(c.rope_dim) + ": must be even");
  rules.at_most("qk_rope_head_dim", c.rope_dim, "head_dim", c.head_dim);
  const int64_t layer_experts = int64_t{c.n_layers} * c.n_routed_experts;
  const int64_t draft_experts = int64_t{c.n_draft_layers} * c.dspark_n_routed_experts;
  rules.at_most("num_hidden_layers x n_routed_experts", layer_experts, "the limit", kLayerExpertsMax);
  rules.at_most("num_nextn_predict_layers x dspark_n_routed_experts", draft_experts, "the limit", kLayerExpertsMax);
  rules.at_most("num_experts_per_tok", c.n_experts_per_token, "n_routed_experts", c.n_routed_experts);
}

/// Sources and ratios: every layer with compressed attention finds one source of its own ratio.
void check_layer_plan(const ModelConfig& c, Rules& rules) {
  const bool kv_ids_ok = rules.layer_ids("kv_source_layer_ids", c.kv_source_layer_ids, c.n_layers);
  const bool index_ids_ok = rules.layer_ids("index_source_layer_ids", c.index_source_layer_ids, c.n_layers);
  if (!kv_ids_ok || !index_ids_ok) return;
  for (const int32_t id : c.kv_source_layer_ids) {
    if (!contains(c.index_source_layer_ids, id)) {
      rules.add("kv_source_layer_ids has " + std::to_string(id) + ": must be in index_source_layer_ids too");
    }
  }
  for (const int32_t id : c.index_source_layer_ids) {
    if (c.compress_ratios[static_cast<size_t>(id)] == 0) {
      rules.add("index_source_layer_ids has " + std::to_string(id) + ": a layer with compress ratio 0 is no source");
    }
  }
  int32_t source = -1;
  for (int32_t layer = 0; layer < c.n_layers; ++layer) {
    if (contains(c.kv_source_layer_ids, layer)) source = layer;
    const int32_t ratio = c.compress_ratios[static_cast<size_t>(layer)];
    if (ratio == 0) continue;
    const std::string entry = "compress_ratios has " + std::to_string(ratio) + " at layer " + std::to_string(layer);
    if (source < 0) {
      rules.add(entry + ": no kv source layer at or below it");
    } else if (ratio != c.compress_ratios[static_cast<size_t>(source)]) {
      rules.add(entry + ": must equal " + std::to_string(c.compress_ratios[static_cast<size_t>(source)]) +
                ", the ratio of its kv source layer " + std::to_string(source));
    }
  }
}

void check_index(const ModelConfig& c, Rules& rules) {
  if (!c.index_source_layer_ids.empty()) {
    rules.multiple_of_block("index_head_dim", c.index_head_dim);
    rules.at_most("qk_rope_head_dim", c.rope_dim, "index_head_dim", c.index_head_dim);
  }
  if (c.candidate_source_layer_id < 0) return;
  if (!contains(c.kv_source_layer_ids, c.candidate_source_layer_id)) {
    rules.add("candidate_source_layer_id is " + std::to_string(c.candidate_source_layer_id) +
              ": must be one of kv_source_layer_ids");
  }
  const int64_t pool = int64_t{c.candidate_topk_blocks} * c.candidate_block_size;
  const int64_t needed = int64_t{c.index_topk} + c.candidate_block_size;
  if (pool < needed) {
    rules.add("candidate_topk_blocks x candidate_block_size is " + std::to_string(pool) +
              ": must be at least index_topk + candidate_block_size (" + std::to_string(needed) + ")");
  }
}

void check_engram(const ModelConfig& c, Rules& rules) {
  if (c.engram_layer_ids.empty()) return;
  rules.layer_ids("engram_layer_ids", c.engram_layer_ids, c.n_layers);
  if (c.engram_num_embeddings.size() != c.engram_layer_ids.size()) {
    rules.add("engram_num_embeddings has " + std::to_string(c.engram_num_embeddings.size()) +
              " entries: must have one for each of the " + std::to_string(c.engram_layer_ids.size()) +
              " engram_layer_ids");
  }
  rules.multiple_of_block("engram_head_dim", c.engram_head_dim);
  rules.below("engram_pad_token_id", c.engram_pad_token_id, "vocab_size", c.vocab_size);
  rules.at_most("engram_compressed_vocab_size", c.engram_compressed_vocab_size, "vocab_size", c.vocab_size);
}

void check_drafter(const ModelConfig& c, const std::vector<int32_t>& draft_compress_ratios, Rules& rules) {
  for (const int32_t ratio : draft_compress_ratios) {
    if (ratio != 0) {
      rules.add("compress_ratios has " + std::to_string(ratio) + " for a drafter layer: must be 0");
      break;
    }
  }
  if (c.n_draft_layers == 0) return;
  rules.below("dspark_noise_token_id", c.dspark_noise_token_id, "vocab_size", c.vocab_size);
  rules.layer_ids("dspark_target_layer_ids", c.dspark_target_layer_ids, c.n_layers);
  if (c.dspark_target_layer_ids.empty()) rules.add("dspark_target_layer_ids is empty: must name at least one layer");
  rules.at_most("dspark_num_experts_per_tok", c.dspark_n_experts_per_token, "dspark_n_routed_experts",
                c.dspark_n_routed_experts);
}

}  // namespace

std::vector<std::string> config_rule_problems(const ModelConfig& config,
                                              const std::vector<int32_t>& draft_compress_ratios) {
  Rules rules;
  const size_t n_ratios = config.compress_ratios.size() + draft_compress_ratios.size();
  if (n_ratios != static_cast<size_t>(config.n_layers) + static_cast<size_t>(config.n_draft_layers)) {
    rules.add("compress_ratios has " + std::to_string(n_ratios) +
              " entries: must have num_hidden_layers + num_nextn_predict_layers (" +
              std::to_string(config.n_layers + config.n_draft_layers) + ")");
    return rules.take();  // the plan rules below index by layer
  }
  check_widths(config, rules);
  check_layer_plan(config, rules);
  check_index(config, rules);
  check_engram(config, rules);
  check_drafter(config, draft_compress_ratios, rules);
  return rules.take();
}

}  // namespace deepinfer
