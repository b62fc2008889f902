#include "tokenizer/pre_tokenizer.h"

#include <array>

#include "text/unicode.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

// Flags of this file beside CharFlag.
constexpr uint16_t kCharNewline = 64;  // CR and LF
constexpr uint16_t kCharCjk = 128;     // class of the second split
constexpr uint16_t kCharStop = 256;    // end of the segment, never set together with another
constexpr uint16_t kWord = kCharLetter | kCharMark;
constexpr uint16_t kSign = kCharPunctuation | kCharSymbol;

uint16_t flags_of(char32_t c) {
  uint16_t flags = char_flags(c);
  if (c == '\r' || c == '\n') flags |= kCharNewline;
  if ((c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF)) flags |= kCharCjk;
  return flags;
}

constexpr bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Char {
  uint16_t flags;
  uint32_t n_bytes;  // 0 at a stop
};

/// Cuts one text. A segment is what lies between two cuts of the first two splits; the third split works inside it and
/// sees its end as the end of the text. Numbers and CJK runs stop a segment of other text; a CJK run is one itself.
class Splitter {
 public:
  Splitter(std::string_view text, std::vector<uint32_t>& ends)
      : text_begin_(text.data()), end_(text.data() + text.size()), ends_(ends), ascii_flags_(ascii_flags().data()) {}

  void run() {
    const char* const text_end = end_;
    for (const char* p = text_begin_; p != text_end;) {
      stops_ = 0;
      const Char c = peek(p);
      if ((c.flags & kCharNumber) != 0) {
        p = emit(up_to_three_numbers(p));
      } else if ((c.flags & kCharCjk) != 0) {
        end_ = skip(p, kCharCjk);
        p = split_words(p);
        end_ = text_end;
      } else {
        stops_ = kCharNumber | kCharCjk;
        p = split_words(p);
      }
    }
  }

 private:
  Char peek(const char* p) const {
    if (p == end_) return {kCharStop, 0};
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) [[likely]] {
      const uint16_t flags = ascii_flags_[byte];
      return (flags & stops_) != 0 ? Char{kCharStop, 0} : Char{flags, 1};
    }
    const CodePoint c = decode_utf8(p);
    const uint16_t flags = flags_of(c.value);
    return (flags & stops_) != 0 ? Char{kCharStop, 0} : Char{flags, c.n_bytes};
  }

  const char* skip(const char* p, uint16_t wanted) const {
    for (Char c = peek(p); (c.flags & wanted) != 0; c = peek(p)) p += c.n_bytes;
    return p;
  }

  const char* emit(const char* piece_end) {
    ends_.push_back(static_cast<uint32_t>(piece_end - text_begin_));
    return piece_end;
  }

  const char* up_to_three_numbers(const char* p) const {
    for (int i = 0; i < 3; ++i) {
      const Char c = peek(p);
      if ((c.flags & kCharNumber) == 0) break;
      p += c.n_bytes;
    }
    return p;
  }

  /// The third split from `p` to the end of the segment: matches are pieces, and so is what lies between two matches.
  const char* split_words(const char* p) {
    const char* gap = p;
    while (true) {
      const Char c = peek(p);
      const char* const match_end = c.n_bytes == 0 ? p : match(p, c);
      if (match_end == p && c.n_bytes != 0) {  // no match starts here
        p += c.n_bytes;
        continue;
      }
      if (gap != p) emit(p);
      if (c.n_bytes == 0) return p;
      gap = p = emit(match_end);
    }
  }

  /// End of the match that starts at `p` with character `c`, alternatives in the order of kSplitWords; `p` if none.
  const char* match(const char* p, Char c) const {
    const char* const next = p + c.n_bytes;
    if ((c.flags & kSign) != 0) {
      if (c.n_bytes == 1 && next != end_ && is_ascii_letter(*next)) return ascii_letters_end(next);
      return signs_end(p);
    }
    if ((c.flags & kWord) != 0) return skip(next, kWord);
    if ((c.flags & kCharNewline) == 0) {
      const Char second = peek(next);
      if ((second.flags & kWord) != 0) return skip(next + second.n_bytes, kWord);
      if (*p == ' ' && (second.flags & kSign) != 0) return signs_end(next);
    }
    return (c.flags & kCharSpace) != 0 ? spaces_end(p) : p;
  }

  const char* ascii_letters_end(const char* p) const {
    while (p != end_ && is_ascii_letter(*p)) ++p;
    return p;
  }

  const char* signs_end(const char* p) const { return skip(skip(p, kSign), kCharNewline); }

  /// `\s*[\r\n]+`, else `\s+(?!\S)`, else `\s+`: up to the last line end of the run; or all of it at the end of the
  /// segment; or all but the last character, which belongs to what follows; or that character when it is alone.
  const char* spaces_end(const char* p) const {
    const char* last = p;
    const char* line_end = nullptr;
    const char* q = p;
    Char c = peek(q);
    for (; (c.flags & kCharSpace) != 0; c = peek(q)) {
      last = q;
      q += c.n_bytes;
      if ((c.flags & kCharNewline) != 0) line_end = q;
    }
    if (line_end != nullptr) return line_end;
    return c.n_bytes == 0 || last == p ? q : last;
  }

  static const std::array<uint16_t, 128>& ascii_flags() {
    static const std::array<uint16_t, 128> table = [] {
      std::array<uint16_t, 128> flags{};
      for (char32_t c = 0; c < 128; ++c) flags[c] = flags_of(c);
      return flags;
    }();
    return table;
  }

  const char* const text_begin_;
  const char* end_;  // of the text, or of the CJK run
  uint16_t stops_ = 0;
  std::vector<uint32_t>& ends_;
  const uint16_t* const ascii_flags_;
};

}  // namespace

void split_pieces(std::string_view text, std::vector<uint32_t>& ends) {
  ends.clear();
  Splitter(text, ends).run();
}

}  // namespace deepinfer
