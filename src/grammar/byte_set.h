// Sets of bytes and the states between the bytes of a UTF-8 character.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace deepinfer::grammar {

struct ByteSet {
  std::array<uint64_t, 4> words{};

  static constexpr ByteSet range(int first, int last) {
    ByteSet set;
    for (int b = first; b <= last; ++b) set.add(static_cast<uint8_t>(b));
    return set;
  }
  constexpr void add(uint8_t b) { words[b >> 6] |= uint64_t{1} << (b & 63); }
  [[nodiscard]] constexpr bool contains(uint8_t b) const { return (words[b >> 6] >> (b & 63) & 1) != 0; }
  [[nodiscard]] constexpr bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  [[nodiscard]] constexpr bool is_one() const { return !empty() && first() == last(); }
  /// Precondition of both: not empty.
  [[nodiscard]] constexpr uint8_t first() const {
    int i = 0;
    while (words[i] == 0) ++i;
    return static_cast<uint8_t>(i * 64 + std::countr_zero(words[i]));
  }
  [[nodiscard]] constexpr uint8_t last() const {
    int i = 3;
    while (words[i] == 0) --i;
    return static_cast<uint8_t>(i * 64 + 63 - std::countl_zero(words[i]));
  }
  constexpr ByteSet operator|(const ByteSet& o) const {
    return {{words[0] | o.words[0], words[1] | o.words[1], words[2] | o.words[2], words[3] | o.words[3]}};
  }
  constexpr ByteSet operator&(const ByteSet& o) const {
    return {{words[0] & o.words[0], words[1] & o.words[1], words[2] & o.words[2], words[3] & o.words[3]}};
  }
  constexpr ByteSet without(const ByteSet& o) const {
    return {{words[0] & ~o.words[0], words[1] & ~o.words[1], words[2] & ~o.words[2], words[3] & ~o.words[3]}};
  }
  constexpr bool operator==(const ByteSet& o) const {  // no call of memcmp: sets are searched for
    return ((words[0] ^ o.words[0]) | (words[1] ^ o.words[1]) | (words[2] ^ o.words[2]) | (words[3] ^ o.words[3])) == 0;
  }
};

/// What the next bytes of a well-formed text may be. 0: between characters; 1 to 3: that many continuation bytes;
/// the others: the same, but the next one is limited (table 3-7 of the Unicode Standard).
using Utf8State = uint8_t;
inline constexpr Utf8State kBetween = 0, kOneLeft = 1, kTwoLeft = 2, kThreeLeft = 3;
inline constexpr Utf8State kAfterE0 = 4, kAfterED = 5, kAfterF0 = 6, kAfterF4 = 7;
inline constexpr int kNumUtf8States = 8;
inline constexpr Utf8State kIllFormed = 15;

constexpr Utf8State next_utf8_state(Utf8State state, uint8_t b) {
  const auto in = [b](int first, int last) { return first <= b && b <= last; };
  switch (state) {
    case kBetween:
      if (b < 0x80) return kBetween;
      if (in(0xC2, 0xDF)) return kOneLeft;
      if (b == 0xE0) return kAfterE0;
      if (b == 0xED) return kAfterED;
      if (in(0xE1, 0xEF)) return kTwoLeft;
      if (b == 0xF0) return kAfterF0;
      if (in(0xF1, 0xF3)) return kThreeLeft;
      return b == 0xF4 ? kAfterF4 : kIllFormed;
    case kOneLeft:
      return in(0x80, 0xBF) ? kBetween : kIllFormed;
    case kTwoLeft:
      return in(0x80, 0xBF) ? kOneLeft : kIllFormed;
    case kThreeLeft:
      return in(0x80, 0xBF) ? kTwoLeft : kIllFormed;
    case kAfterE0:
      return in(0xA0, 0xBF) ? kOneLeft : kIllFormed;
    case kAfterED:
      return in(0x80, 0x9F) ? kOneLeft : kIllFormed;
    case kAfterF0:
      return in(0x90, 0xBF) ? kTwoLeft : kIllFormed;
    case kAfterF4:
      return in(0x80, 0x8F) ? kTwoLeft : kIllFormed;
    default:
      return kIllFormed;
  }
}

/// For each state where every text of a language leads, four bits each; kIllFormed where that is not one state.
using Utf8Map = uint32_t;
inline constexpr Utf8Map kNoUtf8Map = 0xFFFFFFFF;
inline constexpr Utf8Map kUtf8Identity = 0x76543210;

constexpr Utf8State leads_to(Utf8Map map, Utf8State from) { return map >> (4 * from) & 15; }
constexpr Utf8Map utf8_entry(Utf8State from, Utf8State to) {
  return (kNoUtf8Map & ~(15U << (4 * from))) | static_cast<uint32_t>(to) << (4 * from);
}
/// First one, then the other.
constexpr Utf8Map utf8_then(Utf8Map first, Utf8Map second) {
  Utf8Map result = 0;
  for (int s = kNumUtf8States - 1; s >= 0; --s) {
    const Utf8State middle = leads_to(first, static_cast<Utf8State>(s));
    result = result << 4 | (middle == kIllFormed ? kIllFormed : leads_to(second, middle));
  }
  return result;
}
/// Both agree.
constexpr Utf8Map utf8_both(Utf8Map x, Utf8Map y) {
  uint32_t differing = x ^ y;
  differing |= differing >> 2 & 0x33333333;
  differing |= differing >> 1 & 0x11111111;
  return x | (differing & 0x11111111) * 15;
}
/// What either knows: of two unequal states the one that is none is dropped.
constexpr Utf8Map utf8_either(Utf8Map x, Utf8Map y) {
  Utf8Map result = 0;
  for (int s = kNumUtf8States - 1; s >= 0; --s) {
    const Utf8State of_x = leads_to(x, static_cast<Utf8State>(s));
    result = result << 4 | (of_x == kIllFormed ? leads_to(y, static_cast<Utf8State>(s)) : of_x);
  }
  return result;
}

/// The map of one byte of the set. Precondition: not empty.
constexpr Utf8Map utf8_map_of(const ByteSet& set) {
  const uint8_t first = set.first();
  const uint8_t last = set.last();
  Utf8Map map = kNoUtf8Map;
  const auto put = [&map](Utf8State from, Utf8State to) {
    map = (map & ~(15U << (4 * from))) | uint32_t{to} << (4 * from);
  };
  if (last < 0x80) return utf8_entry(kBetween, kBetween);
  if (first >= 0xC2) {
    const Utf8State to = next_utf8_state(kBetween, first);
    if (to != next_utf8_state(kBetween, last)) return kNoUtf8Map;
    if (to == kTwoLeft && set.contains(0xED)) return kNoUtf8Map;
    put(kBetween, to);
    return map;
  }
  if (first < 0x80 || last > 0xBF) return kNoUtf8Map;
  put(kOneLeft, kBetween);
  put(kTwoLeft, kOneLeft);
  put(kThreeLeft, kTwoLeft);
  if (first >= 0xA0) put(kAfterE0, kOneLeft);
  if (last <= 0x9F) put(kAfterED, kOneLeft);
  if (first >= 0x90) put(kAfterF0, kTwoLeft);
  if (last <= 0x8F) put(kAfterF4, kTwoLeft);
  return map;
}

}  // namespace deepinfer::grammar
