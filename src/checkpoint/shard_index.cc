#include "checkpoint/shard_index.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/json_dom.h"
#include "checkpoint/message.h"

namespace deepinfer {

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c != '/' && static_cast<unsigned char>(c) >= 0x20; });
}

Result<ShardIndex> parse_shard_index(std::string_view json, std::vector<std::string>& problems) {
  DI_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, "index"));
  simdjson::dom::object root;
  if (!json_get(document.root(), root)) return Error{Code::kBadModelFile, "index is not a JSON object"};

  ShardIndex index;
  std::map<std::string, size_t, std::less<>> file_ids;
  bool has_weight_map = false;
  for (const simdjson::dom::key_value_pair field : root) {
    if (field.key == "metadata") {
      simdjson::dom::object metadata;
      int64_t total = 0;
      if (json_get(field.value, metadata) && metadata["total_size"].get<int64_t>().get(total) == simdjson::SUCCESS) {
        index.total_size_bytes = total;
      }
    }
    if (field.key != "weight_map") continue;
    simdjson::dom::object weight_map;
    if (has_weight_map) return Error{Code::kBadModelFile, "index has weight_map twice"};
    if (!json_get(field.value, weight_map))
      return Error{Code::kBadModelFile, "index has a weight_map that is no object"};
    has_weight_map = true;
    for (const simdjson::dom::key_value_pair entry : weight_map) {
      std::string_view file;
      if (!json_get(entry.value, file)) {
        problems.push_back("index gives tensor " + printable(entry.key) + " a file that is not a string");
        continue;
      }
      auto file_id = file_ids.find(file);
      if (file_id == file_ids.end()) {
        file_id = file_ids.emplace(file, index.files.size()).first;
        index.files.push_back({std::string(file), is_plain_file_name(file)});
        if (!index.files.back().is_allowed) {
          problems.push_back("index names the file \"" + printable(file) + "\", which is not inside the directory");
        }
      }
      if (!index.file_of.emplace(entry.key, file_id->second).second) {
        problems.push_back("index names tensor " + printable(entry.key) + " twice");
      }
    }
  }
  if (!has_weight_map) return Error{Code::kBadModelFile, "index has no weight_map"};
  return index;
}

}  // namespace deepinfer
