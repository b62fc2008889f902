#include "engine/model_loader.h"

#include <utility>

#include "base/check.h"
#include "tokenizer/token_map.h"

namespace deepinfer {

Result<LoadedModel> load_model(const std::string& dir, ops::Backend& backend, const Progress& progress) {
  LoadedModel loaded;
  DI_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::open(dir));
  DI_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::open(dir));
  const ModelConfig& config = checkpoint.config();
  std::vector<int32_t> token_map;
  if (!config.engram_layer_ids.empty()) {
    DI_ASSIGN_OR_RETURN(TokenMap map, compressed_token_map(tokenizer, config.vocab_size));
    token_map = std::move(map.class_of);
  }
  DI_RETURN_IF_ERROR(checkpoint.load({Section::kText}, progress));
  auto owned_checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  DI_ASSIGN_OR_RETURN(Model model, Model::bind(*owned_checkpoint, std::move(token_map), backend));
  loaded.checkpoint = std::move(owned_checkpoint);
  loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  loaded.model = std::make_unique<Model>(std::move(model));
  return loaded;
}

}  // namespace deepinfer
