// A hash table from numbers to numbers in one array, for look-ups on the mask path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deepinfer::grammar {

/// uint32_t -> uint32_t, no removal. The key 2^32 - 1 is not allowed.
class FlatMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// kNone: not there.
  [[nodiscard]] uint32_t find(uint32_t key) const {
    if (slots_.empty()) return kNone;
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].value;
      if (slots_[i].key == kNone) return kNone;
    }
  }
  /// nullptr: not there. Valid until the next insert().
  [[nodiscard]] uint32_t* find_slot(uint32_t key) {
    if (slots_.empty()) return nullptr;
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kNone) return nullptr;
    }
  }
  /// Precondition: not there yet
  void insert(uint32_t key, uint32_t value) {
    if (2 * (n_ + 1) > slots_.size()) grow();
    put(key, value);
    ++n_;
  }
  /// Keeps the memory of a small table.
  void clear() {
    if (slots_.size() > kSlotsKept) {
      slots_ = {};
    } else if (n_ > 0) {
      slots_.assign(slots_.size(), Slot{});
    }
    n_ = 0;
  }
  [[nodiscard]] int64_t n_bytes() const { return static_cast<int64_t>(slots_.capacity() * sizeof(Slot)); }

 private:
  static constexpr size_t kSlotsKept = 64;
  struct Slot {
    uint32_t key = kNone, value = kNone;
  };
  [[nodiscard]] size_t slot_of(uint32_t key) const {
    return static_cast<size_t>((key * uint64_t{0x9E3779B97F4A7C15}) >> 32) & (slots_.size() - 1);
  }
  void put(uint32_t key, uint32_t value) {
    size_t i = slot_of(key);
    while (slots_[i].key != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, value};
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kNone) put(slot.key, slot.value);
  }
  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t n_ = 0;
};

}  // namespace deepinfer::grammar
