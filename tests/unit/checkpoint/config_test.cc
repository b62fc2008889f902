#include "checkpoint/config.h"

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/test_support.h"

namespace deepinfer {
namespace {

using test::data_file;
using test::patched;
using test::tiny_config;

TEST(Config, ReadsTheReleasedOne) {
  const auto config = parse_model_config(data_file("released_config.json"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  const ModelConfig& c = *config;
  EXPECT_EQ(c.image_token_id, 129264);
  EXPECT_EQ(c.vocab_size, 129280);
  EXPECT_EQ(c.hidden_size, 5120);
  EXPECT_EQ(c.moe_intermediate_size, 2304);
  EXPECT_EQ(c.n_layers, 40);
  EXPECT_EQ(c.n_heads, 64);
  EXPECT_EQ(c.head_dim, 512);
  EXPECT_EQ(c.rope_dim, 64);
  EXPECT_EQ(c.q_lora_rank, 1280);
  EXPECT_EQ(c.o_lora_rank, 1024);
  EXPECT_EQ(c.o_groups, 8);
  EXPECT_EQ(c.max_position_embeddings, 1048576);
  EXPECT_FLOAT_EQ(c.swiglu_limit, 10);
  EXPECT_FLOAT_EQ(c.rms_norm_eps, 1e-20F);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_EQ(c.compress_rope_theta, 160000);
  ASSERT_TRUE(c.yarn.has_value());
  EXPECT_EQ(c.yarn->factor, 16);
  EXPECT_EQ(c.yarn->beta_fast, 32);
  EXPECT_EQ(c.yarn->beta_slow, 1);
  EXPECT_EQ(c.yarn->original_max_position_embeddings, 65536);
  EXPECT_EQ(c.n_routed_experts, 384);
  EXPECT_EQ(c.n_experts_per_token, 6);
  EXPECT_FLOAT_EQ(c.routed_scaling_factor, 1.5);
  EXPECT_TRUE(c.norm_topk_prob);
  EXPECT_EQ(c.sliding_window, 128);
  ASSERT_EQ(c.compress_ratios.size(), 40U);
  EXPECT_EQ(c.compress_ratios[19], 2);
  EXPECT_EQ(c.compress_ratios[20], 1);
  EXPECT_EQ(c.kv_source_layer_ids, (std::vector<int32_t>{2, 8, 14, 20}));
  EXPECT_EQ(c.index_source_layer_ids.size(), 8U);
  EXPECT_EQ(c.index_n_heads, 32);
  EXPECT_EQ(c.index_head_dim, 128);
  EXPECT_EQ(c.index_topk, 512);
  EXPECT_EQ(c.candidate_source_layer_id, 20);
  EXPECT_EQ(c.candidate_topk_blocks, 2048);
  EXPECT_EQ(c.candidate_block_size, 8);
  EXPECT_EQ(c.hc_mult, 4);
  EXPECT_EQ(c.n_mix(), 24);
  EXPECT_EQ(c.hc_sinkhorn_iters, 20);
  EXPECT_FLOAT_EQ(c.hc_eps, 1e-6F);
  EXPECT_EQ(c.engram_layer_ids, (std::vector<int32_t>{1, 14}));
  EXPECT_EQ(c.engram_num_embeddings, (std::vector<int64_t>{384006168, 384016682}));
  EXPECT_EQ(c.n_engram_columns(), 24);
  EXPECT_EQ(c.engram_vocab_size, 16000000);
  EXPECT_EQ(c.engram_head_dim, 256);
  EXPECT_EQ(c.engram_compressed_vocab_size, 99092);
  EXPECT_EQ(c.n_draft_layers, 3);
  EXPECT_EQ(c.dspark_block_size, 5);
  EXPECT_EQ(c.dspark_noise_token_id, 128799);
  EXPECT_EQ(c.dspark_target_layer_ids, (std::vector<int32_t>{37, 38, 39}));
  EXPECT_EQ(c.dspark_markov_rank, 256);
  EXPECT_EQ(c.dspark_n_routed_experts, 128);
  EXPECT_EQ(c.dspark_n_experts_per_token, 3);
  ASSERT_TRUE(c.vision.has_value());
  EXPECT_EQ(c.vision->n_layers, 32);
  EXPECT_EQ(c.vision->min_pixels, 295936);
  EXPECT_EQ(c.vision->max_wh_ratio, std::nullopt);
  EXPECT_TRUE(c.unknown_keys.empty());
}

TEST(Config, ReadsTheGoldenOne) {
  const auto config = parse_model_config(test::read_file(DI_TESTS_DIR "/golden/golden-v41/checkpoint/config.json"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->engram_compressed_vocab_size, 449);
  EXPECT_FALSE(config->vision.has_value());
  EXPECT_TRUE(config->unknown_keys.empty());
}

struct ConfigCase {
  const char* pointer;
  const char* value;    // "" removes the key
  const char* message;  // a part of the refusal
};

class ConfigRefused : public ::testing::TestWithParam<ConfigCase> {};

TEST_P(ConfigRefused, NamesTheKey) {
  const auto config = parse_model_config(patched(test::tiny_vision_config(), GetParam().pointer, GetParam().value));
  ASSERT_FALSE(config.ok()) << GetParam().pointer;
  EXPECT_EQ(config.error().code, Code::kBadModelFile);
  EXPECT_NE(config.error().message.find(GetParam().message), std::string::npos) << config.error().message;
  EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
}

#define T "/text_config/"
const ConfigCase kUnsupported[] = {
    {"/architectures", R"(["DeepseekV4ForCausalLM"])", "architectures is [\"DeepseekV4ForCausalLM\"]: must list"},
    {"/architectures", R"("DeepseekV41ForCausalLM")", "must list"},
    {"/model_type", R"("deepseek_v4")", "model_type is \"deepseek_v4\": only \"deepseek_v41\" is implemented"},
    {"/dtype", R"("float16")", "dtype is \"float16\": only \"bfloat16\""},
    {"/tie_word_embeddings", "true", "tie_word_embeddings is true: only false"},
    {"/quantization_config/quant_method", R"("awq")", "quantization_config.quant_method is \"awq\": only \"fp8\""},
    {"/quantization_config/activation_scheme", R"("static")", "activation_scheme is \"static\": only \"dynamic\""},
    {"/quantization_config/weight_block_size", "[128,128]", "weight_block_size is [128,128]: only [32, 32]"},
    {"/quantization_config/weight_block_size", "[32]", "weight_block_size is [32]: only [32, 32]"},
    {"/quantization_config/weight_block_size", "32", "weight_block_size is 32: only [32, 32]"},
    {"/quantization_config/scale_fmt", R"("float")", "scale_fmt is \"float\": only \"ue8m0\""},
    {"/quantization_config/expert_dtype", R"("fp8")", "expert_dtype is \"fp8\": only \"fp4\""},
    {T "model_type", R"("x")", "text_config.model_type is \"x\""},
    {T "hidden_act", R"("gelu")", "text_config.hidden_act is \"gelu\": only \"silu\""},
    {T "scoring_func", R"("sigmoid")", "text_config.scoring_func is \"sigmoid\": only \"sqrtsoftplus\""},
    {T "topk_method", R"("greedy")", "text_config.topk_method is \"greedy\": only \"noaux_tc\""},
    {T "attention_bias", "true", "text_config.attention_bias is true: only false"},
    {T "tie_word_embeddings", "true", "text_config.tie_word_embeddings is true: only false"},
    {T "num_key_value_heads", "8", "text_config.num_key_value_heads is 8: only 1"},
    {T "n_shared_experts", "2", "text_config.n_shared_experts is 2: only 1"},
    {T "rope_scaling/rope_type", R"("linear")", "text_config.rope_scaling.rope_type is \"linear\": only \"yarn\""},
    {T "compress_ratios", "[0,4,1,1,0]", "compress_ratios is [0,4,1,1,0]: each entry must be an integer from 0 to 2"},
    {"/vision_config/model_type", R"("clip")", "vision_config.model_type is \"clip\""},
};
INSTANTIATE_TEST_SUITE_P(Unsupported, ConfigRefused, ::testing::ValuesIn(kUnsupported));

const ConfigCase kBadValues[] = {
    {"/quantization_config", "", "quantization_config is missing"},
    {"/text_config", "", "text_config is missing"},
    {"/text_config", "[]", "text_config is []: must be an object"},
    {"/vision_config", "3", "vision_config is 3: must be an object"},
    {"/bos_token_id", "48", "bos_token_id is 48: must be below text_config.vocab_size (48)"},
    {"/eos_token_id", "[1,2]", "eos_token_id is [1,2]: must be an integer"},
    {"/pad_token_id", "null", "pad_token_id is null"},
    {"/image_token_id", "", "image_token_id is missing"},
    {"/image_token_id", "48", "image_token_id is 48: must be below"},
    {T "hidden_size", R"("64")", "text_config.hidden_size is \"64\": must be an integer"},
    {T "hidden_size", "64.0", "text_config.hidden_size is 64.0: must be an integer"},
    {T "hidden_size", "0", "text_config.hidden_size is 0: must be an integer from 1"},
    {T "hidden_size", "-64", "text_config.hidden_size is -64: must be an integer from 1"},
    {T "hidden_size", "99999999999999999999", "text_config.hidden_size is"},
    {T "hidden_size", "80", "hidden_size is 80: must be a multiple of 32"},
    {T "moe_intermediate_size", "40", "moe_intermediate_size is 40: must be a multiple of 32"},
    {T "q_lora_rank", "33", "q_lora_rank is 33: must be a multiple of 32"},
    {T "o_lora_rank", "16", "o_lora_rank is 16: must be a multiple of 32"},
    {T "head_dim", "48", "head_dim is 48: must be a multiple of 32"},
    {T "index_head_dim", "16", "index_head_dim is 16: must be a multiple of 32"},
    {T "engram_head_dim", "8", "engram_head_dim is 8: must be a multiple of 32"},
    {T "o_groups", "3", "num_attention_heads is 4: must be a multiple of o_groups (3)"},
    {T "qk_rope_head_dim", "7", "qk_rope_head_dim is 7: must be even"},
    {T "qk_rope_head_dim", "34", "qk_rope_head_dim is 34: must be at most head_dim (32)"},
    {T "num_experts_per_tok", "4", "num_experts_per_tok is 4: must be at most n_routed_experts (3)"},
    {T "n_routed_experts", "5000", "n_routed_experts is 5000: must be an integer from 1 to 4096"},
    {T "rms_norm_eps", "0", "rms_norm_eps is 0: must be a number above"},
    {T "rms_norm_eps", R"("1e-6")", "rms_norm_eps is \"1e-6\": must be a number"},
    {T "swiglu_limit", "0", "swiglu_limit is 0"},
    {T "swiglu_limit", "1e300", "swiglu_limit is"},
    {T "norm_topk_prob", "1", "norm_topk_prob is 1: must be true or false"},
    {T "rope_theta", "1", "rope_theta is 1: must be a number above 1"},
    {T "rope_scaling", R"("yarn")", "rope_scaling is \"yarn\": must be an object"},
    {T "rope_scaling/factor", "0.5", "rope_scaling.factor is below 1"},
    {T "rope_scaling/beta_fast", "1", "beta_fast is not above beta_slow"},
    {T "sliding_window", "0", "sliding_window is 0"},
    {T "hc_mult", "17", "hc_mult is 17"},
    {T "hc_sinkhorn_iters", "0", "hc_sinkhorn_iters is 0"},
    {T "compress_ratios", "[0,2,1,1]",
     "compress_ratios has 4 entries: must have num_hidden_layers + "
     "num_nextn_predict_layers (5)"},
    {T "compress_ratios", "[0,2,1,1,0,0]", "compress_ratios has 6 entries"},
    {T "compress_ratios", "[0,2,1,1,1]", "compress_ratios has 1 for a drafter layer: must be 0"},
    {T "compress_ratios", "[2,2,1,1,0]", "compress_ratios has 2 at layer 0: no kv source layer"},
    {T "compress_ratios", "[0,2,1,2,0]", "compress_ratios has 2 at layer 3: must equal 1, the ratio of its kv source"},
    {T "compress_ratios", "[0,2,1,0,0]", "index_source_layer_ids has 3: a layer with compress ratio 0 is no source"},
    {T "kv_source_layer_ids", "[2,1]", "kv_source_layer_ids has 1 after 2: must be strictly increasing"},
    {T "kv_source_layer_ids", "[1,1]", "kv_source_layer_ids has 1 after 1: must be strictly increasing"},
    {T "kv_source_layer_ids", "[1,2,4]", "kv_source_layer_ids has 4: must be a layer below num_hidden_layers (4)"},
    {T "kv_source_layer_ids", "[-1]", "kv_source_layer_ids is [-1]: each entry must be an integer from 0"},
    {T "index_source_layer_ids", "[1,3]", "kv_source_layer_ids has 2: must be in index_source_layer_ids"},
    {T "index_source_layer_ids", "[1,2,9]", "index_source_layer_ids has 9: must be a layer below"},
    {T "candidate_source_layer_id", "3", "candidate_source_layer_id is 3: must be one of kv_source_layer_ids"},
    {T "candidate_topk_blocks", "4", "candidate_topk_blocks x candidate_block_size is 8: must be at least"},
    {T "candidate_block_size", "", "candidate_block_size is missing"},
    {T "engram_layer_ids", "[4]", "engram_layer_ids has 4: must be a layer below"},
    {T "engram_layer_ids", "[0,1]", "engram_num_embeddings has 1 entries: must have one for each of the 2"},
    {T "engram_max_ngram_size", "1", "engram_max_ngram_size is 1"},
    {T "engram_pad_token_id", "48", "engram_pad_token_id is 48: must be below vocab_size"},
    {T "engram_compressed_vocab_size", "49", "engram_compressed_vocab_size is 49: must be at most vocab_size (48)"},
    {T "dspark_target_layer_ids", "[3,4]", "dspark_target_layer_ids has 4: must be a layer below"},
    {T "dspark_target_layer_ids", "[3,2]", "dspark_target_layer_ids has 2 after 3: must be strictly increasing"},
    {T "dspark_target_layer_ids", "[]", "dspark_target_layer_ids is empty"},
    {T "dspark_noise_token_id", "48", "dspark_noise_token_id is 48: must be below vocab_size"},
    {T "dspark_num_experts_per_tok", "3", "dspark_num_experts_per_tok is 3: must be at most dspark_n_routed_experts"},
    {T "num_nextn_predict_layers", "-1", "num_nextn_predict_layers is -1"},
    {"/vision_config/num_attention_heads", "3", "vision_config.hidden_size is 16: must be a multiple of 4 x"},
    {"/vision_config/max_wh_ratio", "0", "vision_config.max_wh_ratio is 0: must be a number above 0"},
    {"/vision_config/patch_size", "", "vision_config.patch_size is missing"},
};
INSTANTIATE_TEST_SUITE_P(BadValues, ConfigRefused, ::testing::ValuesIn(kBadValues));

/// Without any one of these the config is refused by that key's name.
TEST(Config, EveryNeededKeyIsMissed) {
  const char* keys[] = {"vocab_size",
                        "hidden_size",
                        "moe_intermediate_size",
                        "num_hidden_layers",
                        "num_attention_heads",
                        "num_key_value_heads",
                        "head_dim",
                        "qk_rope_head_dim",
                        "q_lora_rank",
                        "o_lora_rank",
                        "o_groups",
                        "hidden_act",
                        "swiglu_limit",
                        "rms_norm_eps",
                        "attention_bias",
                        "tie_word_embeddings",
                        "max_position_embeddings",
                        "rope_theta",
                        "compress_rope_theta",
                        "n_routed_experts",
                        "n_shared_experts",
                        "num_experts_per_tok",
                        "scoring_func",
                        "topk_method",
                        "norm_topk_prob",
                        "routed_scaling_factor",
                        "sliding_window",
                        "compress_ratios",
                        "kv_source_layer_ids",
                        "index_source_layer_ids",
                        "index_n_heads",
                        "index_head_dim",
                        "index_topk",
                        "candidate_source_layer_id",
                        "candidate_topk_blocks",
                        "candidate_block_size",
                        "hc_mult",
                        "hc_sinkhorn_iters",
                        "hc_eps",
                        "engram_layer_ids",
                        "engram_num_embeddings",
                        "engram_max_ngram_size",
                        "engram_vocab_size",
                        "engram_n_heads",
                        "engram_head_dim",
                        "engram_pad_token_id",
                        "engram_compressed_vocab_size",
                        "num_nextn_predict_layers",
                        "dspark_block_size",
                        "dspark_noise_token_id",
                        "dspark_target_layer_ids",
                        "dspark_markov_rank",
                        "dspark_n_routed_experts",
                        "dspark_num_experts_per_tok"};
  for (const char* key : keys) {
    const auto config = parse_model_config(tiny_config(std::string(T) + key, ""));
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_NE(config.error().message.find("text_config." + std::string(key) + " is missing"), std::string::npos)
        << config.error().message;
  }
  for (const char* key : {"architectures", "bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto config = parse_model_config(tiny_config("/" + std::string(key), ""));
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_NE(config.error().message.find(std::string(key) + " is missing"), std::string::npos);
  }
}
#undef T

TEST(Config, ReportsAllProblemsAtOnce) {
  std::string json = tiny_config("/text_config/hidden_act", "\"gelu\"");
  json = patched(json, "/text_config/vocab_size", "");
  const auto config = parse_model_config(json);
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().message.find("hidden_act"), std::string::npos);
  EXPECT_NE(config.error().message.find("vocab_size is missing"), std::string::npos);
}

TEST(Config, RefusesWhatIsNoConfig) {
  for (const char* json : {"", "{", "[]", "3", "{\"a\":1,}", "\xEF\xBB\xBF{"}) {
    EXPECT_FALSE(parse_model_config(json).ok()) << json;
  }
}

TEST(Config, RefusesAKeyTwice) {
  std::string json = data_file("tiny_config.json");
  json.insert(json.find("\"hidden_size\""), "\"hidden_size\": 128, ");
  const auto config = parse_model_config(json);
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().message.find("text_config.hidden_size is there twice"), std::string::npos);
}

TEST(Config, ListsUnknownKeys) {
  std::string json = tiny_config("/text_config/new_gate", "true");
  json = patched(json, "/text_config/rope_scaling/mscale", "1");
  json = patched(json, "/quantization_config/modules_to_not_convert", "[]");
  json = patched(json, "/extra", "{}");
  json = patched(json, "/transformers_version", "\"5.0\"");
  json = patched(json, "/text_config/initializer_range", "0.02");
  const auto config = parse_model_config(json);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->unknown_keys,
            (std::vector<std::string>{"quantization_config.modules_to_not_convert", "text_config.rope_scaling.mscale",
                                      "text_config.new_gate", "extra"}));
}

TEST(Config, AllowsAbsentParts) {
  struct Absent {
    const char* pointer;
    const char* value;
  };
  for (const Absent& absent : {Absent{"/vision_config", "null"},
                               {"/image_token_id", ""},
                               {"/dtype", ""},
                               {"/model_type", ""},
                               {"/text_config/model_type", ""},
                               {"/text_config/rope_scaling", "null"},
                               {"/text_config/rope_scaling", ""},
                               {"/text_config/candidate_source_layer_id", "-1"},
                               {"/text_config/engram_layer_ids", "[]"}}) {
    const auto config = parse_model_config(tiny_config(absent.pointer, absent.value));
    EXPECT_TRUE(config.ok()) << absent.pointer << ": " << config.error().message;
  }
  EXPECT_EQ(parse_model_config(tiny_config("/image_token_id", ""))->image_token_id, -1);
}

TEST(Config, SwitchedOffPartsNeedNoKeys) {
  std::string json = data_file("tiny_config.json");
  const auto set = [&](const char* key, const char* value) {
    json = patched(json, std::string("/text_config/") + key, value);
  };
  set("engram_layer_ids", "[]");
  set("num_nextn_predict_layers", "0");
  set("compress_ratios", "[0,0,0,0]");
  set("kv_source_layer_ids", "[]");
  set("index_source_layer_ids", "[]");
  for (const char* key : {"engram_num_embeddings",
                          "engram_max_ngram_size",
                          "engram_vocab_size",
                          "engram_n_heads",
                          "engram_head_dim",
                          "engram_pad_token_id",
                          "engram_compressed_vocab_size",
                          "dspark_block_size",
                          "dspark_noise_token_id",
                          "dspark_target_layer_ids",
                          "dspark_markov_rank",
                          "dspark_n_routed_experts",
                          "dspark_num_experts_per_tok",
                          "compress_rope_theta",
                          "index_n_heads",
                          "index_head_dim",
                          "index_topk",
                          "candidate_source_layer_id",
                          "candidate_topk_blocks",
                          "candidate_block_size",
                          "rope_scaling"}) {
    set(key, "");
  }
  const auto config = parse_model_config(json);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_LT(config->candidate_source_layer_id, 0);
  EXPECT_EQ(config->n_draft_layers, 0);
}

/// A window-only layer may stand between compressed ones: it reads no source.
TEST(Config, AllowsAWindowOnlyLayerAfterASource) {
  std::string json = tiny_config("/text_config/compress_ratios", "[0,2,1,0,0]");
  json = patched(json, "/text_config/index_source_layer_ids", "[1,2]");
  const auto config = parse_model_config(json);
  EXPECT_TRUE(config.ok()) << config.error().message;
}

}  // namespace
}  // namespace deepinfer
