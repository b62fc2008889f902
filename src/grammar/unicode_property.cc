// The properties that \p{..} knows: general categories and scripts of Unicode 16.0, and those few binary properties
// that are exact from them. ECMA-262 matches names letter by letter, so no loose spelling is taken.
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/script_tables.h"
#include "text/unicode.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kNumCodePoints = 0x110000;
constexpr int kNumCategories = static_cast<int>(Category::kCo) + 1;

constexpr uint32_t bit(Category category) { return 1U << static_cast<int>(category); }

using enum Category;
constexpr uint32_t kCased = bit(kLu) | bit(kLl) | bit(kLt);
constexpr uint32_t kLetters = kCased | bit(kLm) | bit(kLo);
constexpr uint32_t kMarks = bit(kMn) | bit(kMc) | bit(kMe);
constexpr uint32_t kNumbers = bit(kNd) | bit(kNl) | bit(kNo);
constexpr uint32_t kPunctuation = bit(kPc) | bit(kPd) | bit(kPs) | bit(kPe) | bit(kPi) | bit(kPf) | bit(kPo);
constexpr uint32_t kSymbols = bit(kSm) | bit(kSc) | bit(kSk) | bit(kSo);
constexpr uint32_t kSeparators = bit(kZs) | bit(kZl) | bit(kZp);
constexpr uint32_t kOthers = bit(kCn) | bit(kCc) | bit(kCf) | bit(kCs) | bit(kCo);

struct CategoryName {
  std::string_view long_name, short_name;
  uint32_t categories;
};

constexpr CategoryName kCategoryNames[] = {
    {"Cased_Letter", "LC", kCased},
    {"Close_Punctuation", "Pe", bit(kPe)},
    {"Connector_Punctuation", "Pc", bit(kPc)},
    {"Control", "Cc", bit(kCc)},
    {"cntrl", "Cc", bit(kCc)},
    {"Currency_Symbol", "Sc", bit(kSc)},
    {"Dash_Punctuation", "Pd", bit(kPd)},
    {"Decimal_Number", "Nd", bit(kNd)},
    {"digit", "Nd", bit(kNd)},
    {"Enclosing_Mark", "Me", bit(kMe)},
    {"Final_Punctuation", "Pf", bit(kPf)},
    {"Format", "Cf", bit(kCf)},
    {"Initial_Punctuation", "Pi", bit(kPi)},
    {"Letter", "L", kLetters},
    {"Letter_Number", "Nl", bit(kNl)},
    {"Line_Separator", "Zl", bit(kZl)},
    {"Lowercase_Letter", "Ll", bit(kLl)},
    {"Mark", "M", kMarks},
    {"Combining_Mark", "M", kMarks},
    {"Math_Symbol", "Sm", bit(kSm)},
    {"Modifier_Letter", "Lm", bit(kLm)},
    {"Modifier_Symbol", "Sk", bit(kSk)},
    {"Nonspacing_Mark", "Mn", bit(kMn)},
    {"Number", "N", kNumbers},
    {"Open_Punctuation", "Ps", bit(kPs)},
    {"Other", "C", kOthers},
    {"Other_Letter", "Lo", bit(kLo)},
    {"Other_Number", "No", bit(kNo)},
    {"Other_Punctuation", "Po", bit(kPo)},
    {"Other_Symbol", "So", bit(kSo)},
    {"Paragraph_Separator", "Zp", bit(kZp)},
    {"Private_Use", "Co", bit(kCo)},
    {"Punctuation", "P", kPunctuation},
    {"punct", "P", kPunctuation},
    {"Separator", "Z", kSeparators},
    {"Space_Separator", "Zs", bit(kZs)},
    {"Spacing_Mark", "Mc", bit(kMc)},
    {"Surrogate", "Cs", bit(kCs)},
    {"Symbol", "S", kSymbols},
    {"Titlecase_Letter", "Lt", bit(kLt)},
    {"Unassigned", "Cn", bit(kCn)},
    {"Uppercase_Letter", "Lu", bit(kLu)},
};

using Properties = std::map<std::string, CharSet, std::less<>>;

/// Adds code point c to ranges that ascend.
void append(std::vector<CharRange>& ranges, uint32_t c) {
  if (!ranges.empty() && ranges.back().last + 1 == c) {
    ranges.back().last = c;
  } else {
    ranges.push_back({c, c});
  }
}

