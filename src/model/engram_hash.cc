#include "model/engram_hash.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string>

#include "base/check.h"

namespace deepinfer {

namespace {

__extension__ using u128 = unsigned __int128;

/// The seeding hash and generator of NumPy's default_rng, as far as drawing 64-bit bounded integers needs them.
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed) {
    const std::array<uint64_t, 4> words = seed_words(seed);
    increment_ = ((static_cast<u128>(words[2]) << 64 | words[3]) << 1) | 1;
    step();
    state_ += static_cast<u128>(words[0]) << 64 | words[1];
    step();
  }

  uint64_t next() {
    step();
    const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
    const int rotation = static_cast<int>(state_ >> 122);
    return (folded >> rotation) | (folded << (-rotation & 63));
  }

  /// Uniform in [0, range), Lemire's method. range > 2^32 (below it the original draws differently).
  uint64_t below(uint64_t range) {
    DI_CHECK(range > (uint64_t{1} << 32));
    const uint64_t threshold = (0 - range) % range;
    for (;;) {
      const u128 product = static_cast<u128>(next()) * range;
      if (static_cast<uint64_t>(product) >= threshold) return static_cast<uint64_t>(product >> 64);
    }
  }

 private:
  void step() {
    constexpr u128 kMultiplier = static_cast<u128>(0x2360ED051FC65DA4) << 64 | 0x4385DF649FCCF645;
    state_ = state_ * kMultiplier + increment_;
  }

  static std::array<uint64_t, 4> seed_words(uint64_t seed) {
    std::array<uint32_t, 4> pool = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, 0};
    uint32_t h = 0x43b0d7e5;
    const auto hashmix = [&h](uint32_t v) {
      v ^= h;
      h *= 0x931e8875;
      v *= h;
      return v ^ (v >> 16);
    };
    const auto mix = [](uint32_t x, uint32_t y) {
      const uint32_t z = 0xca01f9ddU * x - 0x4973f715U * y;
      return z ^ (z >> 16);
    };
    for (uint32_t& word : pool) word = hashmix(word);
    for (size_t s = 0; s < 4; ++s) {
      for (size_t t = 0; t < 4; ++t) {
        if (s != t) pool[t] = mix(pool[t], hashmix(pool[s]));
      }
    }
    h = 0x8b51f9dd;
    std::array<uint64_t, 4> words{};
    for (size_t i = 0; i < 8; ++i) {
      uint32_t v = pool[i % 4] ^ h;
      h *= 0x58f38ded;
      v *= h;
      v ^= v >> 16;
      words[i / 2] |= static_cast<uint64_t>(v) << (32 * (i % 2));
    }
    return words;
  }

  u128 state_ = 0;
  u128 increment_ = 0;
};

bool is_prime(int64_t n) {
  if (n < 2) return false;
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

}  // namespace

std::vector<int64_t> engram_multipliers(int32_t layer_id, int64_t compressed_vocab, int32_t n) {
  const int64_t bound = std::numeric_limits<int64_t>::max() / compressed_vocab / 2;
  Pcg64 generator(uint64_t{10007} * static_cast<uint64_t>(layer_id));
  std::vector<int64_t> multipliers(static_cast<size_t>(n));
  for (int64_t& m : multipliers) m = 2 * static_cast<int64_t>(generator.below(static_cast<uint64_t>(bound))) + 1;
  return multipliers;
}

std::vector<std::vector<int64_t>> engram_primes(const ModelConfig& config) {
  std::set<int64_t> seen;
  std::vector<std::vector<int64_t>> primes(config.engram_layer_ids.size());
  for (std::vector<int64_t>& layer : primes) {
    for (int32_t size = 2; size <= config.engram_max_ngram_size; ++size) {
      int64_t candidate = config.engram_vocab_size;
      for (int32_t head = 0; head < config.engram_n_heads; ++head, ++candidate) {
        while (!is_prime(candidate) || seen.contains(candidate)) ++candidate;
        seen.insert(candidate);
        layer.push_back(candidate);
      }
    }
  }
  return primes;
}

Result<EngramHasher> EngramHasher::create(const ModelConfig& config, std::vector<int32_t> token_map) {
  EngramHasher hasher;
  hasher.max_ngram_ = config.engram_max_ngram_size;
  hasher.n_heads_ = config.engram_n_heads;
  hasher.n_columns_ = config.n_engram_columns();
  if (config.engram_layer_ids.empty()) return hasher;

  DI_CHECK(token_map.size() == static_cast<size_t>(config.vocab_size));
  const int64_t n_classes = int64_t{*std::max_element(token_map.begin(), token_map.end())} + 1;
  if (n_classes != config.engram_compressed_vocab_size) {
    return Error{Code::kBadModelFile, "tokenizer.json folds to " + std::to_string(n_classes) +
                                          " token classes, config.json engram_compressed_vocab_size says " +
                                          std::to_string(config.engram_compressed_vocab_size)};
  }
  hasher.pad_ = token_map[static_cast<size_t>(config.engram_pad_token_id)];
  hasher.token_map_ = std::move(token_map);

  const std::vector<std::vector<int64_t>> primes = engram_primes(config);
  for (size_t i = 0; i < primes.size(); ++i) {
    Layer layer;
    layer.multipliers = engram_multipliers(config.engram_layer_ids[i], n_classes, config.engram_max_ngram_size);
    layer.primes = primes[i];
    int64_t n_rows = 0;
    for (const int64_t prime : layer.primes) {
      layer.offsets.push_back(n_rows);
      n_rows += prime;
    }
    if (n_rows != config.engram_num_embeddings[i]) {
      return Error{Code::kBadModelFile, "config.json engram_num_embeddings[" + std::to_string(i) + "] is " +
                                            std::to_string(config.engram_num_embeddings[i]) +
                                            ", the hash columns of that layer need " + std::to_string(n_rows)};
    }
    hasher.layers_.push_back(std::move(layer));
  }
  return hasher;
}

void EngramHasher::rows(int32_t engram, std::span<const int32_t> tokens, int64_t position, int64_t* out) const {
  const Layer& layer = layers_[static_cast<size_t>(engram)];
  bool beyond = false;  // once a shift leaves the text, all farther ones read pad
  uint64_t hash = 0;
  for (int32_t shift = 0; shift < max_ngram_; ++shift) {
    const int64_t at = position - shift;
    beyond = beyond || at < 0 || tokens[static_cast<size_t>(at)] == kDead;
    const int64_t id = beyond ? pad_ : token_map_[static_cast<size_t>(tokens[static_cast<size_t>(at)])];
    // Products stay below 2^63 by the choice of the multipliers' bound, and so does their exclusive or.
    hash ^= static_cast<uint64_t>(id) * static_cast<uint64_t>(layer.multipliers[static_cast<size_t>(shift)]);
    if (shift == 0) continue;
    for (int32_t head = 0; head < n_heads_; ++head) {
      const auto column = static_cast<size_t>((shift - 1) * n_heads_ + head);
      out[column] = static_cast<int64_t>(hash % static_cast<uint64_t>(layer.primes[column])) + layer.offsets[column];
    }
  }
}

}  // namespace deepinfer
