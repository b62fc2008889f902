// SchemaMachine inside strings: values and names of members are matched decoded, byte by byte of their UTF-8.
#include <algorithm>
#include <bit>

#include "grammar/schema_machine_impl.h"
#include "grammar/schema_unique.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kLastControl = 0x1F;  // up to here characters need an escape, and the quote and the backslash
constexpr uint32_t kFirstHigh = 0xD800, kFirstLow = 0xDC00, kLastLow = 0xDFFF, kFirstPaired = 0x10000;

/// What may still follow of a character behind its first byte; -1: no first byte.
int32_t bytes_behind(uint8_t lead) {
  if (lead < 0x80) return 0;
  if (lead < 0xC2 || lead > 0xF4) return -1;
  return lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
}

int32_t hex_value(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

bool intersects(const CharSet& set, uint32_t first, uint32_t last) {
  const auto& ranges = set.ranges();
  const auto found = std::lower_bound(ranges.begin(), ranges.end(), first,
                                      [](const CharRange& range, uint32_t c) { return range.last < c; });
  return found != ranges.end() && found->first <= last;
}

}  // namespace

// ---- one byte of text ----

State SchemaMachine::string_byte(const Place& p, uint8_t byte, uint32_t capture) {
  Place next = p;
  next.capture = capture;
  if (p.aux == 0 && byte == '"') return p.min_left > 0 ? kDead : end_string(p, capture);
  if (p.aux == 0 && byte == '\\') {
    if (p.max_left == 0 || !escape_possible(p, false)) return kDead;
    next.phase = Phase::kStringEscape;
    return intern(next);
  }
  if (byte < 0x20) return kDead;
  return feed(next, byte) ? intern(next) : kDead;
}

State SchemaMachine::key_byte(const Place& p, uint8_t byte, uint32_t capture) {
  if (p.aux == 0 && byte == '"') return end_key(p, capture);
  Place next = p;
  next.capture = capture;
  if (p.aux == 0 && byte == '\\') {
    if (!escape_possible(p, false)) return kDead;
    next.phase = Phase::kKeyEscape;
    return intern(next);
  }
  if (byte < 0x20) return kDead;
  return feed(next, byte) ? intern(next) : kDead;
}

bool SchemaMachine::feed(Place& p, uint8_t byte) {
  return count(p, byte) && (p.phase == Phase::kString ? feed_string(p, byte) : feed_key(p, byte));
}

/// Counts bytes of characters and characters. False: no character begins so, or one is too many.
bool SchemaMachine::count(Place& p, uint8_t byte) {
  if (p.aux != 0) {
    --p.aux;
    return true;
  }
  const int32_t n_behind = bytes_behind(byte);
  if (n_behind < 0 || (p.phase == Phase::kString && p.max_left == 0)) return false;
  p.aux = static_cast<uint32_t>(n_behind);
  if (p.phase == Phase::kString) {
    if (p.min_left > 0) --p.min_left;
    if (p.max_left > 0) --p.max_left;
  }
  return true;
}

