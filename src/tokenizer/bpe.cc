#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "base/check.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

// A pair and its rank share 64 bits: 21 + 21 for the ids, 22 for the rank.
constexpr int kIdBits = 21;
constexpr int kRankBits = 22;
constexpr uint64_t kRankMask = (uint64_t{1} << kRankBits) - 1;
constexpr uint64_t kEmptySlot = UINT64_MAX;
static_assert(kTokensMax < 1 << kIdBits && kTokensMax < 1 << kRankBits && 2 * kIdBits + kRankBits == 64);

constexpr size_t kWholePieceBytesMax = 16;
constexpr size_t kShortPieceBytesMax = 48;  // measured: above it the heap is faster

// Longer pieces are encoded window by window; a window's last bytes are left to the next one. Measured: the arrays of
// a window stay in the first-level cache.
constexpr size_t kWindowBytes = 1024;
constexpr size_t kWindowOverlapBytes = 128;

constexpr uint64_t kHashFactor = 0x9E3779B97F4A7C15ULL;

constexpr uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << kIdBits | static_cast<uint64_t>(right);
}

uint64_t load(const char* p, size_t n_bytes) {
  uint64_t word = 0;
  std::memcpy(&word, p, n_bytes);
  return word;
}

/// Slots for n entries, at most half full, as the number of hash bits that index them.
int table_bits(size_t n) { return std::max(1, static_cast<int>(std::bit_width(n * 2))); }

Error bad_merge(size_t rank, const MergeEntry& merge, const std::string& why) {
  return {Code::kBadModelFile, "tokenizer.json: model.merges[" + std::to_string(rank) + "] " +
                                   quoted_for_message(merge.left + ' ' + merge.right) + ": " + why};
}

}  // namespace

Result<Bpe> Bpe::create(const std::vector<MergeEntry>& merges, const Vocabulary& vocabulary) {
  Bpe bpe;
  for (int byte = 0; byte < 256; ++byte) bpe.byte_tokens_.push_back(vocabulary.byte_token(static_cast<uint8_t>(byte)));
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    bpe.token_bytes_.push_back(static_cast<uint32_t>(vocabulary.bytes(id).size()));
  DI_RETURN_IF_ERROR(bpe.add_merges(merges, vocabulary));
  for (const int32_t left : bpe.byte_tokens_) {
    for (const int32_t right : bpe.byte_tokens_) bpe.byte_pair_rank_.push_back(bpe.rank_of(left, right));
  }
  bpe.add_whole_pieces(vocabulary);
  return bpe;
}

Status Bpe::add_merges(const std::vector<MergeEntry>& merges, const Vocabulary& vocabulary) {
  const int bits = table_bits(merges.size());
  pair_slots_.assign(size_t{1} << bits, kEmptySlot);
  pair_shift_ = 64 - bits;
  merged_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const MergeEntry& merge = merges[rank];
    int32_t parts[3];
    const std::string strings[3] = {merge.left, merge.right, merge.left + merge.right};
    for (int i = 0; i < 3; ++i) {
      const auto id = vocabulary.find(strings[i]);
      if (!id || !vocabulary.in_model(*id))
        return bad_merge(rank, merge, quoted_for_message(strings[i]) + " is not in model.vocab");
      parts[i] = *id;
    }
    const uint64_t key = pair_key(parts[0], parts[1]);
    const size_t slot = pair_slot(key);
    if (pair_slots_[slot] != kEmptySlot) return bad_merge(rank, merge, "given twice");
    pair_slots_[slot] = key << kRankBits | rank;
    merged_.push_back(parts[2]);
  }
  return {};
}

/// Most pieces of ordinary text are one token. That such a token is what BPE gives is checked here, once.
void Bpe::add_whole_pieces(const Vocabulary& vocabulary) {
  std::vector<WholePiece> found;
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view bytes = vocabulary.bytes(id);
    if (!vocabulary.in_model(id) || bytes.size() > kWholePieceBytesMax) continue;
    ids.clear();
    encode_short(bytes, ids);
    if (ids.size() != 1 || ids[0] != id) continue;
    found.push_back(key_of(bytes));
    found.back().id = id;
  }
  const int bits = table_bits(found.size());
  whole_pieces_.assign(size_t{1} << bits, WholePiece{});
  whole_piece_shift_ = 64 - bits;
  for (const WholePiece& piece : found) whole_pieces_[whole_piece_slot(piece)] = piece;
}

