#include "cli/shipped_model.h"

#include <array>
#include <filesystem>
#include <system_error>

namespace deepinfer::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "mini";
constexpr const char* kWeights = "model.safetensors.index.json";  // names the files of the weights

Error not_there(const std::string& what) { return Error{Code::kBadModelFile, what + "; give --model DIR"}; }

}  // namespace

Result<std::string> shipped_model_dir() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return not_there("the shipped model cannot be looked for: /proc/self/exe: " + error.message());
  const fs::path root = program.parent_path().parent_path();
  const std::array places = {root / "models" / kName, root / "share" / "deepinfer" / "models" / kName};
  for (const fs::path& place : places) {
    if (fs::is_directory(place, error)) return place.string();
  }
  return not_there("the shipped model is not there: looked for " + places[0].string() + " and " + places[1].string());
}

Status resolve_model(std::string& model_dir) {
  if (!model_dir.empty() && model_dir != kName) return {};
  Result<std::string> dir = shipped_model_dir();
  if (!dir.ok()) return dir.error();
  const fs::path weights = fs::path(*dir) / kWeights;
  std::error_code error;
  if (!fs::exists(weights, error)) {
    return not_there("the weights of the shipped model are not there: looked for " + weights.string());
  }
  model_dir = *std::move(dir);
  return {};
}

}  // namespace deepinfer::cli