/// Moves over the raw bytes at the start that stay inside the string. How many they are; nothing: no text goes on like that.
std::optional<size_t> SchemaMachine::feed_raw(Place& p, std::string_view bytes) {
  size_t n = 0;
  const auto is_raw = [](char c) { return static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\'; };
  while (n < bytes.size() && is_raw(bytes[n])) ++n;
  bytes = bytes.substr(0, n);
  const auto words = texts_.at(p.text);
  const bool captures = frames_.captures(p.frame);
  const bool is_free_name = p.phase == Phase::kKey && words[0] == kFree && words.size() == 2 && p.min_left == 0;
  if (((p.phase == Phase::kString && words.size() == 1) || is_free_name) && !captures) {
    Lang lang = words.back();
    for (const char c : bytes) {
      if (!count(p, static_cast<uint8_t>(c))) return std::nullopt;
    }
    lang = languages_->next(lang, bytes);
    if (lang == kNothing) return std::nullopt;
    if (lang != words.back()) p.text = is_free_name ? texts_.intern({kFree, lang}) : texts_.intern({lang});
    return n;
  }
  if (p.phase == Phase::kKey && words[0] == kNamed && words.size() == 5 && !captures) {
    NameRange range{words[1], words[2], words[3], words[4]};
    const NameSet& set = *frames_.names(p.frame);
    size_t i = 0;
    for (; i < n && narrow(set, range, static_cast<uint8_t>(bytes[i])); ++i) {
      if (!count(p, static_cast<uint8_t>(bytes[i]))) return std::nullopt;
    }
    if (i > 0) p.text = texts_.intern({kNamed, range.first, range.last, range.n_read, range.others});
    bytes.remove_prefix(i);
  }
  for (const char c : bytes) {
    if (!feed(p, static_cast<uint8_t>(c))) return std::nullopt;
    if (captures) p.capture = extended(p.capture, static_cast<uint8_t>(c));
  }
  return n;
}

/// Goes on to the names that have this byte next. False, and nothing changes: none has, or neither one of them nor any other
/// may come.
bool SchemaMachine::narrow(const NameSet& set, NameRange& range, uint8_t byte) {
  const auto& names = set.table->names;
  const auto byte_at = [&](uint32_t name) {
    return names[name].size() > range.n_read ? static_cast<int32_t>(static_cast<uint8_t>(names[name][range.n_read]))
                                             : -1;
  };
  uint32_t first = range.first;
  for (uint32_t width = range.last - first; width > 0;) {  // the first name with a byte not below
    const uint32_t half = width / 2;
    if (byte_at(first + half) < byte) {
      first += half + 1;
      width -= half + 1;
    } else {
      width = half;
    }
  }
  uint32_t last = first;
  for (uint32_t width = range.last - first; width > 0;) {  // the first name with a byte above
    const uint32_t half = width / 2;
    if (byte_at(last + half) <= byte) {
      last += half + 1;
      width -= half + 1;
    } else {
      width = half;
    }
  }
  if (first == last) return false;
  const Lang others = range.others == kNothing ? kNothing : languages_->next(range.others, byte);
  if (others == kNothing && !set.offers_any(first, last)) return false;
  range = {first, last, range.n_read + 1, others};
  return true;
}

bool SchemaMachine::feed_string(Place& p, uint8_t byte) {
  const auto langs = texts_.at(p.text);
  if (langs.size() == 1) {
    const Lang next = languages_->next(langs[0], byte);
    if (next != langs[0]) p.text = texts_.intern({next});
    return next != kNothing;
  }
  std::vector<uint32_t> next;
  for (const uint32_t lang : langs) next.push_back(languages_->next(lang, byte));
  p.text = texts_.intern(next);
  return next[0] != kNothing;
}

bool SchemaMachine::feed_key(Place& p, uint8_t byte) {
  const auto words = texts_.at(p.text);
  const bool named = words[0] == kNamed;
  const size_t at_others = named ? 4 : 1;
  uint32_t small[16];
  std::vector<uint32_t> large;
  uint32_t* next = small;
  if (words.size() > std::size(small)) {
    large.resize(words.size());
    next = large.data();
  }
  std::copy(words.begin(), words.end(), next);
  next[at_others] = languages_->next(words[at_others], byte);
  for (size_t i = at_others + 1; i < words.size(); ++i) {
    next[i] = next[at_others] == kNothing ? kNothing : languages_->next(words[i], byte);
  }
  if (!named) {
    if (next[1] == kNothing) return false;
    if (p.min_left != 0) p.min_left = static_cast<int32_t>(extended(static_cast<uint32_t>(p.min_left), byte));
    p.text = texts_.intern(std::span<const uint32_t>(next, words.size()));
    return true;
  }
  const NameSet& set = *frames_.names(p.frame);
  NameRange range{words[1], words[2], words[3], words[4]};
  if (narrow(set, range, byte)) {
    next[1] = range.first;
    next[2] = range.last;
    next[3] = range.n_read;
    p.text = texts_.intern(std::span<const uint32_t>(next, words.size()));
    return true;
  }
  if (next[4] == kNothing) return false;
  if (set.remember) {
    uint32_t chain = kStartOfName;
    for (uint32_t i = 0; i < words[3]; ++i)
      chain = extended(chain, static_cast<uint8_t>(set.table->names[words[1]][i]));
    p.min_left = static_cast<int32_t>(extended(chain, byte));
  }
  next[3] = kFree;
  p.text = texts_.intern(std::span<const uint32_t>(next + 3, words.size() - 3));
  return true;
}

// ---- begin and end ----

State SchemaMachine::end_string(const Place& p, uint32_t capture) {
  const auto langs = texts_.at(p.text);
  if (!languages_->accepts_empty(langs[0])) return kDead;
  std::vector<uint8_t> truth;
  truth_of(wants_.scalar(want_at(p.frame), ValueKind::kString), langs, truth);
  return end_value(p.frame, truth, capture);
}

State SchemaMachine::begin_key(const Place& p, uint32_t capture) {
  const NameSet* set = frames_.names(p.frame);
  if (set == nullptr) return kDead;
  std::vector<uint32_t> words{kNamed, 0, static_cast<uint32_t>(set->table->names.size()), 0, set->others};
  Place next;
  if (words[2] == 0) {
    words = {kFree, set->others};
    if (set->remember) next.min_left = kStartOfName;
  }
  if (!set->one_class && set->others != kNothing) {
    words.insert(words.end(), set->table->patterns.begin(), set->table->patterns.end());
  }
  next.phase = Phase::kKey;
  next.frame = p.frame;
  next.text = texts_.intern(words);
  next.capture = capture;
  return intern(next);
}

std::string SchemaMachine::key_text(const Place& p) const {
  const auto words = texts_.at(p.text);
  if (words[0] == kFree) return chain_text(kStartOfName, static_cast<uint32_t>(p.min_left));
  // The names of a table stay where they are; the frame's set was made when the key began.
  const MemberTable& table = *const_cast<Frames&>(frames_).names(p.frame)->table;
  return std::string(table.names[words[1]].substr(0, words[3]));
}

State SchemaMachine::end_key(const Place& p, uint32_t capture) {
  const auto words = texts_.at(p.text);
  Place next;
  next.phase = Phase::kAfterKey;
  next.capture = capture;
  const NameSet& set = *frames_.names(p.frame);
  if (!is_other_name(p)) {
    next.frame = frames_.begin_member(p.frame, words[1], 0);
    return next.frame == kNoFrame ? kDead : intern(next);
  }
  const size_t at_others = words[0] == kNamed ? 4 : 1;
  if (!languages_->accepts_empty(words[at_others])) return kDead;
  const std::vector<uint32_t> patterns = matched_patterns(p, set);
  const uint32_t name = set.remember ? wants_.strings.intern(key_text(p)) : kForgotten;
  next.frame = frames_.begin_member(p.frame, frames_.class_of_others(p.frame, patterns), name);
  return next.frame == kNoFrame ? kDead : intern(next);
}

/// A name that ends here is none of the table's.
bool SchemaMachine::is_other_name(const Place& p) const {
  const auto words = texts_.at(p.text);
  return words[0] != kNamed || const_cast<Frames&>(frames_).names(p.frame)->table->names[words[1]].size() != words[3];
}

/// Of a name that ends here and is none of the table's.
std::vector<uint32_t> SchemaMachine::matched_patterns(const Place& p, const NameSet& set) const {
  const auto words = texts_.at(p.text);
  std::vector<uint32_t> patterns;
  if (set.one_class) patterns = set.patterns;
  const size_t at_others = words[0] == kNamed ? 4 : 1;
  for (size_t i = at_others + 1; i < words.size(); ++i) {
    if (languages_->accepts_empty(words[i])) patterns.push_back(static_cast<uint32_t>(i - at_others - 1));
  }
  return patterns;
}

State SchemaMachine::after_text(State from, std::string_view text, Reach& reach) {
  reach = {};
  if (from == kDead) return kDead;
  Place p = place(from);
  const std::optional<size_t> n_raw = feed_raw(p, text);
  if (!n_raw || *n_raw < text.size() || p.aux != 0 || !failure().empty()) return kDead;
  uint32_t capture = 0;
  if (frames_.compares_items(p.frame)) {
    capture = extended(p.capture, '"');
  } else if (frames_.captures(p.frame)) {
    capture = kUnknownText;  // seen when what it is in ends
    reach.brackets = false;
  }
  State after = kDead;
  if (p.phase == Phase::kString) {
    after = p.min_left > 0 ? kDead : end_string(p, capture);
  } else {
    after = frames_.captures(p.frame) ? end_key(p, capture) : after_name(p, reach);
  }
  return failure().empty() ? after : kDead;
}

/// Behind the name that ends here.
State SchemaMachine::after_name(const Place& p, Reach& reach) {
  const auto words = texts_.at(p.text);
  const NameSet& set = *frames_.names(p.frame);
  reach.values = false;
  if (!is_other_name(p)) return before_member(p.frame, words[1], 0);
  if (!languages_->accepts_empty(words[words[0] == kNamed ? 4 : 1])) return kDead;
  if (set.remember) {
    // Which name it was will not be seen before another one ends.
    if (frames_.lists(frames_.list(p.frame), wants_.strings.intern(key_text(p)))) return kDead;
    reach.n_bytes = has_one_text(set.others) ? 2 : 4;
  }
  return after_other_name(p.frame, set, matched_patterns(p, set));
}

// ---- escapes ----

State SchemaMachine::escape_byte(const Place& p, uint8_t byte, uint32_t capture) {
  Place next = p;
  next.capture = capture;
  if (p.aux == kBackslash) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t i = kLetters.find(static_cast<char>(byte)); i != std::string_view::npos) {
      if (byte == '/' && only_needed_escapes(p)) return kDead;
      return feed_character(next, static_cast<uint8_t>(kMeant[i]));
    }
    if (byte != 'u' || !escape_possible(p, true)) return kDead;
    next.aux = kDigits;
    return intern(next);
  }
  if (p.aux == kSecondBackslash || p.aux == kSecondU) {
    if (byte != (p.aux == kSecondBackslash ? '\\' : 'u')) return kDead;
    ++next.aux;
    return intern(next);
  }
  const int32_t digit = hex_value(byte);
  return digit < 0 ? kDead : hex_digit(next, static_cast<uint32_t>(digit));
}

