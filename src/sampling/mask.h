// What a constraint leaves of the logits. Pure function, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace deepinfer {

/// out[i] = logits[i] where bit i % 64 of allowed[i / 64] is set, -infinity elsewhere. logits and out [n], allowed of
/// at least n bits (checked); out may be logits. Cost O(n).
void keep_allowed(std::span<const float> logits, std::span<const uint64_t> allowed, std::span<float> out);

}  // namespace deepinfer
