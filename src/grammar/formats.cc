#include "grammar/formats.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/regex.h"

namespace deepinfer::grammar {
namespace {

using std::string;

Lang language_of(Languages& languages, const string& pattern) {
  const Result<Lang> found = parse_regex(languages, pattern, Match::kWhole);
  return found.ok() ? *found : kNothing;  // our own patterns are right: out of fuel or memory
}

/// Short words to put languages together with.
struct Builder {
  Languages& languages;

  [[nodiscard]] Lang re(const string& pattern) const { return language_of(languages, pattern); }
  [[nodiscard]] Lang join(std::initializer_list<Lang> parts) const {
    return languages.concat({parts.begin(), parts.size()});
  }
  [[nodiscard]] Lang either(std::initializer_list<Lang> parts) const {
    return languages.any_of({parts.begin(), parts.size()});
  }
  [[nodiscard]] Lang many(Lang part) const { return languages.repeat(part, 0, -1); }
  [[nodiscard]] Lang some(Lang part) const { return languages.repeat(part, 1, -1); }
  [[nodiscard]] Lang maybe(Lang part) const { return languages.repeat(part, 0, 1); }
  [[nodiscard]] Lang times(Lang part, int32_t min, int32_t max) const { return languages.repeat(part, min, max); }
};

// -- dates and times (RFC 3339)

const char* const kDate =
    "(?:[1-9]\\d{3}|0[1-9]\\d\\d|00[1-9]\\d|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:"
    "0[1-9]|[12]\\d|30)|"
    "02-(?:0[1-9]|1\\d|2[0-8]))|"
    "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29";
const char* const kTime = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";

/// hh:mm:60 with a zone in which it is 23:59 UTC: the two offsets that fit follow from hh:mm.
class LeapSecond : public Languages::Automaton {
 public:
  [[nodiscard]] int32_t next(int32_t state, uint8_t byte) const override {
    const int32_t digit = byte >= '0' && byte <= '9' ? byte - '0' : -1;
    if (state == kDone) return -1;
    if (state >= kMinute) return after_minute(state, byte, digit);
    if (state >= kMinuteTens) return digit < 0 ? -1 : kMinute + ((state - kMinuteTens) * 10 + digit) * kSteps;
    if (state >= kColon) {
      return digit < 0 || digit > 5 ? -1 : kMinuteTens + (state - kColon) * 6 + digit;
    }
    if (state >= kHour) return byte == ':' ? kColon + (state - kHour) : -1;
    if (state >= kHourTens) {
      const int32_t hour = (state - kHourTens) * 10 + digit;
      return digit < 0 || hour > 23 ? -1 : kHour + hour;
    }
    return digit < 0 || digit > 2 ? -1 : kHourTens + digit;
  }
  [[nodiscard]] bool accepts(int32_t state) const override { return state == kDone; }
  [[nodiscard]] int64_t shortest(int32_t state) const override {
    if (state == kDone) return 0;
    if (state >= kMinute) {
      const int32_t step = (state - kMinute) % kSteps;
      const int64_t zone = (state - kMinute) / kSteps == kLast ? 1 : 6;
      if (step >= kMinus) return kMinus + 5 - step;
      if (step >= kPlus) return kPlus + 5 - step;
      if (step == kFraction) return zone;
      return step == kPoint ? 1 + zone : kSecond - step + zone;
    }
    if (state >= kMinuteTens) return state == kColon - 1 + 24 + 24 * 6 ? 5 : 10;  // 23:5
    if (state >= kColon) return state == kColon + 23 ? 6 : 11;
    if (state >= kHour) return state == kHour + 23 ? 7 : 12;
    if (state >= kHourTens) return state == kHourTens + 2 ? 8 : 13;
    return 9;
  }
  [[nodiscard]] std::string_view alphabet() const override { return "0123456789:.Zz+-"; }
  [[nodiscard]] std::string_view name() const override { return "leap second"; }

 private:
  static constexpr int32_t kDone = 1, kHourTens = 2, kHour = 5, kColon = kHour + 24, kMinuteTens = kColon + 24;
  static constexpr int32_t kMinute = kMinuteTens + 24 * 6;
  static constexpr int32_t kSecond = 3, kPoint = 4, kFraction = 5, kPlus = 6, kMinus = 11, kSteps = 16;
  static constexpr int32_t kDay = 24 * 60, kLast = kDay - 1;  // minutes