State SchemaMachine::hex_digit(Place p, uint32_t digit) {
  // bits: the digits so far in the lower 16; the first half's 10 bits above.
  const bool second = p.aux >= kSecondDigits;
  const uint32_t n_digits = p.aux - (second ? kSecondDigits : kDigits) + 1;
  const uint32_t value = (p.bits & 0xFFFF) << 4 | digit;
  const uint32_t n_open = 4 * (4 - n_digits);
  const uint32_t first = value << n_open;
  uint32_t last = first + (1u << n_open) - 1;
  if (second) {
    const uint32_t base = kFirstPaired + ((p.bits >> 16) << 10);
    if (last < kFirstLow || first > kLastLow) return kDead;
    const uint32_t low_first = std::max(first, kFirstLow), low_last = std::min(last, kLastLow);
    if (!intersects(p, base + low_first - kFirstLow, base + low_last - kFirstLow)) return kDead;
    if (n_digits == 4) return feed_character(p, base + value - kFirstLow);
  } else {
    if (only_needed_escapes(p)) last = std::min(last, kLastControl);
    if (first > last) return kDead;
    const uint32_t high_first = std::max(first, kFirstHigh), high_last = std::min(last, kFirstLow - 1);
    const bool paired = high_first <= high_last && intersects(p, kFirstPaired + ((high_first - kFirstHigh) << 10),
                                                              kFirstPaired + ((high_last - kFirstHigh) << 10) + 0x3FF);
    if (!paired && !intersects(p, first, last)) return kDead;  // sets hold no surrogates
    if (n_digits == 4) {
      if (!paired) return feed_character(p, value);
      p.aux = kSecondBackslash;
      p.bits = (value - kFirstHigh) << 16;
      return intern(p);
    }
  }
  ++p.aux;
  p.bits = (p.bits & ~0xFFFFu) | value;
  return intern(p);
}

