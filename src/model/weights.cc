#include "model/weights.h"

#include <string>

#include "base/check.h"
#include "model/layer_plan.h"

namespace deepinfer {

namespace {

/// Looks weights up by name and remembers the first failure, so that binding reads as a list.
class Binder {
 public:
  Binder(const Checkpoint& checkpoint, ops::Backend& backend) : checkpoint_(checkpoint), backend_(backend) {}

  void fail(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }
  [[nodiscard]] const Status& status() const { return status_; }

  template <typename T>
  const T* vector(const std::string& name) {
    return static_cast<const T*>(bind(name).data);
  }
  ops::Bf16Matrix bf16(const std::string& name) {
    const Bound w = bind(name);
    return {static_cast<const Bf16*>(w.data), w.shape[0], w.shape[1]};
  }
  /// `name` without ".weight": binds name.weight and name.scale.
  ops::Fp8Matrix fp8(const std::string& name) {
    const Bound w = bind(name + ".weight");
    return {static_cast<const uint8_t*>(w.data), vector<uint8_t>(name + ".scale"), w.shape[0], w.shape[1]};
  }
  ops::Fp4Matrix fp4(const std::string& name) {
    const Bound w = bind(name + ".weight");
    return {static_cast<const uint8_t*>(w.data), vector<uint8_t>(name + ".scale"), w.shape[0], w.shape[1] * 2};
  }

 private:
  struct Bound {
    const void* data = nullptr;
    Shape shape{0, 0};
  };

  Bound bind(const std::string& name) {
    if (!status_.ok()) return {};
    const Result<TensorView> view = checkpoint_.find(name);
    if (!view.ok()) return fail(view.error()), Bound{};
    const Result<const void*> data = backend_.import_weight(*view);
    if (!data.ok()) return fail(data.error()), Bound{};
    return {*data, view->shape};
  }

  const Checkpoint& checkpoint_;
  ops::Backend& backend_;
  Status status_;
};

MhcWeights bind_mhc(Binder& b, const std::string& prefix) {
  return {b.vector<float>(prefix + "_fn"), b.vector<float>(prefix + "_base"), b.vector<float>(prefix + "_scale")};
}

LayerWeights bind_layer(Binder& b, const ModelConfig& config, const LayerPlan& plan, int32_t layer) {
  const std::string at = "layers." + std::to_string(layer) + ".";
  const std::string attn = at + "attn.";
  const std::string ffn = at + "ffn.";
  LayerWeights w;
  w.attn_norm = b.vector<Bf16>(at + "attn_norm.weight");
  w.ffn_norm = b.vector<Bf16>(at + "ffn_norm.weight");
  w.hc_attn = bind_mhc(b, at + "hc_attn");
  w.hc_ffn = bind_mhc(b, at + "hc_ffn");
  w.wq_a = b.fp8(attn + "wq_a");
  w.q_norm = b.vector<Bf16>(attn + "q_norm.weight");
  w.wq_b = b.fp8(attn + "wq_b");
  w.wkv = b.fp8(attn + "wkv");
  w.kv_norm = b.vector<Bf16>(attn + "kv_norm.weight");
  w.wo_a = b.fp8(attn + "wo_a");
  w.wo_b = b.fp8(attn + "wo_b");
  w.attn_sink = b.vector<float>(attn + "attn_sink");
  if (plan.mode == AttentionMode::kFull) {
    CompressorWeights c;
    c.wkv = b.bf16(attn + "compressor.wkv.weight");
    if (plan.ratio == 2) c.wgate = b.bf16(attn + "compressor.wgate.weight");
    c.norm = b.vector<Bf16>(attn + "compressor.norm.weight");
    c.wk = b.bf16(attn + "indexer.wk.weight");
    c.k_norm = b.vector<Bf16>(attn + "indexer.k_norm.weight");
    w.compressor = c;
  }
  if (plan.mode == AttentionMode::kFull || plan.mode == AttentionMode::kReindex) {
    w.indexer = IndexerWeights{b.fp8(attn + "indexer.wq_b"), b.bf16(attn + "indexer.weights_proj.weight")};
  }
  if (plan.engram >= 0) {
    w.engram = EngramWeights{b.vector<uint8_t>(at + "engram.embed.weight"),
                             b.vector<uint8_t>(at + "engram.embed.scale"), b.fp8(at + "engram.wkv"),
                             b.vector<Bf16>(at + "engram.q_weight"), b.vector<Bf16>(at + "engram.k_weight")};
  }
  w.gate = b.bf16(ffn + "gate.weight");
  w.gate_bias = b.vector<float>(ffn + "gate.bias");
  if (config.vision) w.gate_bias_image = b.vector<float>(ffn + "gate.bias_vl");
  for (int32_t e = 0; e < config.n_routed_experts; ++e) {
    const std::string expert = ffn + "experts." + std::to_string(e) + ".";
    w.experts.push_back({b.fp4(expert + "w1"), b.fp4(expert + "w3"), b.fp4(expert + "w2")});
  }
  const std::string shared = ffn + "shared_experts.";
  w.shared = {b.fp8(shared + "w1"), b.fp8(shared + "w3"), b.fp8(shared + "w2")};
  return w;
}

}  // namespace

Result<ModelWeights> bind_weights(const Checkpoint& checkpoint, ops::Backend& backend) {
  const ModelConfig& config = checkpoint.config();
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  Binder b(checkpoint, backend);
  ModelWeights w;
  w.embed = b.bf16("embed.weight");
  w.head = b.bf16("head.weight");
  w.norm = b.vector<Bf16>("norm.weight");
  for (int32_t l = 0; l < config.n_layers; ++l) {
    w.layers.push_back(bind_layer(b, config, plan[static_cast<size_t>(l)], l));
  }
  DI_RETURN_IF_ERROR(b.status());
  return w;
}

}  // namespace deepinfer
