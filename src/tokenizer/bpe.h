// Byte-pair encoding of one piece: its bytes become tokens, and the pair of neighbours with the lowest rank is merged,
// leftmost first, until none is left. Immutable once made; any thread, each with its own BpeScratch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/vocabulary.h"

namespace deepinfer {

/// Working memory of encode(), reused from piece to piece. Holds nothing between calls that changes results.
struct BpeScratch {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> previous;
  std::vector<uint32_t> next;
  std::vector<uint64_t> heap;
};

class Bpe {
 public:
  /// Errors   kBadModelFile: a merge whose parts or result are not in the model's vocabulary, or given twice
  static Result<Bpe> create(const std::vector<MergeEntry>& merges, const Vocabulary& vocabulary);

  /// Appends the ids of `piece`.
  /// Cost     one table look-up for a piece that is one token of at most 16 bytes; n^2 with a tiny constant up to 48
  ///          bytes; linear above, or n log n where windows do not fit together
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;

 private:
  static constexpr uint32_t kNoRank = UINT32_MAX;

  /// A token of at most 16 bytes that BPE gives for exactly its own bytes.
  struct WholePiece {
    uint64_t low;
    uint64_t high;
    uint32_t n_bytes;  // 0: empty slot
    int32_t id;
  };

  Status add_merges(const std::vector<MergeEntry>& merges, const Vocabulary& vocabulary);
  void add_whole_pieces(const Vocabulary& vocabulary);
  [[nodiscard]] static WholePiece key_of(std::string_view piece);
  [[nodiscard]] size_t whole_piece_slot(const WholePiece& key) const;
  [[nodiscard]] size_t pair_slot(uint64_t key) const;
  [[nodiscard]] uint32_t rank_of(int32_t left, int32_t right) const;
  void encode_short(std::string_view piece, std::vector<int32_t>& ids) const;
  void encode_by_heap(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;
  void fill_heap(std::string_view piece, BpeScratch& scratch) const;
  bool encode_in_windows(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  std::vector<uint32_t> token_bytes_;     // by id
  std::vector<int32_t> byte_tokens_;      // [256]
  std::vector<uint32_t> byte_pair_rank_;  // [256 * 256] rank of two byte tokens
  std::vector<uint64_t> pair_slots_;      // open addressing: pair key << kRankBits | rank; at most half full
  int pair_shift_ = 0;                    // hash bits to drop
  std::vector<int32_t> merged_;           // by rank: the token a merge gives
  std::vector<WholePiece> whole_pieces_;  // open addressing, at most half full
  int whole_piece_shift_ = 0;
};

}  // namespace deepinfer
