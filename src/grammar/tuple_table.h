// Sequences of words by number: equal sequences get equal numbers, so that whole structures compare as one word.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace deepinfer::grammar {

/// Numbers count from 0 in the order of first sight. Not thread-safe. Nothing is ever removed.
class TupleTable {
 public:
  /// Cost     a hash of the words and one probe, mostly; fresh sequences are copied
  uint32_t intern(std::span<const uint32_t> words);
  uint32_t intern(std::initializer_list<uint32_t> words) {
    return intern(std::span<const uint32_t>(words.begin(), words.size()));
  }
  /// Stays valid as long as the table.
  [[nodiscard]] std::span<const uint32_t> at(uint32_t id) const { return {entries_[id].words, entries_[id].n_words}; }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }

 private:
  struct Entry {
    const uint32_t* words;
    uint32_t n_words, hash;
  };

  uint32_t* room_for(size_t n_words);
  void grow_slots();

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // number + 1, 0: free; a power of two, at most half full
  std::vector<std::unique_ptr<uint32_t[]>> chunks_;
  size_t chunk_left_ = 0, chunk_words_ = 64;
  uint32_t* chunk_at_ = nullptr;
  int64_t n_bytes_ = 0;
};

/// (state, byte) -> state, remembered: open addressing, growing.
class StepTable {
 public:
  /// nullptr: never put.
  [[nodiscard]] const uint32_t* find(uint32_t state, uint8_t byte) const {
    if (slots_.empty()) return nullptr;
    const uint64_t key = key_of(state, byte);
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == 0) return nullptr;
    }
  }
  void put(uint32_t state, uint8_t byte, uint32_t value);
  [[nodiscard]] int64_t n_bytes() const { return static_cast<int64_t>(slots_.size() * sizeof(Slot)); }

 private:
  struct Slot {
    uint64_t key;  // 0: free
    uint32_t value;
  };
  static uint64_t key_of(uint32_t state, uint8_t byte) { return (uint64_t{state} << 8 | byte) + 1; }
  [[nodiscard]] size_t slot_of(uint64_t key) const {
    return static_cast<size_t>(key * 0x9E3779B97F4A7C15ull >> 20) & (slots_.size() - 1);
  }

  std::vector<Slot> slots_;
  size_t n_ = 0;
};

}  // namespace deepinfer::grammar
