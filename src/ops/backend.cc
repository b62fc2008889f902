#include "ops/backend.h"

namespace deepinfer::ops {

Buffer::~Buffer() {
  if (data_ != nullptr) owner_->release(data_, n_bytes_);
}

}  // namespace deepinfer::ops