  static int32_t after_minute(int32_t state, uint8_t byte, int32_t digit) {
    const int32_t minute = (state - kMinute) / kSteps;
    const int32_t step = (state - kMinute) % kSteps;
    if (step < kSecond) return byte == ":60"[step] ? state + 1 : -1;
    if (step == kPoint) return digit < 0 ? -1 : state + 1;
    if (step >= kPlus) {
      const bool plus = step < kMinus;
      const int32_t offset = plus ? (minute + 1) % kDay : kLast - minute;
      const int32_t at = step - (plus ? kPlus : kMinus);
      const std::array<int32_t, 5> text = {offset / 600, offset / 60 % 10, ':' - '0', offset % 60 / 10, offset % 10};
      if (byte != '0' + text[static_cast<size_t>(at)]) return -1;
      return at == 4 ? kDone : state + 1;
    }
    const int32_t start = state - step;
    if (step == kFraction && digit >= 0) return state;
    if (step == kSecond && byte == '.') return start + kPoint;
    if (byte == '+') return start + kPlus;
    if (byte == '-') return start + kMinus;
    return (byte == 'Z' || byte == 'z') && minute == kLast ? kDone : -1;
  }
};

Lang time_language(Languages& languages) {
  const Lang both[] = {language_of(languages, kTime), languages.automaton(std::make_shared<LeapSecond>())};
  return languages.any_of(both);
}

Lang date_time_language(Languages& languages) {
  const Lang parts[] = {language_of(languages, kDate), language_of(languages, "[Tt]"), time_language(languages)};
  return languages.concat(parts);
}

const char* const kDuration =
    "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+"
    "S))?|"
    "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";

// -- addresses

const char* const kUuid = "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}";
const char* const kLabel = "[A-Za-z\\d](?:[A-Za-z\\d-]{0,61}[A-Za-z\\d])?";

Lang ipv4(const Builder& b) {
  const Lang byte = b.re("25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d");
  return b.join({byte, b.times(b.join({b.re("\\."), byte}), 3, 3)});
}

Lang ipv6(const Builder& b) {
  const Lang word = b.re("[\\da-fA-F]{1,4}");
  const Lang colon = b.re(":");
  const Lang word_colon = b.join({word, colon});
  const Lang last = b.either({b.join({word, colon, word}), ipv4(b)});
  Lang result = b.join({b.times(word_colon, 6, 6), last});
  for (int32_t n_before = 0; n_before <= 7; ++n_before) {  // words in front of ::, at most
    const Lang before = n_before == 0 ? kEmptyText : b.maybe(b.join({b.times(word_colon, 0, n_before - 1), word}));
    const int32_t n_behind = 5 - n_before;
    Lang behind = n_behind == -1 ? word : kEmptyText;
    if (n_behind >= 0) behind = b.join({b.times(word_colon, n_behind, n_behind), last});
    result = b.either({result, b.join({before, b.re("::"), behind})});
  }
  return result;
}

Lang hostname(const Builder& b) {
  const Lang label = b.languages.except(b.re(kLabel), b.re("[Xx][Nn]--[^]*"));
  const Lang name = b.join({label, b.many(b.join({b.re("\\."), label}))});
  const Lang both[] = {name, b.re("[!-~]{1,253}")};
  return b.languages.all_of(both);
}

Lang email(const Builder& b) {
  const Lang dot = b.re("\\.");
  const Lang atom = b.re("[A-Za-z\\d!#$%&'*+/=?^_`{|}~-]+");
  const Lang label = b.re(kLabel);
  const Lang user = b.either({b.join({atom, b.many(b.join({dot, atom}))}), b.re("\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\"")});
  const Lang name = b.join({label, b.many(b.join({dot, label}))});
  const Lang ip = b.either({ipv4(b), b.join({b.re("[Ii][Pp][Vv]6:"), ipv6(b)})});
  return b.join({user, b.re("@"), b.either({name, b.join({b.re("\\["), ip, b.re("\\]")})})});
}

// -- identifiers (RFC 3986, RFC 3987, RFC 6570)

const char* const kUcsChars =
    "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\\u{30000}-\\u{3FFFD}"
    "\\u{40000}-\\u{4FFFD}\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}"
    "\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}\\u{D0000}-\\u{DFFFD}"
    "\\u{E1000}-\\u{EFFFD}";
const char* const kPrivateChars = "\\uE000-\\uF8FF\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
const char* const kPercent = "%[\\da-fA-F]{2}";

/// `beyond`: ranges outside ASCII that names may hold. `reference`: the scheme may be left out.
Lang identifier(const Builder& b, const string& beyond, const string& beyond_in_query, bool reference) {
  const string plain = "A-Za-z\\d._~!$&'()*+,;=" + beyond;
  const Lang percent = b.re(kPercent);
  const auto chars = [&b, percent](const string& set) { return b.either({b.re("[" + set + "-]"), percent}); };
  const Lang slash = b.re("/");
  const Lang in_path = chars(plain + ":@");
  const Lang more = b.many(b.join({slash, b.many(in_path)}));
  const Lang future = b.re("[Vv][\\da-fA-F]+\\.[A-Za-z\\d._~!$&'()*+,;=:-]+");
  const Lang host = b.either({b.join({b.re("\\["), b.either({ipv6(b), future}), b.re("\\]")}), b.many(chars(plain))});
  const Lang user = b.maybe(b.join({b.many(chars(plain + ":")), b.re("@")}));
  const Lang authority = b.join({b.re("//"), user, host, b.re("(?::\\d*)?"), more});
  const Lang rootless = b.join({b.some(in_path), more});
  const Lang absolute = b.join({slash, b.maybe(rootless)});
  const Lang query = b.maybe(b.join({b.re("\\?"), b.many(chars(plain + ":@/?" + beyond_in_query))}));
  const Lang fragment = b.maybe(b.join({b.re("#"), b.many(chars(plain + ":@/?"))}));
  const Lang scheme = b.re("[A-Za-z][A-Za-z\\d+.-]*:");
  Lang result = b.join({scheme, b.either({authority, absolute, rootless, kEmptyText})});
  if (reference) {
    const Lang no_scheme = b.join({b.some(chars(plain + "@")), more});
    result = b.either({result, authority, absolute, no_scheme, kEmptyText});
  }
  return b.join({result, query, fragment});
}

string uri_template() {
  const string literal = "(?:[!#$&'(-;=?-\\[\\]_a-z~" + string(kUcsChars) + kPrivateChars + "]|" + kPercent + ")";
  const string letter = "(?:\\w|" + string(kPercent) + ")";
  const string variable = letter + "(?:\\.?" + letter + ")*(?::[1-9]\\d{0,3}|\\*)?";
  return "(?:" + literal + "|\\{[+#./;?&]?" + variable + "(?:," + variable + ")*\\})*";
}

// -- patterns

/// n,m with n <= m; n up to 99, m up to 9999.
Lang ordered_counts(const Builder& b) {
  const auto digits = [&b](char first, char last) {
    return first > last ? kNothing : b.languages.bytes(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
  };
  const Lang any = digits('0', '9');
  const Lang more = b.times(any, 1, 3);
  const Lang not_zero = digits('1', '9');
  const Lang comma = b.re(",");
  std::vector<Lang> all = {b.re("\\d{1,4}"), b.re("\\d{1,4},")};
  for (char d = '0'; d <= '9'; ++d) {
    const Lang digit = digits(d, d);
    all.push_back(b.join({digit, comma, b.either({digits(d, '9'), b.join({not_zero, more})})}));
    if (d == '0') continue;
    std::vector<Lang> second = {b.join({any, comma, b.join({digits(static_cast<char>(d + 1), '9'), any})}),
                                b.join({any, comma, not_zero, b.times(any, 2, 3)})};
    for (char e = '0'; e <= '9'; ++e) second.push_back(b.join({digits(e, e), comma, digit, digits(e, '9')}));
    all.push_back(b.join({digit, b.languages.any_of(second)}));
  }
  return b.languages.any_of(all);
}

/// x-y with x <= y in a class, both printable and none of - [ \ ] ^.
Lang ordered_ranges(const Builder& b) {
  const CharSet ends = CharSet::of({{' ', ','}, {'.', 'Z'}, {'_', '~'}});
  std::vector<Lang> all = {b.re("\\\\x00-\\\\x[\\da-fA-F]{2}|\\\\u0000-\\\\u[\\da-fA-F]{4}")};
  const Lang dash = b.re("-");
  for (uint32_t c = ' '; c <= '~'; ++c) {
    if (!ends.contains(c)) continue;
    all.push_back(
        b.join({b.languages.chars(CharSet::one(c)), dash, b.languages.chars(ends.common(CharSet::of({{c, '~'}})))}));
  }
  return b.languages.any_of(all);
}

Lang regex_language(const Builder& b) {
  constexpr int kDepth = 12;
  const string code = "[dDwWsSfnrtv]|c[A-Za-z]|x[\\da-fA-F]{2}|u[\\da-fA-F]{4}";
  const string escape = "\\\\(?:" + code + "|[!-/:-@\\[-`{-~])";
  const string in_class = "[^\\\\\\]\\^\\-]|" + escape + "|\\\\b";
  const Lang ranges = ordered_ranges(b);
  const Lang first = b.either({b.re(in_class), ranges});
  const Lang later = b.either({first, b.re("\\^")});
  const Lang dash = b.re("-");
  const Lang items = b.either({dash, b.join({b.maybe(dash), first, b.many(later), b.maybe(dash)})});
  const Lang one_class = b.join({b.re("\\[\\^?"), b.maybe(items), b.re("\\]")});
  const Lang single = b.either({b.re("[^\\^$\\\\.*+?()\\[\\]{}|]|\\.|" + escape), one_class});
  const Lang braces = b.join({b.re("\\{"), ordered_counts(b), b.re("\\}")});
  const Lang quantifier = b.maybe(b.join({b.either({b.re("[*+?]"), braces}), b.re("[?]?")}));
  const Lang edge = b.re("[\\^$]|\\\\[bB]");
  const Lang open = b.re("\\((?:\\?:)?");
  const Lang open_look = b.re("\\(\\?<?[=!]");
  const Lang close = b.re("\\)");
  const Lang bar = b.re("\\|");
  Lang inner = kNothing;  // a pattern with one level of groups less
  for (int depth = 0; depth <= kDepth; ++depth) {
    const Lang atom = b.either({single, b.join({open, inner, close})});
    const Lang term = b.either({b.join({atom, quantifier}), edge, b.join({open_look, inner, close})});
    inner = b.join({b.many(term), b.many(b.join({bar, b.many(term)}))});
  }
  return inner;
}

}  // namespace

std::optional<Lang> format_language(Languages& languages, std::string_view name) {
  const Builder b{languages};
  if (name == "date-time") return date_time_language(languages);
  if (name == "date") return b.re(kDate);
  if (name == "time") return time_language(languages);
  if (name == "duration") return b.re(kDuration);
  if (name == "email") return email(b);
  if (name == "hostname") return hostname(b);
  if (name == "ipv4") return ipv4(b);
  if (name == "ipv6") return ipv6(b);
  if (name == "uri") return identifier(b, "", "", false);
  if (name == "uri-reference") return identifier(b, "", "", true);
  if (name == "iri") return identifier(b, kUcsChars, kPrivateChars, false);
  if (name == "uuid") return b.re(kUuid);
  if (name == "json-pointer") return b.re("(?:/(?:[^~/]|~[01])*)*");
  if (name == "regex") return regex_language(b);
  if (name == "uri-template") return b.re(uri_template());
  return std::nullopt;
}

std::optional<Lang> format_at_most(Languages& languages, std::string_view name) {
  const Builder b{languages};
  const auto more = [&](const string& pattern) { return b.either({*format_language(languages, name), b.re(pattern)}); };
  if (name == "hostname") return more("(?:[^]*\\.)?[Xx][Nn]--[^]*");
  if (name == "email") return b.re("[^]*@[^]*");
  if (name == "uri-template") return more("[^]*\\{[=,!@|][^]*");
  if (name == "regex") return kAnyText;
  return std::nullopt;
}

}  // namespace deepinfer::grammar
