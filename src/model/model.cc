#include "model/model.h"

#include <utility>

#include "base/check.h"

namespace deepinfer {

Result<Model> Model::bind(const Checkpoint& checkpoint, std::vector<int32_t> token_map, ops::Backend& backend) {
  const ModelConfig& config = checkpoint.config();
  DI_ASSIGN_OR_RETURN(EngramHasher hasher, EngramHasher::create(config, std::move(token_map)));
  DI_ASSIGN_OR_RETURN(ModelWeights weights, bind_weights(checkpoint, backend));
  return Model{config, make_layer_plan(config), std::move(hasher), std::move(weights)};
}

}  // namespace deepinfer
