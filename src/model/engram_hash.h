// Which table rows a token's n-grams hash to (spec 8.2 to 8.4): multipliers, primes, offsets, and the hash itself.
// Integer arithmetic only; a pure function of token ids. Immutable after create(), any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "deepinfer/status.h"

namespace deepinfer {

/// `n` odd multipliers of one Engram layer: 2 * draw + 1, draws uniform below floor(floor((2^63-1)/compressed_vocab)/2)
/// from the PCG64 stream seeded with 10007 * layer_id.
std::vector<int64_t> engram_multipliers(int32_t layer_id, int64_t compressed_vocab, int32_t n);

/// Primes per layer of engram_layer_ids and column (n-gram size, then head): the next unused prime above the previous
/// one, each n-gram size of each layer starting at engram_vocab_size.
std::vector<std::vector<int64_t>> engram_primes(const ModelConfig& config);

class EngramHasher {
 public:
  /// A token id that belongs to an image: no n-gram may include it.
  static constexpr int32_t kDead = -1;

  /// token_map: compressed id of every raw id (spec 8.1). kBadModelFile when its class count, or a layer's table size,
  /// differs from the config.
  static Result<EngramHasher> create(const ModelConfig& config, std::vector<int32_t> token_map);

  [[nodiscard]] int32_t n_columns() const { return n_columns_; }

  /// Row ids of the token at `position` for the engram-th Engram layer; out [n_columns]. tokens: raw ids of the whole
  /// sequence (image positions kDead), position inside it.
  void rows(int32_t engram, std::span<const int32_t> tokens, int64_t position, int64_t* out) const;

 private:
  struct Layer {
    std::vector<int64_t> multipliers;  // [max n-gram]
    std::vector<int64_t> primes;       // [n_columns]
    std::vector<int64_t> offsets;      // [n_columns]
  };

  std::vector<int32_t> token_map_;
  std::vector<Layer> layers_;
  int32_t max_ngram_ = 0;
  int32_t n_heads_ = 0;
  int32_t n_columns_ = 0;
  int64_t pad_ = 0;  // compressed id read beyond the sequence start or a dead token
};

}  // namespace deepinfer
