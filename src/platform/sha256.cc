#include "platform/sha256.h"

#include <openssl/evp.h>

#include <array>

namespace deepinfer {

Result<std::string> sha256_hex(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int n_digest_bytes = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &n_digest_bytes, EVP_sha256(), nullptr) != 1) {
    return Error{Code::kOutOfCapacity, "OpenSSL could not compute a SHA-256 sum"};
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < n_digest_bytes; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace deepinfer
