#include "grammar/fingerprint.h"

#include <bit>
#include <cstring>
#include <random>

namespace deepinfer::grammar {
namespace {

struct Secret {
  uint64_t low, high;
};

const Secret& secret() {
  static const Secret kSecret = [] {
    std::random_device device;
    const auto word = [&device] { return uint64_t{device()} << 32 | device(); };
    return Secret{word(), word()};
  }();
  return kSecret;
}

}  // namespace

Fingerprinter::Fingerprinter()
    : v0_(secret().low ^ 0x736f6d6570736575),
      v1_(secret().high ^ 0x646f72616e646f6d ^ 0xee),
      v2_(secret().low ^ 0x6c7967656e657261),
      v3_(secret().high ^ 0x7465646279746573) {}

void Fingerprinter::round() {
  v0_ += v1_;
  v1_ = std::rotl(v1_, 13) ^ v0_;
  v0_ = std::rotl(v0_, 32);
  v2_ += v3_;
  v3_ = std::rotl(v3_, 16) ^ v2_;
  v0_ += v3_;
  v3_ = std::rotl(v3_, 21) ^ v0_;
  v2_ += v1_;
  v1_ = std::rotl(v1_, 17) ^ v2_;
  v2_ = std::rotl(v2_, 32);
}

void Fingerprinter::add(uint64_t word) {
  v3_ ^= word;
  round();
  round();
  v0_ ^= word;
  ++n_words_;
}

void Fingerprinter::add(std::string_view bytes) {
  add(bytes.size());
  for (; !bytes.empty(); bytes.remove_prefix(bytes.size() < 8 ? bytes.size() : 8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size() < 8 ? bytes.size() : 8);
    add(word);
  }
}

Fingerprint Fingerprinter::finish() {
  add(n_words_ << 56);
  v2_ ^= 0xee;
  for (int i = 0; i < 4; ++i) round();
  const uint64_t low = v0_ ^ v1_ ^ v2_ ^ v3_;
  v1_ ^= 0xdd;
  for (int i = 0; i < 4; ++i) round();
  return {low, v0_ ^ v1_ ^ v2_ ^ v3_};
}

}  // namespace deepinfer::grammar