void add_categories(Properties& properties) {
  std::array<std::vector<CharRange>, kNumCategories> of_category;
  std::vector<CharRange> spaces;
  // Behind the last ideographs assigned and apart from the tags, runs of 256 code points are alike if their ends are (the
  // test looks at each).
  constexpr uint32_t kRun = 256, kAlikeFrom = 0x32400, kTagsFrom = 0xE0000, kTagsEnd = 0xE0200;
  for (uint32_t c = 0; c < kNumCodePoints; c += kRun) {
    std::vector<CharRange>& of_first = of_category[static_cast<size_t>(category(c))];
    if (c >= kAlikeFrom && (c < kTagsFrom || c >= kTagsEnd) && category(c) == category(c + kRun - 1)) {
      if (!of_first.empty() && of_first.back().last + 1 == c) {
        of_first.back().last = c + kRun - 1;
      } else {
        of_first.push_back({c, c + kRun - 1});
      }
      continue;
    }
    for (uint32_t i = c; i < c + kRun; ++i) append(of_category[static_cast<size_t>(category(i))], i);
  }
  constexpr uint32_t kLastSpace = 0x3000;
  for (uint32_t c = 0; c <= kLastSpace; ++c) {
    if ((char_flags(c) & kCharSpace) != 0) append(spaces, c);
  }
  for (const CategoryName& name : kCategoryNames) {
    std::vector<CharRange> ranges;
    for (size_t i = 0; i < kNumCategories; ++i) {
      if ((name.categories >> i & 1) != 0) ranges.insert(ranges.end(), of_category[i].begin(), of_category[i].end());
    }
    const CharSet set = CharSet::of(std::move(ranges));
    for (const std::string_view spelling : {name.long_name, name.short_name}) {
      for (const std::string_view key : {"", "gc=", "General_Category="}) {
        properties.insert_or_assign(std::string(key).append(spelling), set);
      }
    }
  }
  properties["Assigned"] = properties["Cn"].others();
  properties["White_Space"] = CharSet::of(spaces);
  properties["space"] = properties["White_Space"];
}

void add_scripts(Properties& properties) {
  std::array<std::vector<CharRange>, kNumScripts> of_script;
  for (const ScriptRange& range : kScriptRanges) of_script[range.script].push_back({range.first, range.last});
  CharSet known;
  std::vector<CharRange> all;
  const auto add = [&properties](std::string_view name, const CharSet& set) {
    for (const std::string_view key : {"sc=", "Script="}) {
      properties.insert_or_assign(std::string(key).append(name), set);
    }
  };
  for (size_t i = 0; i < kNumScripts; ++i) {
    all.insert(all.end(), of_script[i].begin(), of_script[i].end());
    const CharSet set = CharSet::of(std::move(of_script[i]));
    add(kScriptNames[i].long_name, set);
    add(kScriptNames[i].short_name, set);
  }
  const CharSet unknown = CharSet::of(std::move(all)).others();
  add("Unknown", unknown);
  add("Zzzz", unknown);
  // Second short names of the Unicode Standard.
  add("Qaac", properties["sc=Copt"]);
  add("Qaai", properties["sc=Zinh"]);
}

Properties all_properties() {
  Properties properties;
  add_categories(properties);
  add_scripts(properties);
  properties["Any"] = CharSet::all();
  properties["ASCII"] = CharSet::of({{0, 0x7F}});
  properties["ASCII_Hex_Digit"] = CharSet::of({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
  properties["AHex"] = properties["ASCII_Hex_Digit"];
  properties["Hex_Digit"] =
      properties["AHex"].united(CharSet::of({{0xFF10, 0xFF19}, {0xFF21, 0xFF26}, {0xFF41, 0xFF46}}));
  properties["Hex"] = properties["Hex_Digit"];
  properties["Regional_Indicator"] = CharSet::of({{0x1F1E6, 0x1F1FF}});
  properties["RI"] = properties["Regional_Indicator"];
  return properties;
}

}  // namespace

const CharSet* unicode_property(std::string_view name) {
  // A few milliseconds once per process, and only where a pattern has \p{..}.
  static const Properties kProperties = all_properties();
  const auto found = kProperties.find(name);
  return found == kProperties.end() ? nullptr : &found->second;
}

}  // namespace deepinfer::grammar
