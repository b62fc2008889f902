#include "grammar/tuple_table.h"

#include <algorithm>

namespace deepinfer::grammar {
namespace {

constexpr size_t kChunkWordsMax = 1 << 14;

uint32_t hash_of(std::span<const uint32_t> words) {
  uint64_t h = 0x243F6A8885A308D3ull ^ words.size();
  for (const uint32_t w : words) {
    h = (h ^ w) * 0x9E3779B97F4A7C15ull;
    h ^= h >> 29;
  }
  return static_cast<uint32_t>(h ^ h >> 32);
}

}  // namespace

uint32_t TupleTable::intern(std::span<const uint32_t> words) {
  if ((entries_.size() + 1) * 2 > slots_.size()) grow_slots();
  const uint32_t hash = hash_of(words);
  size_t i = hash & (slots_.size() - 1);
  for (; slots_[i] != 0; i = (i + 1) & (slots_.size() - 1)) {
    const Entry& entry = entries_[slots_[i] - 1];
    if (entry.hash == hash && entry.n_words == words.size() && std::equal(words.begin(), words.end(), entry.words)) {
      return slots_[i] - 1;
    }
  }
  uint32_t* copy = room_for(words.size());
  std::copy(words.begin(), words.end(), copy);
  entries_.push_back({copy, static_cast<uint32_t>(words.size()), hash});
  n_bytes_ += static_cast<int64_t>(sizeof(Entry));
  slots_[i] = static_cast<uint32_t>(entries_.size());
  return static_cast<uint32_t>(entries_.size() - 1);
}

uint32_t* TupleTable::room_for(size_t n_words) {
  if (n_words > chunk_left_) {
    chunk_words_ = std::min(chunk_words_ * 2, kChunkWordsMax);
    const size_t n = std::max(n_words, chunk_words_);
    chunks_.push_back(std::make_unique<uint32_t[]>(n));
    chunk_at_ = chunks_.back().get();
    chunk_left_ = n;
    n_bytes_ += static_cast<int64_t>(n * sizeof(uint32_t));
  }
  uint32_t* room = chunk_at_;
  chunk_at_ += n_words;
  chunk_left_ -= n_words;
  return room;
}

void TupleTable::grow_slots() {
  const size_t n = slots_.empty() ? 32 : slots_.size() * 2;
  n_bytes_ += static_cast<int64_t>((n - slots_.size()) * sizeof(uint32_t));
  slots_.assign(n, 0);
  for (size_t e = 0; e < entries_.size(); ++e) {
    size_t i = entries_[e].hash & (n - 1);
    while (slots_[i] != 0) i = (i + 1) & (n - 1);
    slots_[i] = static_cast<uint32_t>(e + 1);
  }
}

void StepTable::put(uint32_t state, uint8_t byte, uint32_t value) {
  if ((n_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2, Slot{0, 0});
    old.swap(slots_);
    for (const Slot& s : old) {
      if (s.key == 0) continue;
      size_t i = slot_of(s.key);
      while (slots_[i].key != 0) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = s;
    }
  }
  const uint64_t key = key_of(state, byte);
  size_t i = slot_of(key);
  while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  if (slots_[i].key == 0) ++n_;
  slots_[i] = {key, value};
}

}  // namespace deepinfer::grammar
