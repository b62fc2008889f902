#include "grammar/string_tokens.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "grammar/json_scan.h"
#include "grammar/mask_bits.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

int hex_value(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  const int letter = byte | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

}  // namespace

bool StringScan::step(uint8_t byte) {
  switch (mode_) {
    case Mode::kBetween:
      if (begin(byte)) return true;
      break;
    case Mode::kInside:
      if (byte < first_ || byte > last_) break;
      first_ = 0x80;
      last_ = 0xBF;
      if (--n_left_ == 0) mode_ = Mode::kBetween;
      return true;
    case Mode::kEscape:
      if (byte == 'u') {
        mode_ = Mode::kHex;
        n_left_ = 4;
        hex_ = 0;
        return true;
      }
      if (high_ || std::string_view("\"\\/bfnrt").find(static_cast<char>(byte)) == std::string_view::npos) break;
      mode_ = Mode::kBetween;
      return true;
    case Mode::kHex:
      if (hex(byte)) return true;
      break;
    case Mode::kClosed:
      return false;
    case Mode::kNever:
      break;
  }
  mode_ = Mode::kNever;
  return false;
}

bool StringScan::begin(uint8_t byte) {
  if (byte == '\\') {
    mode_ = Mode::kEscape;
    has_escape_ = true;
    if (!high_) ++n_chars_;
    return true;
  }
  if (high_) return false;
  if (byte == '"') {
    mode_ = Mode::kClosed;
    return true;
  }
  if (byte < 0x20 || (byte >= 0x80 && byte < 0xC2) || byte > 0xF4) return false;
  ++n_chars_;
  if (byte < 0x80) return true;
  mode_ = Mode::kInside;
  n_left_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  if (byte == 0xE0) first_ = 0xA0;
  if (byte == 0xED) last_ = 0x9F;
  if (byte == 0xF0) first_ = 0x90;
  if (byte == 0xF4) last_ = 0x8F;
  return true;
}

bool StringScan::hex(uint8_t byte) {
  if (hex_value(byte) < 0) return false;
  hex_ = static_cast<uint16_t>(hex_ << 4 | hex_value(byte));
  --n_left_;
  // The second half of a pair is DC00..DFFF and stands behind a first half only: two digits tell.
  if (high_ && n_left_ == 3 && hex_ != 0xD) return false;
  if (n_left_ == 2 && high_ != (hex_ >= 0xDC && hex_ <= 0xDF)) return false;
  if (n_left_ > 0) return true;
  mode_ = Mode::kBetween;
  high_ = !high_ && hex_ >= 0xD800 && hex_ <= 0xDBFF;
  return true;
}

std::vector<TrieNode> make_trie(std::span<const TrieEntry> entries) {
  std::vector<TrieNode> nodes(1, TrieNode{.token = -1, .next = 1, .closes = 0, .byte = 0, .depth = 0, .chars = 0});
  std::vector<uint32_t> path(1, 0);  // open nodes by depth
  std::vector<StringScan> scans(1);
  std::string_view before;
  for (const TrieEntry& entry : entries) {
    DI_DCHECK(entry.bytes.size() <= kTokenBytesMax);
    const size_t n_max = std::min(before.size(), entry.bytes.size());
    size_t n_common = 0;
    while (n_common < n_max && before[n_common] == entry.bytes[n_common]) ++n_common;
    for (size_t depth = path.size(); depth-- > n_common + 1;)
      nodes[path[depth]].next = static_cast<uint32_t>(nodes.size()) & 0x7FFFFFFF;
    path.resize(n_common + 1);
    scans.resize(n_common + 1);
    for (size_t i = n_common; i < entry.bytes.size(); ++i) {
      StringScan scan = scans.back();
      const bool was_closed = scan.closed();
      const auto byte = static_cast<uint8_t>(entry.bytes[i]);
      scan.step(byte);
      path.push_back(static_cast<uint32_t>(nodes.size()));
      scans.push_back(scan);
      nodes.push_back({.token = -1,
                       .next = 0,
                       .closes = scan.closed() && !was_closed,
                       .byte = byte,
                       .depth = static_cast<uint32_t>(i + 1) & 0xFFF,
                       .chars = static_cast<uint32_t>(scan.n_chars()) & 0xFFF});
    }
    TrieNode& end = nodes[path.back()];
    if (end.token < 0) end.token = entry.value;
    before = entry.bytes;
  }
  for (const uint32_t node : path) nodes[node].next = static_cast<uint32_t>(nodes.size()) & 0x7FFFFFFF;
  return nodes;
}