State SchemaMachine::feed_character(Place p, uint32_t code_point) {
  p.phase = p.phase == Phase::kStringEscape ? Phase::kString : Phase::kKey;
  p.aux = 0;
  p.bits = 0;
  std::string bytes;
  append_utf8(code_point, bytes);
  for (const char c : bytes) {
    if (!feed(p, static_cast<uint8_t>(c))) return kDead;
  }
  return intern(p);
}

/// Characters that could stand for themselves are not escaped here.
bool SchemaMachine::only_needed_escapes(const Place& p) const {
  if (options_.escapes == Escapes::kAny) return false;
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kString || p.phase == Phase::kStringEscape) return words[0] != kAnyText;
  return words[0] == kNamed || words[1] != kAnyText;
}

/// Whether some character may follow as an escape; `by_code`: as \u with digits.
bool SchemaMachine::escape_possible(const Place& p, bool by_code) {
  if (!only_needed_escapes(p)) return intersects(p, 0, 0x10FFFF);
  if (intersects(p, 0, kLastControl)) return true;
  return !by_code && (intersects(p, '"', '"') || intersects(p, '\\', '\\'));
}

bool SchemaMachine::intersects(const Place& p, uint32_t first, uint32_t last) {
  constexpr uint32_t kLastAscii = 0x7F, kLast = 0x10FFFF;
  // Their first bytes say it all: the sets of characters that may follow take long to make.
  if (last <= kLastAscii) return begins_with(p, first, last);
  if (first == 0 && last == kLast) return begins_with(p, 0, 0xFF);
  const CharSet* set = next_characters(p);
  if (set != nullptr) return grammar::intersects(*set, first, last);
  return first < kFirstHigh || last > kLastLow;  // more than surrogates
}

