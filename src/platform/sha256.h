// SHA-256 as `sha256sum` prints it. OpenSSL computes it; none of its types leave this file's .cc. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "deepinfer/status.h"

namespace deepinfer {

/// 64 lower-case hexadecimal digits. Errors: kOutOfCapacity when OpenSSL cannot work, for lack of memory as a rule.
Result<std::string> sha256_hex(std::span<const std::byte> bytes);

}  // namespace deepinfer