namespace {

struct Inside {
  int32_t token;
  int32_t n_chars;
};

/// A row per number of characters that some token has; in between the row before is the same.
void make_rows(std::vector<Inside> inside, int32_t n_head, StringTokens& out) {
  std::sort(inside.begin(), inside.end(), [](const Inside& a, const Inside& b) { return a.n_chars < b.n_chars; });
  std::vector<MaskWord> row(static_cast<size_t>(n_head + 63) / 64);
  out.rows.push_back(row);
  out.row_of.push_back(0);
  for (size_t i = 0; i < inside.size();) {
    const int32_t n_chars = inside[i].n_chars;
    while (static_cast<int32_t>(out.row_of.size()) < n_chars) out.row_of.push_back(out.row_of.back());
    for (; i < inside.size() && inside[i].n_chars == n_chars; ++i) set_bit(row, inside[i].token);
    out.row_of.push_back(static_cast<int32_t>(out.rows.size()));
    out.rows.push_back(row);
  }
}

struct Closer {
  TrieEntry entry;
  std::string_view suffix;
  int32_t n_chars;
  bool escaped;
};

void find_shape(std::string_view suffix, Closing& out) {
  JsonScan scan(JsonScan::Start::kBehindString);
  size_t n_read = 0;
  while (n_read < suffix.size() && scan.step(static_cast<uint8_t>(suffix[n_read]))) ++n_read;
  out.may_be_json = n_read == suffix.size();
  out.ends_member = scan.ended_member();
}

void make_closings(std::vector<Closer> closers, StringTokens& out) {
  std::sort(closers.begin(), closers.end(),
            [](const Closer& a, const Closer& b) { return a.entry.value < b.entry.value; });
  std::vector<std::string_view> suffixes;
  for (const Closer& closer : closers) suffixes.push_back(closer.suffix);
  std::sort(suffixes.begin(), suffixes.end());
  suffixes.erase(std::unique(suffixes.begin(), suffixes.end()), suffixes.end());

  const size_t n_words = (closers.size() + 63) / 64;
  out.n_closing_words = static_cast<int32_t>(n_words);
  out.plain.resize(n_words);
  out.all_closings.all.resize(n_words);
  out.json_closings.all.resize(n_words);
  out.of_suffix.resize(n_words * suffixes.size());
  std::vector<uint8_t> may_be_json(suffixes.size());
  for (const Closer& closer : closers) {
    const auto index = static_cast<int32_t>(out.closings.size());
    const auto suffix = std::lower_bound(suffixes.begin(), suffixes.end(), closer.suffix) - suffixes.begin();
    const auto n_bytes = static_cast<int32_t>(closer.suffix.size());
    Closing closing{.token = closer.entry.value,
                    .suffix = static_cast<int32_t>(suffix),
                    .n_chars = closer.n_chars,
                    .suffix_bytes = n_bytes,
                    .has_bracket = closer.suffix.find_first_of("}]") != std::string_view::npos,
                    .ends_member = false,
                    .may_be_json = false};
    find_shape(closer.suffix, closing);
    out.closings.push_back(closing);
    set_bit(out.all_closings.all, index);
    if (closing.may_be_json) set_bit(out.json_closings.all, index);
    may_be_json[static_cast<size_t>(suffix)] = closing.may_be_json ? 1 : 0;
    if (!closer.escaped) {
      const std::string_view text = closer.entry.bytes.substr(0, closer.entry.bytes.size() - closer.suffix.size() - 1);
      set_bit(out.plain, index);
      set_bit(out.all_closings.of_text.try_emplace(text, n_words).first->second, index);
      if (closing.may_be_json) set_bit(out.json_closings.of_text.try_emplace(text, n_words).first->second, index);
      out.text_bytes_max = std::max(out.text_bytes_max, text.size());
    }
    set_bit(std::span(out.of_suffix).subspan(static_cast<size_t>(suffix) * n_words), index);
    out.closing_chars_max = std::max(out.closing_chars_max, closer.n_chars);
    out.suffix_bytes_max = std::max(out.suffix_bytes_max, n_bytes);
  }
  std::vector<TrieEntry> entries, json_entries;
  for (size_t i = 0; i < suffixes.size(); ++i) {
    entries.push_back({suffixes[i], static_cast<int32_t>(i)});
    if (may_be_json[i] != 0) json_entries.push_back(entries.back());
  }
  out.all_closings.suffixes = make_trie(entries);
  out.json_closings.suffixes = make_trie(json_entries);
  out.chars_up_to.resize(n_words * static_cast<size_t>(out.closing_chars_max + 1));
  for (size_t i = 0; i < out.closings.size(); ++i)
    for (int32_t n = out.closings[i].n_chars; n <= out.closing_chars_max; ++n)
      set_bit(std::span(out.chars_up_to).subspan(static_cast<size_t>(n) * n_words), static_cast<int32_t>(i));

  std::vector<TrieEntry> escaped;
  for (size_t i = 0; i < closers.size(); ++i)
    if (closers[i].escaped) escaped.push_back({closers[i].entry.bytes, static_cast<int32_t>(i)});
  std::sort(escaped.begin(), escaped.end(), [](const TrieEntry& a, const TrieEntry& b) { return a.bytes < b.bytes; });
  out.escaped_trie = make_trie(escaped);
}

struct Decoded {
  std::string text;
  EscapedToken token;
  bool is_late = false;  // as of StringTokens::late_escapes
};

/// Up to the closing quote, if there is one. Precondition: inside a string RFC 8259 allows it.
Decoded decode(const TrieEntry& entry) {
  const std::string_view bytes = entry.bytes;
  Decoded out{.text = {},
              .token = {.token = entry.value,
                        .closes = false,
                        .is_needed = true,
                        .cut = EscapedToken::Cut::kNone,
                        .n_digits = 0,
                        .digits = 0}};
  uint32_t high = 0;  // the first half of a pair, if that was the last character
  for (size_t i = 0; i < bytes.size() && !out.token.closes; ++i) {
    if (bytes[i] == '"') {
      out.token.closes = true;
    } else if (bytes[i] != '\\') {
      out.text += bytes[i];
    }
    if (bytes[i] != '\\') continue;
    const bool is_behind = !out.text.empty() || high != 0;
    if (++i == bytes.size()) {
      out.token.cut = EscapedToken::Cut::kBackslash;
      break;
    }
    if (bytes[i] != 'u') {
      constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      out.text += kMeant[kLetters.find(bytes[i])];
      out.token.is_needed = out.token.is_needed && bytes[i] != '/';
      out.is_late = out.is_late || (is_behind && bytes[i] == '/');
      continue;
    }
    uint32_t digits = 0;
    uint8_t n_digits = 0;
    for (; n_digits < 4 && i + 1 < bytes.size(); ++n_digits)
      digits = digits << 4 | static_cast<uint32_t>(hex_value(static_cast<uint8_t>(bytes[++i])));
    if (n_digits < 4) {
      out.token.cut = EscapedToken::Cut::kDigits;
      out.is_late = out.is_late || is_behind;
      out.token.n_digits = n_digits;
      out.token.digits = static_cast<uint16_t>(digits);
      break;
    }
    if (high == 0 && digits >= 0xD800 && digits <= 0xDBFF) {
      high = digits;
      out.is_late = out.is_late || is_behind;
      continue;
    }
    if (high != 0) digits = 0x10000 + ((high - 0xD800) << 10) + (digits - 0xDC00);
    high = 0;
    append_utf8(digits, out.text);
    out.token.is_needed = out.token.is_needed && digits < 0x20;
    out.is_late = out.is_late || (is_behind && digits >= 0x20);
  }
  if (high != 0) out.token.cut = EscapedToken::Cut::kPair;
  return out;
}

void find_escaped_texts(std::vector<Decoded> decoded, StringTokens& out) {
  std::stable_sort(decoded.begin(), decoded.end(), [](const Decoded& a, const Decoded& b) { return a.text < b.text; });
  std::vector<TrieEntry> entries;
  for (const Decoded& one : decoded) {
    if (entries.empty() || entries.back().bytes != one.text) {
      entries.push_back({one.text, static_cast<int32_t>(entries.size())});
      out.escaped_from.push_back(static_cast<uint32_t>(out.escaped_tokens.size()));
    }
    out.escaped_tokens.push_back(one.token);
  }
  out.escaped_from.push_back(static_cast<uint32_t>(out.escaped_tokens.size()));
  out.escaped_texts = make_trie(entries);
}

template <class T>
int64_t bytes_of(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T));
}

}  // namespace

