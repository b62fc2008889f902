// Descriptions for people: `inspect` of a model directory, `doctor` of the machine and the shipped model. Text and JSON
// from one list of facts.
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checksums.h"
#include "deepinfer/engine.h"
#include "engine/backend_factory.h"
#include "engine/memory_plan.h"
#include "engine/sequence_runner.h"
#include "model/layer_plan.h"
#include "platform/cpu_features.h"

namespace deepinfer {

namespace {

using Json = nlohmann::ordered_json;

std::string human_bytes(int64_t n_bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(n_bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text.data();
}

Json config_facts(const ModelConfig& c) {
  return {{"layers", c.n_layers},
          {"hidden_size", c.hidden_size},
          {"vocab_size", c.vocab_size},
          {"heads", c.n_heads},
          {"head_dim", c.head_dim},
          {"window", c.sliding_window},
          {"index_topk", c.index_topk},
          {"candidate_blocks", c.candidate_source_layer_id < 0 ? 0 : c.candidate_topk_blocks},
          {"experts", c.n_routed_experts},
          {"experts_per_token", c.n_experts_per_token},
          {"expert_width", c.moe_intermediate_size},
          {"streams", c.hc_mult},
          {"draft_layers", c.n_draft_layers},
          {"vision", c.vision.has_value()},
          {"context", c.max_position_embeddings}};
}

Json layer_facts(const ModelConfig& config) {
  Json layers = Json::array();
  const std::vector<LayerPlan> plan = make_layer_plan(config);
  for (size_t l = 0; l < plan.size(); ++l) {
    const LayerPlan& p = plan[l];
    Json layer = {{"layer", l}, {"mode", attention_mode_name(p.mode)}, {"ratio", p.ratio}};
    if (p.kv_source >= 0) {
      layer["kv_of"] = config.kv_source_layer_ids[static_cast<size_t>(p.kv_source)];
      layer["selection_of"] = p.index_source_layer;
    }
    if (p.publishes_candidates) layer["candidates"] = "publishes";
    if (p.uses_candidates) layer["candidates"] = "uses";
    if (p.engram >= 0) layer["engram_rows"] = config.engram_num_embeddings[static_cast<size_t>(p.engram)];
    layers.push_back(std::move(layer));
  }
  return layers;
}

Json tensor_facts(const Checkpoint& checkpoint) {
  struct Group {
    int64_t n_tensors = 0;
    int64_t n_bytes = 0;
  };
  std::map<std::string_view, Section> section_of;
  for (const ExpectedTensor& tensor : checkpoint.catalog()) section_of[tensor.name] = tensor.section;
  std::map<std::string, Group> groups;
  for (const SafetensorsEntry* entry : checkpoint.entries()) {
    const auto section = section_of.find(entry->name);
    const std::string part(section != section_of.end() ? section_name(section->second) : "unused");
    Group& group = groups[part + " " + entry->dtype_tag];
    ++group.n_tensors;
    group.n_bytes += entry->size_bytes;
  }
  Json facts = Json::array();
  for (const auto& [name, group] : groups) {
    facts.push_back({{"group", name}, {"tensors", group.n_tensors}, {"bytes", group.n_bytes}});
  }
  return facts;
}

Json memory_facts(const Checkpoint& checkpoint, const MemoryPlan& plan) {
  const KvBytes kv = kv_bytes(checkpoint.config(), plan.kv_size);
  return {{"weights_bytes", checkpoint.total_bytes()},
          {"context", plan.n_context},
          {"kv_blocks", plan.kv_size.n_blocks},
          {"kv_block_bytes", kv.blocks},
          {"kv_ring_bytes", kv.rings},
          {"kv_tail_bytes", kv.tails},
          {"rows_per_step", plan.limits.n_rows_max}};
}

/// "name value" of one flat object, on one line; members called *_bytes or bytes are spelt for people.
std::string line_of(const Json& object) {
  std::string line;
  for (const auto& [key, value] : object.items()) {
    const bool is_bytes = key == "bytes" || key.ends_with("_bytes");
    line += (line.empty() ? "" : "  ") + key + " ";
    line += is_bytes ? human_bytes(value.get<int64_t>()) : value.is_string() ? value.get<std::string>() : value.dump();
  }
  return line + "\n";
}

std::string text_of(const Json& facts) {
  std::string text;
  for (const auto& [key, value] : facts.items()) {
    if (value.is_object()) {
      text += key + ": " + line_of(value);
    } else if (value.is_array()) {
      text += key + ":\n";
      for (const Json& item : value) {
        text += "  " + (item.is_object() ? line_of(item) : item.get<std::string>() + "\n");
      }
    } else {
      text += key + ": " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
  }
  return text;
}

struct ShippedModel {
  Json facts;     // for programs
  Json words;     // for people: a sentence, or the list of what is wrong
  Status status;  // one line when something is wrong
};

ShippedModel check_shipped_model(const Result<std::string>& dir) {
  const Result<ChecksumReport> checked = dir.ok() ? verify_checksums(*dir) : dir.error();
  ShippedModel shipped;
  if (dir.ok()) shipped.facts["directory"] = *dir;
  if (!checked.ok()) {
    shipped.words = Json::array({checked.error().message});
    shipped.status = checked.error();
  } else {
    const auto n_problems = checked->problems.size();
    shipped.facts["files"] = checked->n_files;
    shipped.facts["bytes"] = checked->n_bytes;
    shipped.words = checked->problems;
    if (n_problems == 0) {
      shipped.words =
          "complete and right (" + std::to_string(checked->n_files) + " files, " + human_bytes(checked->n_bytes) + ")";
    } else {
      shipped.status =
          Error{Code::kBadModelFile, *dir + ": " + std::to_string(n_problems) + " of " +
                                         std::to_string(checked->n_files) + " files are not those of SHA256SUMS"};
    }
  }
  shipped.facts["problems"] = shipped.words.is_array() ? shipped.words : Json::array();
  return shipped;
}

}  // namespace

Result<std::string> inspect_model(const EngineOptions& options, bool as_json) {
  DI_RETURN_IF_ERROR(check_options(options));
  DI_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.model_dir));
  DI_ASSIGN_OR_RETURN(const MemoryPlan plan, plan_memory(checkpoint.config(), options));
  Json facts;
  facts["model"] = options.model_dir;
  facts["config"] = config_facts(checkpoint.config());
  facts["layer_plan"] = layer_facts(checkpoint.config());
  facts["tensors"] = tensor_facts(checkpoint);
  facts["memory"] = memory_facts(checkpoint, plan);
  facts["warnings"] = checkpoint.warnings();
  return as_json ? facts.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : text_of(facts);
}

MachineReport describe_machine(const Result<std::string>& shipped_model_dir, bool as_json) {
  const ShippedModel shipped = check_shipped_model(shipped_model_dir);
  Json facts;
  facts["processor"] = cpu_model_name();
  facts["processors"] = available_cpus();
  facts["instruction_sets"] = to_string(detect_cpu_features());
  facts["memory"] = human_bytes(static_cast<int64_t>(total_memory_bytes()));
  facts["backends"] = available_backends();
  facts["missing"] = Json::array({"cuda: this build has no CUDA backend"});
  facts["shipped_model"] = as_json ? shipped.facts : shipped.words;
  return {.text = as_json ? facts.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" : text_of(facts),
          .shipped_model = shipped.status};
}

}  // namespace deepinfer