/// The bytes of a piece of 1 to 16 bytes in two words; with the length they determine the piece.
Bpe::WholePiece Bpe::key_of(std::string_view piece) {
  const char* p = piece.data();
  const size_t n = piece.size();
  const auto n_bytes = static_cast<uint32_t>(n);
  if (n >= 8) return {load(p, 8), load(p + n - 8, 8), n_bytes, 0};
  if (n >= 4) return {load(p, 4), load(p + n - 4, 4), n_bytes, 0};
  return {load(p, 1) | load(p + n / 2, 1) << 8 | load(p + n - 1, 1) << 16, 0, n_bytes, 0};
}

/// Where the key is, or where it would go.
size_t Bpe::whole_piece_slot(const WholePiece& key) const {
  uint64_t hash = (key.low ^ key.n_bytes) * kHashFactor;
  hash = (hash ^ hash >> 32 ^ key.high) * kHashFactor;
  size_t slot = hash >> whole_piece_shift_;
  while (true) {
    const WholePiece& there = whole_pieces_[slot];
    if (there.n_bytes == 0) return slot;
    if (there.low == key.low && there.high == key.high && there.n_bytes == key.n_bytes) return slot;
    slot = (slot + 1) & (whole_pieces_.size() - 1);
  }
}

/// Where the pair is, or where it would go.
size_t Bpe::pair_slot(uint64_t key) const {
  size_t slot = (key * kHashFactor) >> pair_shift_;
  while (pair_slots_[slot] != kEmptySlot && pair_slots_[slot] >> kRankBits != key)
    slot = (slot + 1) & (pair_slots_.size() - 1);
  return slot;
}

uint32_t Bpe::rank_of(int32_t left, int32_t right) const {
  const uint64_t slot = pair_slots_[pair_slot(pair_key(left, right))];
  return slot == kEmptySlot ? kNoRank : static_cast<uint32_t>(slot & kRankMask);
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  if (piece.size() <= kWholePieceBytesMax) {
    const WholePiece& found = whole_pieces_[whole_piece_slot(key_of(piece))];
    if (found.n_bytes != 0) {
      ids.push_back(found.id);
      return;
    }
  }
  if (piece.size() <= kShortPieceBytesMax) return encode_short(piece, ids);
  if (piece.size() > kWindowBytes && encode_in_windows(piece, scratch, ids)) return;
  encode_by_heap(piece, scratch, ids);
}

/// Scans all ranks for the lowest at every merge; both arrays stay in the first-level cache.
void Bpe::encode_short(std::string_view piece, std::vector<int32_t>& ids) const {
  int32_t tokens[kShortPieceBytesMax];
  uint32_t ranks[kShortPieceBytesMax];  // of the pair (i, i + 1); the last has none
  size_t n = piece.size();
  DI_DCHECK(n >= 1 && n <= kShortPieceBytesMax);
  const auto byte = [piece](size_t i) { return static_cast<uint8_t>(piece[i]); };
  for (size_t i = 0; i < n; ++i) tokens[i] = byte_tokens_[byte(i)];
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = byte_pair_rank_[size_t{byte(i)} << 8 | byte(i + 1)];
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoRank) break;
    tokens[best] = merged_[ranks[best]];
    --n;
    std::memmove(tokens + best + 1, tokens + best + 2, (n - best - 1) * sizeof tokens[0]);
    if (best + 1 < n) std::memmove(ranks + best, ranks + best + 1, (n - best - 1) * sizeof ranks[0]);
    if (best + 1 < n) ranks[best] = rank_of(tokens[best], tokens[best + 1]);
    if (best > 0) ranks[best - 1] = rank_of(tokens[best - 1], tokens[best]);
  }
  ids.insert(ids.end(), tokens, tokens + n);
}

// Longer pieces: tokens in a linked list over byte positions, candidate pairs in a heap of rank << 32 | position. A
// token lives at the position of its first byte; tokens[i] < 0 marks a position inside a token.
namespace {
constexpr uint32_t kNone = UINT32_MAX;
constexpr auto kLowestFirst = std::greater<uint64_t>();
}  // namespace

