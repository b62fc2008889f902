// Where every byte of cached KV lies: the one place that knows. Writers and readers of all backends address values and
// scales through these helpers only (spec 6 and 15.14: two opinions about this give fluent, wrong output).
// Plain structs without ownership, so that a device kernel can use them as they are.
#pragma once

#include <cstdint>
#include <vector>

namespace deepinfer::kv {

/// Tokens of global KV in one block, the unit of paging.
inline constexpr int32_t kBlockTokens = 256;

/// Bytes of one stored row or entry.
constexpr int64_t window_row_bytes(int32_t head_dim) { return head_dim + head_dim / 32; }  // E4M3 + E8M0 per 32
constexpr int64_t compressed_entry_bytes(int32_t head_dim) { return head_dim / 2 + head_dim / 16; }  // E2M1 + E4M3/16
constexpr int64_t index_entry_bytes(int32_t index_dim) { return index_dim / 2 + index_dim / 32; }    // E2M1 + E8M0/32

/// The planes of one KV source inside a block: all values of the block's entries, then all their scales; the same for
/// the index keys. Offsets are bytes from the start of the block.
struct SourceLayout {
  int32_t ratio = 1;                // tokens per entry
  int32_t head_dim = 0;             // D
  int32_t index_dim = 0;            // Di
  int32_t entries_per_block = 0;    // kBlockTokens / ratio
  int64_t values_offset = 0;        // [entries, D/2] E2M1 pairs
  int64_t value_scales_offset = 0;  // [entries, D/16] E4M3
  int64_t index_offset = 0;         // [entries, Di/2] E2M1 pairs
  int64_t index_scales_offset = 0;  // [entries, Di/32] E8M0
};

/// A block holds kBlockTokens tokens of every KV source layer.
struct BlockLayout {
  std::vector<SourceLayout> sources;  // in the order of kv_source_layer_ids
  int64_t block_bytes = 0;            // multiple of 64
};

/// `ratios`: one a KV source layer, each 1 or 2.
BlockLayout make_block_layout(const std::vector<int32_t>& ratios, int32_t head_dim, int32_t index_dim);

/// One stored vector: packed values and their scales.
struct PackedRow {
  uint8_t* values;
  uint8_t* scales;
};

/// Global KV of one source layer for all sequences. Entry j of a slot lies in block block_table[slot][j / per block].
struct GlobalView {
  uint8_t* pool = nullptr;  // [n_blocks, block_bytes]
  int64_t block_bytes = 0;
  const int32_t* block_table = nullptr;  // [n_slots, blocks_per_slot] block ids
  int32_t blocks_per_slot = 0;
  SourceLayout layout;

  [[nodiscard]] uint8_t* block_of(int32_t slot, int32_t entry) const {
    const int64_t row = static_cast<int64_t>(slot) * blocks_per_slot + entry / layout.entries_per_block;
    return pool + block_table[row] * block_bytes;
  }
  /// Compressed KV of entry: E2M1 [D/2], E4M3 scales [D/16].
  [[nodiscard]] PackedRow value(int32_t slot, int32_t entry) const {
    uint8_t* block = block_of(slot, entry);
    const int64_t i = entry % layout.entries_per_block;
    return {block + layout.values_offset + i * (layout.head_dim / 2),
            block + layout.value_scales_offset + i * (layout.head_dim / 16)};
  }
  /// Index key of entry: E2M1 [Di/2], E8M0 scales [Di/32].
  [[nodiscard]] PackedRow index_key(int32_t slot, int32_t entry) const {
    uint8_t* block = block_of(slot, entry);
    const int64_t i = entry % layout.entries_per_block;
    return {block + layout.index_offset + i * (layout.index_dim / 2),
            block + layout.index_scales_offset + i * (layout.index_dim / 32)};
  }
};

/// Dense packed window rows, [n_rows, D + D/32]: what a step produces.
struct WindowRows {
  uint8_t* base = nullptr;
  int32_t head_dim = 0;

  [[nodiscard]] PackedRow row(int64_t i) const {
    uint8_t* start = base + i * window_row_bytes(head_dim);
    return {start, start + head_dim};
  }
};

/// Window KV of one layer for all slots: a ring of `n_rows` rows a slot, position p in row p mod n_rows.
struct RingView {
  uint8_t* base = nullptr;  // [n_slots, n_rows, D + D/32]
  int32_t n_rows = 0;
  int32_t head_dim = 0;

  [[nodiscard]] PackedRow row(int32_t slot, int32_t position) const {
    const int64_t i = static_cast<int64_t>(slot) * n_rows + position % n_rows;
    return WindowRows{base, head_dim}.row(i);
  }
};

/// Open groups of a ratio-2 compressor: fp32 c and z of recent tokens, [n_slots, n_rows, 2, D], row position mod
/// n_rows.
struct TailView {
  float* base = nullptr;
  int32_t n_rows = 0;
  int32_t head_dim = 0;

  [[nodiscard]] float* c(int32_t slot, int32_t position) const {
    return base + (static_cast<int64_t>(slot) * n_rows + position % n_rows) * 2 * head_dim;
  }
  [[nodiscard]] float* z(int32_t slot, int32_t position) const { return c(slot, position) + head_dim; }
};

}  // namespace deepinfer::kv
