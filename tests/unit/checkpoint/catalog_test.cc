#include "checkpoint/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/checkpoint/test_support.h"

namespace deepinfer {
namespace {

class ReleasedCatalog : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto config = parse_model_config(test::data_file("released_config.json"));
    ASSERT_TRUE(config.ok()) << config.error().message;
    tensors_ = expected_tensors(*config);
    for (const ExpectedTensor& tensor : tensors_) by_name_[tensor.name] = &tensor;
  }
  template <typename Predicate>
  static int64_t bytes_of(Predicate predicate) {
    int64_t sum = 0;
    for (const ExpectedTensor& tensor : tensors_) sum += predicate(tensor) ? tensor.n_bytes() : 0;
    return sum;
  }
  static int64_t bytes_under(const std::string& prefix) {
    return bytes_of([&](const ExpectedTensor& tensor) { return tensor.name.starts_with(prefix); });
  }
  static int64_t bytes_in(Section section) {
    return bytes_of([&](const ExpectedTensor& tensor) { return tensor.section == section; });
  }
  static int64_t count_in(Section section) {
    return std::count_if(tensors_.begin(), tensors_.end(),
                         [&](const ExpectedTensor& tensor) { return tensor.section == section; });
  }
  static void expect(const std::string& name, DType dtype, Shape shape) {
    ASSERT_TRUE(by_name_.contains(name)) << name;
    EXPECT_EQ(by_name_[name]->dtype, dtype) << name;
    EXPECT_EQ(by_name_[name]->shape, shape) << name << " " << by_name_[name]->shape.to_string();
  }

  static inline std::vector<ExpectedTensor> tensors_;
  static inline std::map<std::string, const ExpectedTensor*> by_name_;
};

TEST_F(ReleasedCatalog, CountsAreThePublishedOnes) {
  EXPECT_EQ(count_in(Section::kText), 93418);
  EXPECT_EQ(count_in(Section::kDrafter), 2401);
  EXPECT_EQ(count_in(Section::kVision), 266);
  EXPECT_EQ(tensors_.size(), 96085U);
  EXPECT_EQ(by_name_.size(), 96085U);
  EXPECT_EQ(std::count_if(tensors_.begin(), tensors_.end(),
                          [](const ExpectedTensor& tensor) { return tensor.name.ends_with(".scale"); }),
            47589);
}

TEST_F(ReleasedCatalog, BytesAreThePublishedOnes) {
  EXPECT_EQ(bytes_of([](const ExpectedTensor&) { return true; }), 510286023000);
  EXPECT_EQ(bytes_in(Section::kDrafter), 7932874632);
  EXPECT_EQ(bytes_in(Section::kVision), 970536960);
  EXPECT_EQ(bytes_under("layers.0.ffn.experts.7."), 18800640);
  EXPECT_EQ(bytes_under("layers.0.attn."), 126743040);
  EXPECT_EQ(bytes_under("layers.0.ffn.shared_experts."), 35424000);
  EXPECT_EQ(bytes_under("layers.0.ffn.gate."), 3935232);
  EXPECT_EQ(bytes_under("layers.0.hc_"), 3932376);
  EXPECT_EQ(bytes_under("layers.0."), 7389500888);
  EXPECT_EQ(bytes_under("layers.1.engram.") + bytes_under("layers.14.engram."), 203073076240);
  EXPECT_EQ(bytes_in(Section::kText) - 203073076240, 298309535168);
}