void Bpe::fill_heap(std::string_view piece, BpeScratch& scratch) const {
  const auto n = static_cast<uint32_t>(piece.size());
  scratch.tokens.resize(n);
  scratch.previous.resize(n);
  scratch.next.resize(n);
  scratch.heap.clear();
  const auto byte = [piece](uint32_t i) { return static_cast<uint8_t>(piece[i]); };
  for (uint32_t i = 0; i < n; ++i) {
    scratch.tokens[i] = byte_tokens_[byte(i)];
    scratch.previous[i] = i - 1;  // kNone for the first
    scratch.next[i] = i + 1 < n ? i + 1 : kNone;
    if (i + 1 == n) break;
    const uint32_t rank = byte_pair_rank_[size_t{byte(i)} << 8 | byte(i + 1)];
    if (rank != kNoRank) scratch.heap.push_back(uint64_t{rank} << 32 | i);
  }
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), kLowestFirst);
}

void Bpe::encode_by_heap(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  fill_heap(piece, scratch);
  // Named one by one: clang 14 cannot capture structured bindings.
  auto& tokens = scratch.tokens;
  auto& previous = scratch.previous;
  auto& next = scratch.next;
  auto& heap = scratch.heap;
  const auto offer = [&, this](uint32_t at) {
    const uint32_t rank = rank_of(tokens[at], tokens[next[at]]);
    if (rank == kNoRank) return;
    heap.push_back(uint64_t{rank} << 32 | at);
    std::push_heap(heap.begin(), heap.end(), kLowestFirst);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kLowestFirst);
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    const auto at = static_cast<uint32_t>(heap.back());
    heap.pop_back();
    const uint32_t right = next[at];
    if (tokens[at] < 0 || right == kNone || rank_of(tokens[at], tokens[right]) != rank) continue;  // out of date
    tokens[at] = merged_[rank];
    tokens[right] = -1;
    next[at] = next[right];
    if (next[at] != kNone) {
      previous[next[at]] = at;
      offer(at);
    }
    if (previous[at] != kNone) offer(previous[at]);
  }
  for (uint32_t at = 0; at != kNone; at = next[at]) ids.push_back(tokens[at]);
}

/// Appends the ids of a long piece, or nothing and false where only the whole piece tells.
///
/// Why windows are exact: tokens t1 .. tn are what BPE gives for their text if and only if it gives [ti, ti+1] for the
/// text of every two neighbours. (The merges inside a span happen in the order in which they happen when the span
/// stands alone, until one crosses its edge; so the first merge to cross the edge of ti and ti+1 in the whole text
/// would cross it in theirs.) Neighbours from one window satisfy this, and any part of a window's tokens does; what is
/// left to check is the two tokens at each seam.
bool Bpe::encode_in_windows(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  const size_t first = ids.size();
  const auto give_up = [&ids, first] {
    ids.resize(first);
    return false;
  };
  std::vector<int32_t> seam_ids;
  for (size_t begin = 0;;) {
    const std::string_view window = piece.substr(begin, kWindowBytes);
    const size_t seam = ids.size();
    encode_by_heap(window, scratch, ids);
    if (seam > first) {
      const uint32_t left_bytes = token_bytes_[static_cast<size_t>(ids[seam - 1])];
      const uint32_t right_bytes = token_bytes_[static_cast<size_t>(ids[seam])];
      seam_ids.clear();
      encode_by_heap(piece.substr(begin - left_bytes, left_bytes + right_bytes), scratch, seam_ids);
      if (seam_ids.size() != 2 || seam_ids[0] != ids[seam - 1] || seam_ids[1] != ids[seam]) return give_up();
    }
    if (begin + window.size() == piece.size()) return true;
    size_t kept_bytes = window.size();
    while (kept_bytes > kWindowBytes - kWindowOverlapBytes && ids.size() > seam) {
      kept_bytes -= token_bytes_[static_cast<size_t>(ids.back())];
      ids.pop_back();
    }
    if (ids.size() == seam) return give_up();
    begin += kept_bytes;
  }
}

}  // namespace deepinfer