StringTokens find_string_tokens(std::span<const TrieEntry> entries, std::span<const int32_t> same_as, int32_t n_head) {
  StringTokens out;
  std::vector<Inside> inside;
  std::vector<TrieEntry> rest, escapes;
  std::vector<Closer> closers;
  std::vector<Decoded> decoded;
  for (const TrieEntry& entry : entries) {
    StringScan scan;
    size_t n_read = 0;
    while (n_read < entry.bytes.size() && scan.step(static_cast<uint8_t>(entry.bytes[n_read]))) ++n_read;
    if (scan.dead()) continue;
    if (scan.closed()) {
      closers.push_back({entry, entry.bytes.substr(n_read), scan.n_chars(), scan.has_escape()});
      if (scan.has_escape()) decoded.push_back(decode(entry));
      continue;
    }
    if (scan.has_escape() || !scan.between()) rest.push_back(entry);
    if (scan.has_escape()) {
      escapes.push_back(entry);
      decoded.push_back(decode(entry));
    }
    for (int32_t token = entry.value; token >= 0; token = same_as.empty() ? -1 : same_as[static_cast<size_t>(token)])
      inside.push_back({token, scan.n_chars()});
  }
  make_rows(std::move(inside), n_head, out);
  out.rest = make_trie(rest);
  out.escapes = make_trie(escapes);
  make_closings(std::move(closers), out);
  for (Decoded& one : decoded) {
    if (!one.token.closes) continue;
    const auto closing = std::lower_bound(out.closings.begin(), out.closings.end(), one.token.token,
                                          [](const Closing& c, int32_t token) { return c.token < token; });
    one.token.token = static_cast<int32_t>(closing - out.closings.begin());
  }
  for (const Decoded& one : decoded)
    if (one.is_late) (one.token.closes ? out.late_closings : out.late_escapes).push_back(one.token.token);
  find_escaped_texts(std::move(decoded), out);
  return out;
}

int64_t StringTokens::n_bytes() const {
  int64_t n = 0;
  for (const auto& row : rows) n += bytes_of(row);
  for (const ClosingTables* tables : {&all_closings, &json_closings}) {
    for (const auto& [text, set] : tables->of_text) n += 64 + bytes_of(set);
    n += bytes_of(tables->all) + bytes_of(tables->suffixes);
  }
  return n + bytes_of(row_of) + bytes_of(rest) + bytes_of(escapes) + bytes_of(closings) + bytes_of(escaped_trie) +
         bytes_of(plain) + bytes_of(chars_up_to) + bytes_of(of_suffix) + bytes_of(escaped_texts) +
         bytes_of(escaped_from) + bytes_of(escaped_tokens) + bytes_of(late_escapes) + bytes_of(late_closings);
}

}  // namespace deepinfer::grammar
