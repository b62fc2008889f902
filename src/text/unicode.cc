#include "text/unicode.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

using unicode_tables::FoldRange;

constexpr uint8_t kControlSpace = static_cast<uint8_t>(Category::kCo) + 1;  // Cc with White_Space, in the table only

constexpr uint16_t kFlagsOfCategory[] = {
    0,  // Cn
    kCharLetter,
    kCharLetter,
    kCharLetter,
    kCharLetter,  // Lu Ll Lt Lm
    kCharLetter,  // Lo
    kCharMark,
    kCharMark,
    kCharMark,  // Mn Mc Me
    kCharNumber,
    kCharNumber,
    kCharNumber,  // Nd Nl No
    kCharPunctuation,
    kCharPunctuation,
    kCharPunctuation,
    kCharPunctuation,  // Pc Pd Ps Pe
    kCharPunctuation,
    kCharPunctuation,
    kCharPunctuation,  // Pi Pf Po
    kCharSymbol,
    kCharSymbol,
    kCharSymbol,
    kCharSymbol,  // Sm Sc Sk So
    kCharSpace,
    kCharSpace,
    kCharSpace,  // Zs Zl Zp
    0,
    0,
    0,
    0,
    kCharSpace  // Cc Cf Cs Co, Cc with White_Space
};
static_assert(std::size(kFlagsOfCategory) == kControlSpace + 1);

uint8_t table_value(char32_t code_point) {
  DI_DCHECK(code_point < 0x110000);
  constexpr int kShift = unicode_tables::kCategoryBlockShift;
  const uint32_t block = unicode_tables::kCategoryBlockOf[code_point >> kShift];
  const uint32_t within = code_point & ((1U << kShift) - 1);
  return static_cast<uint8_t>(unicode_tables::kCategoryBlocks[(block << kShift) + within] -
                              unicode_tables::kCategoryFirstLetter);
}

// Hangul syllables decompose by rule (Unicode Standard, section 3.12).
constexpr char32_t kSyllableFirst = 0xAC00;
constexpr char32_t kSyllableCount = 11172;

void append_jamo(char32_t syllable, std::string& out) {
  constexpr char32_t kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7, kVowelCount = 21, kTailCount = 28;
  const char32_t index = syllable - kSyllableFirst;
  append_utf8(kLead + index / (kVowelCount * kTailCount), out);
  append_utf8(kVowel + index / kTailCount % kVowelCount, out);
  if (index % kTailCount != 0) append_utf8(kTail + index % kTailCount, out);
}

const FoldRange* find_fold(char32_t code_point) {
  const FoldRange* ranges = unicode_tables::kFoldRanges;
  const FoldRange* after = std::upper_bound(ranges, ranges + unicode_tables::kNumFoldRanges, code_point,
                                            [](char32_t cp, const FoldRange& range) { return cp < range.first; });
  if (after == ranges) return nullptr;
  const FoldRange* range = after - 1;
  const uint32_t distance = code_point - range->first;
  return distance < range->span && distance % range->step == 0 ? range : nullptr;
}

}  // namespace

Category category(char32_t code_point) {
  const uint8_t value = table_value(code_point);
  return value == kControlSpace ? Category::kCc : static_cast<Category>(value);
}

uint16_t char_flags(char32_t code_point) { return kFlagsOfCategory[table_value(code_point)]; }

void append_folded(char32_t code_point, std::string& out) {
  if (code_point - kSyllableFirst < kSyllableCount) return append_jamo(code_point, out);
  const FoldRange* range = find_fold(code_point);
  if (range == nullptr) return append_utf8(code_point, out);
  if (range->n_to == 1) return append_utf8(range->to + (code_point - range->first), out);
  for (uint32_t i = 0; i < range->n_to; ++i) append_utf8(unicode_tables::kFoldPool[range->to + i], out);
}

}  // namespace deepinfer