/// Some character may follow that begins with a byte in [first, last].
bool SchemaMachine::begins_with(const Place& p, uint32_t first, uint32_t last) {
  const auto words = texts_.at(p.text);
  const bool in_string = p.phase == Phase::kString || p.phase == Phase::kStringEscape;
  const bool named = !in_string && words[0] == kNamed;
  const Lang lang = in_string ? words[0] : named ? words[4] : words[1];
  if (lang == kAnyText) return true;
  for (uint32_t byte = first; byte <= last && lang != kNothing; ++byte) {
    if (languages_->next(lang, static_cast<uint8_t>(byte)) != kNothing) return true;
  }
  if (!named) return false;
  const NameSet& set = *frames_.names(p.frame);
  for (uint32_t name = words[1]; name < words[2]; ++name) {
    const std::string_view text = set.table->names[name];
    if (!set.offers(name) || text.size() <= words[3]) continue;
    const auto byte = static_cast<uint8_t>(text[words[3]]);
    if (first <= byte && byte <= last) return true;
  }
  return false;
}

const CharSet* SchemaMachine::next_characters(const Place& p) {
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kString || p.phase == Phase::kStringEscape) {
    return words[0] == kAnyText ? nullptr : &characters_of(words[0]);
  }
  const Lang others = words[0] == kNamed ? words[4] : words[1];
  if (others == kAnyText) return nullptr;
  const CharSet& of_others = characters_of(others);
  if (words[0] == kFree) return &of_others;
  const NameSet& set = *frames_.names(p.frame);
  std::vector<CharRange> ranges = of_others.ranges();
  for (uint32_t name = words[1]; name < words[2]; ++name) {
    const std::string_view text = set.table->names[name];
    if (!set.offers(name) || text.size() <= words[3]) continue;
    const CodePoint c = decode_utf8(text.data() + words[3]);
    ranges.push_back({static_cast<uint32_t>(c.value), static_cast<uint32_t>(c.value)});
  }
  key_characters_ = CharSet::of(std::move(ranges));
  return &key_characters_;
}

const CharSet& SchemaMachine::characters_of(Lang lang) {
  if (const auto found = characters_.find(lang); found != characters_.end()) return found->second;
  std::vector<CharRange> ranges;
  if (lang != kNothing) {
    for (uint32_t byte = 0; byte < 0xF5; ++byte) {
      const int32_t n_behind = bytes_behind(static_cast<uint8_t>(byte));
      if (n_behind < 0) continue;
      const Lang next = languages_->next(lang, static_cast<uint8_t>(byte));
      if (next == kNothing) continue;
      const uint32_t prefix = n_behind == 0 ? byte : byte & (0x3Fu >> n_behind);
      add_below(next, prefix, n_behind, ranges);
    }
  }
  n_bytes_ += static_cast<int64_t>(ranges.size() * sizeof(CharRange));
  return characters_.emplace(lang, CharSet::of(std::move(ranges))).first->second;
}

/// Appends prefix * 64^n_left + each value of continuations(lang, n_left).
void SchemaMachine::add_below(Lang lang, uint32_t prefix, int32_t n_left, std::vector<CharRange>& out) {
  const uint32_t base = prefix << (6 * n_left);
  const auto add = [&](CharRange range) {
    if (!out.empty() && out.back().last + 1 == range.first) {
      out.back().last = range.last;
    } else {
      out.push_back(range);
    }
  };
  if (n_left == 0) return add({base, base});
  for (const CharRange& range : continuations(lang, n_left)) add({base + range.first, base + range.last});
}

const std::vector<CharRange>& SchemaMachine::continuations(Lang lang, int32_t n_left) {
  const uint64_t key = uint64_t{lang} << 2 | static_cast<uint32_t>(n_left);
  if (const auto found = continuations_.find(key); found != continuations_.end()) return found->second;
  std::vector<CharRange> ranges;
  for (uint32_t byte = 0x80; byte < 0xC0; ++byte) {  // at most three levels
    const Lang next = languages_->next(lang, static_cast<uint8_t>(byte));
    if (next != kNothing) add_below(next, byte & 0x3F, n_left - 1, ranges);
  }
  n_bytes_ += static_cast<int64_t>(ranges.size() * sizeof(CharRange)) + 64;
  return continuations_.emplace(key, std::move(ranges)).first->second;
}

}  // namespace deepinfer::grammar