TEST_F(ReleasedCatalog, ShapesAreThePublishedOnes) {
  expect("embed.weight", DType::kBf16, {129280, 5120});
  expect("head.weight", DType::kBf16, {129280, 5120});
  expect("norm.weight", DType::kBf16, {5120});
  expect("layers.39.hc_attn_fn", DType::kF32, {24, 20480});
  expect("layers.39.hc_ffn_base", DType::kF32, {24});
  expect("layers.39.hc_ffn_scale", DType::kF32, {3});
  expect("layers.0.attn.wq_a.scale", DType::kF8E8m0, {40, 160});
  expect("layers.0.attn.wq_b.weight", DType::kF8E4m3, {32768, 1280});
  expect("layers.0.attn.wo_a.weight", DType::kF8E4m3, {8192, 4096});
  expect("layers.0.attn.wo_b.scale", DType::kF8E8m0, {160, 256});
  expect("layers.0.attn.attn_sink", DType::kF32, {64});
  expect("layers.20.attn.compressor.wkv.weight", DType::kBf16, {512, 5120});
  expect("layers.14.attn.compressor.wgate.weight", DType::kBf16, {512, 5120});
  expect("layers.20.attn.indexer.wk.weight", DType::kBf16, {128, 512});
  expect("layers.36.attn.indexer.wq_b.scale", DType::kF8E8m0, {128, 40});
  expect("layers.36.attn.indexer.weights_proj.weight", DType::kBf16, {32, 5120});
  expect("layers.5.ffn.gate.bias_vl", DType::kF32, {384});
  expect("layers.5.ffn.experts.383.w1.weight", DType::kPackedFp4, {2304, 2560});
  expect("layers.5.ffn.experts.383.w2.weight", DType::kPackedFp4, {5120, 1152});
  expect("layers.5.ffn.experts.383.w2.scale", DType::kF8E8m0, {5120, 72});
  expect("layers.14.engram.embed.weight", DType::kF8E4m3, {384016682, 256});
  expect("layers.1.engram.embed.scale", DType::kF8E8m0, {384006168, 8});
  expect("layers.1.engram.wkv.weight", DType::kF8E4m3, {25600, 6144});
  expect("layers.1.engram.wkv.scale", DType::kF8E8m0, {800, 192});
  expect("layers.1.engram.q_weight", DType::kBf16, {4, 5120});
  expect("mtp.0.main_proj.weight", DType::kF8E4m3, {5120, 15360});
  expect("mtp.1.ffn.gate.weight", DType::kBf16, {128, 5120});
  expect("mtp.2.markov_head.embed.weight", DType::kBf16, {129280, 256});
  expect("mtp.2.confidence_head.proj.weight", DType::kBf16, {1, 5376});
  expect("vision.patch_embed.proj.weight", DType::kBf16, {1024, 588});
  expect("vision.blocks.31.attn.wqkv.weight", DType::kBf16, {3072, 1024});
  expect("vision.blocks.31.mlp.w1.weight", DType::kBf16, {5632, 1024});
  expect("aligner.w1.weight", DType::kBf16, {5120, 9216});
  expect("image_newline", DType::kBf16, {5120});
}

TEST_F(ReleasedCatalog, OnlySourcesHaveTheirParts) {
  EXPECT_FALSE(by_name_.contains("layers.20.attn.compressor.wgate.weight"));  // ratio 1: nothing to pool
  EXPECT_FALSE(by_name_.contains("layers.24.attn.compressor.wkv.weight"));
  EXPECT_FALSE(by_name_.contains("layers.24.attn.indexer.wk.weight"));
  EXPECT_FALSE(by_name_.contains("layers.3.attn.indexer.wq_b.weight"));
  EXPECT_FALSE(by_name_.contains("layers.2.engram.wkv.weight"));
  EXPECT_FALSE(by_name_.contains("mtp.1.main_proj.weight"));
  EXPECT_FALSE(by_name_.contains("mtp.1.norm.weight"));
}

TEST_F(ReleasedCatalog, OnlyEngramTablesAreRandomAccess) {
  std::set<std::string> names;
  for (const ExpectedTensor& tensor : tensors_) {
    if (tensor.random_access) names.insert(tensor.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"layers.1.engram.embed.scale", "layers.1.engram.embed.weight",
                                          "layers.14.engram.embed.scale", "layers.14.engram.embed.weight"}));
}

/// hc_mult 2 against n-gram size 3, so that shapes cannot be right by accident.
TEST(Catalog, FollowsTheConfigNotTheRelease) {
  const auto config = parse_model_config(test::data_file("tiny_config.json"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  std::map<std::string, Shape> shapes;
  for (const ExpectedTensor& tensor : expected_tensors(*config)) shapes[tensor.name] = tensor.shape;
  EXPECT_EQ(shapes.at("layers.0.hc_attn_fn"), (Shape{8, 128}));
  EXPECT_EQ(shapes.at("layers.0.engram.q_weight"), (Shape{2, 64}));
  EXPECT_EQ(shapes.at("layers.0.engram.wkv.weight"), (Shape{192, 128}));
  EXPECT_EQ(shapes.at("layers.0.engram.embed.scale"), (Shape{1650, 1}));
  EXPECT_EQ(shapes.at("mtp.0.main_proj.weight"), (Shape{64, 128}));
  EXPECT_EQ(shapes.at("mtp.0.norm.weight"), (Shape{64}));  // one stage is first and last
  EXPECT_FALSE(shapes.contains("layers.0.ffn.gate.bias_vl"));
  EXPECT_FALSE(shapes.contains("vision.norm.weight"));
}

TEST(Catalog, LeavesOutWhatTheConfigLeavesOut) {
  std::string json = test::tiny_config("/text_config/engram_layer_ids", "[]");
  json = test::patched(json, "/text_config/num_nextn_predict_layers", "0");
  json = test::patched(json, "/text_config/compress_ratios", "[0,0,0,0]");
  json = test::patched(json, "/text_config/kv_source_layer_ids", "[]");
  json = test::patched(json, "/text_config/index_source_layer_ids", "[]");
  json = test::patched(json, "/text_config/candidate_source_layer_id", "-1");
  const auto config = parse_model_config(json);
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (const ExpectedTensor& tensor : expected_tensors(*config)) {
    EXPECT_EQ(tensor.section, Section::kText);
    for (const char* part : {"engram", "compressor", "indexer"}) {
      EXPECT_EQ(tensor.name.find(part), std::string::npos) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace deepinfer
