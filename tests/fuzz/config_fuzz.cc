// Both JSON files of a model directory: a config that is accepted must have a catalogue (whose internal checks rely on
// the validity rules), and an index must never let a file name leave the directory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "checkpoint/catalog.h"
#include "checkpoint/config.h"
#include "checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = deepinfer::parse_model_config(text);
  if (!config) {
    DI_CHECK(config.error().message.find('\n') == std::string::npos);
  } else if (config->n_layers * config->n_routed_experts + config->n_draft_layers * config->dspark_n_routed_experts <
             5000) {
    for (const deepinfer::ExpectedTensor& tensor : deepinfer::expected_tensors(*config)) DI_CHECK(tensor.n_bytes() > 0);
  }
  std::vector<std::string> problems;
  const auto index = deepinfer::parse_shard_index(text, problems);
  if (index) {
    for (const deepinfer::ShardFile& file : index->files) {
      DI_CHECK(!file.is_allowed || file.name.find('/') == std::string::npos);
    }
  }
  return 0;
}
