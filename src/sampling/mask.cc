#include "sampling/mask.h"

#include <cstddef>
#include <limits>

#include "base/check.h"

namespace deepinfer {

void keep_allowed(std::span<const float> logits, std::span<const uint64_t> allowed, std::span<float> out) {
  DI_CHECK(out.size() == logits.size() && allowed.size() * 64 >= logits.size());
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    out[i] = (allowed[i / 64] >> (i % 64) & 1) != 0 ? logits[i] : kForbidden;
  }
}

}  // namespace deepinfer
