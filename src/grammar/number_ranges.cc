#include "grammar/number_ranges.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

Lang digit(Languages& languages, int first, int last) {
  if (first > last) return kNothing;
  return languages.bytes(static_cast<uint8_t>('0' + first), static_cast<uint8_t>('0' + last));
}
int value_of(char c) { return c - '0'; }

/// Builds one range. Digits are compared from the left: while a number agrees with a limit it is "at" it, afterwards any
/// digits may follow.
class RangeBuilder {
 public:
  RangeBuilder(Languages& languages, bool integer) : languages_(languages) {
    digits_ = languages_.repeat(digit(languages_, 0, 9), 0, -1);
    zeros_ = languages_.repeat(languages_.text("0"), 0, -1);
    zero_fraction_ = optional(join({languages_.text("."), languages_.text("0"), zeros_}));
    any_fraction_ = integer ? zero_fraction_ : optional(join({languages_.text("."), digit(languages_, 0, 9), digits_}));
  }

  Lang between(const MagnitudeLimit& low, const std::optional<MagnitudeLimit>& high) {
    const size_t n_low = low.whole.size();
    if (!high.has_value()) {
      return either({at_least(low), longer_than(n_low, -1)});
    }
    const size_t n_high = high->whole.size();
    if (n_low < n_high)
      return either({at_least(low), longer_than(n_low, static_cast<int64_t>(n_high)), at_most(*high)});
    if (n_low > n_high) return kNothing;
    size_t n_same = 0;
    while (n_same < n_low && low.whole[n_same] == high->whole[n_same]) ++n_same;
    const Lang prefix = languages_.text(std::string_view(low.whole).substr(0, n_same));
    if (n_same == n_low) {
      const Lang fractions[] = {fraction_at_least(low), fraction_at_most(*high)};
      return join({prefix, languages_.all_of(fractions)});
    }
    const int from = value_of(low.whole[n_same]);
    const int to = value_of(high->whole[n_same]);
    if (from > to) return kNothing;
    return join({prefix, either({join({digit(languages_, from + 1, to - 1), rest(n_low - n_same - 1)}),
                                 join({digit(languages_, from, from), whole_at_least(low, n_same + 1)}),
                                 join({digit(languages_, to, to), whole_at_most(*high, n_same + 1)})})});
  }

 private:
  Lang join(std::initializer_list<Lang> parts) { return languages_.concat({parts.begin(), parts.size()}); }
  Lang either(std::initializer_list<Lang> parts) { return languages_.any_of({parts.begin(), parts.size()}); }
  Lang optional(Lang part) { return languages_.repeat(part, 0, 1); }

  /// n digits and a fraction.
  Lang rest(size_t n) {
    const auto count = static_cast<int32_t>(n);
    return join({languages_.repeat(digit(languages_, 0, 9), count, count), any_fraction_});
  }
  /// Whole parts of more than n_low and less than n_high (-1: any number of) digits.
  Lang longer_than(size_t n_low, int64_t n_high) {
    if (n_high >= 0 && n_high < static_cast<int64_t>(n_low) + 2) return kNothing;
    const int32_t max = n_high < 0 ? -1 : static_cast<int32_t>(n_high - 2);
    return join({digit(languages_, 1, 9), languages_.repeat(digit(languages_, 0, 9), static_cast<int32_t>(n_low), max),
                 any_fraction_});
  }
  /// Whole parts of as many digits as the limit has.
  Lang at_least(const MagnitudeLimit& low) { return whole_at_least(low, 0); }
  Lang at_most(const MagnitudeLimit& high) { return whole_at_most(high, 0); }

  /// What follows `n_done` digits that are those of the limit.
  Lang whole_at_least(const MagnitudeLimit& low, size_t n_done) {
    Lang result = fraction_at_least(low);
    for (size_t i = low.whole.size(); i-- > n_done;) {
      const int d = value_of(low.whole[i]);
      result = either({join({digit(languages_, d + 1, 9), rest(low.whole.size() - i - 1)}),
                       join({digit(languages_, d, d), result})});
    }
    return result;
  }
  Lang whole_at_most(const MagnitudeLimit& high, size_t n_done) {
    Lang result = fraction_at_most(high);
    for (size_t i = high.whole.size(); i-- > n_done;) {
      const int d = value_of(high.whole[i]);
      const int least = i == 0 && high.whole.size() > 1 ? 1 : 0;
      result = either({join({digit(languages_, least, d - 1), rest(high.whole.size() - i - 1)}),
                       join({digit(languages_, d, d), result})});
    }
    return result;
  }

  Lang fraction_at_least(const MagnitudeLimit& low) {
    const Lang above = join({zeros_, digit(languages_, 1, 9), digits_});
    if (low.fraction.empty()) return low.exclusive ? join({languages_.text("."), above}) : any_fraction_;
    Lang result = low.exclusive ? above : digits_;
    for (size_t i = low.fraction.size(); i-- > 0;) {
      const int d = value_of(low.fraction[i]);
      result = either({join({digit(languages_, d + 1, 9), digits_}), join({digit(languages_, d, d), result})});
    }
    return join({languages_.text("."), result});
  }
  Lang fraction_at_most(const MagnitudeLimit& high) {
    if (high.fraction.empty()) return high.exclusive ? kNothing : zero_fraction_;
    Lang result = high.exclusive ? kNothing : zeros_;
    for (size_t i = high.fraction.size(); i-- > 0;) {
      const int d = value_of(high.fraction[i]);
      result = either({join({digit(languages_, 0, d - 1), digits_}), join({digit(languages_, d, d), result})});
      if (i > 0) result = optional(result);  // fewer digits are less: the last one is not zero
    }
    return optional(join({languages_.text("."), result}));
  }

  Languages& languages_;
  Lang digits_, zeros_, zero_fraction_, any_fraction_;
};

/// Digits of a number whose value times 10^n_places leaves no remainder by `divisor`; zeros may follow.
class Multiples : public Languages::Automaton {
 public:
  Multiples(int64_t divisor, int32_t n_places) : divisor_(divisor), n_places_(n_places) {
    int64_t left = divisor;
    for (int32_t i = 0; i <= n_places; ++i) {  // divisor / gcd(divisor, 10^i)
      moduli_.push_back(left);
      for (const int64_t factor : {2, 5}) {
        if (left % factor == 0) left /= factor;
      }
    }
  }
  /// States for every remainder fit.
  static bool fits(int64_t divisor, int64_t n_places) {
    return n_places <= 40 && divisor <= std::numeric_limits<int32_t>::max() / (n_places + 6);
  }

  [[nodiscard]] int32_t next(int32_t state, uint8_t byte) const override {
    const int64_t phase = state / divisor_;
    const int64_t remainder = state % divisor_;
    const bool is_digit = byte >= '0' && byte <= '9';
    if (byte == '.') return phase == kZero || phase == kWhole ? make(kPoint, remainder) : -1;
    if (!is_digit || phase == kZero) return -1;
    const int64_t after = (remainder * 10 + (byte - '0')) % divisor_;
    if (phase == kStart) return make(byte == '0' ? kZero : kWhole, after);
    if (phase == kWhole) return make(kWhole, after);
    if (phase >= kPoint + n_places_) return byte == '0' && remainder == 0 ? make(kPoint + n_places_ + 1, 0) : -1;
    return make(phase + 1, after);
  }
  [[nodiscard]] bool accepts(int32_t state) const override {
    const int64_t phase = state / divisor_;
    if (phase == kStart || phase == kPoint) return false;
    return state % divisor_ % moduli_[static_cast<size_t>(places_left(phase))] == 0;
  }
  [[nodiscard]] int64_t shortest(int32_t state) const override {
    if (accepts(state)) return 0;
    const int64_t phase = state / divisor_;
    const int64_t remainder = state % divisor_;
    if (phase == kStart) return 1;
    if (phase >= kPoint) return shortest_digits(remainder, places_left(phase), phase == kPoint ? 1 : 0, false);
    int64_t best = shortest_digits(remainder, n_places_, 1, true);
    const int64_t point = shortest_digits(remainder, n_places_, 1, false);
    if (point >= 0 && (best < 0 || point + 1 < best)) best = point + 1;
    return best;
  }
  [[nodiscard]] std::string_view alphabet() const override { return "0123456789."; }

 private:
  static constexpr int64_t kStart = 0, kZero = 1, kWhole = 2, kPoint = 3;  // then kPoint + digits behind the point

  [[nodiscard]] int32_t make(int64_t phase, int64_t remainder) const {
    return static_cast<int32_t>(phase * divisor_ + remainder);
  }
  [[nodiscard]] int64_t places_left(int64_t phase) const {
    return std::clamp<int64_t>(n_places_ - std::max<int64_t>(phase - kPoint, 0), 0, n_places_);
  }
  /// The least number of digits, at least n_min, that make remainder 0, `n_places` being left. In the whole part any
  /// number of them; behind the point no more than the places (and zeros). -1: none.
  [[nodiscard]] int64_t shortest_digits(int64_t remainder, int64_t n_places, int64_t n_min, bool whole) const {
    __extension__ using Wide = unsigned __int128;
    Wide power = 1;
    for (int64_t i = 0; i < n_min; ++i) power *= 10;
    for (int64_t n = n_min;; ++n, power *= 10) {
      const int64_t after = whole ? n_places : std::max<int64_t>(n_places - n, 0);
      const auto modulus = static_cast<Wide>(moduli_[static_cast<size_t>(after)]);
      const Wide choices = !whole && n > n_places ? 1 : power;  // a place too many can only be zero
      const Wide over = static_cast<Wide>(remainder) % modulus * (power % modulus) % modulus;
      if (over == 0 || modulus - over < choices) return n;
      if (!whole && n >= n_places) return -1;
      if (whole && power > modulus) return n + 1;  // cannot be: so many digits reach every remainder
    }
  }

  int64_t divisor_;
  int32_t n_places_;
  std::vector<int64_t> moduli_;  // by places left
};

}  // namespace

Lang magnitudes_between(Languages& languages, MagnitudeLimit low, std::optional<MagnitudeLimit> high, bool integer) {
  if (integer) {
    if (!low.fraction.empty() || low.exclusive) low = {.whole = whole_plus_one(low.whole), .fraction = {}};
    if (high.has_value()) {
      if (high->fraction.empty() && high->exclusive) {
        if (high->whole == "0") return kNothing;
        high->whole = whole_minus_one(high->whole);
      }
      high = MagnitudeLimit{.whole = high->whole, .fraction = {}};
    }
  }
  return RangeBuilder(languages, integer).between(low, high);
}

Result<Lang> multiples_of(Languages& languages, const Decimal& divisor) {
  const Lang zero = languages.text("0");
  const Lang zeros = languages.repeat(zero, 0, -1);
  const Lang point = languages.text(".");
  const Lang digit_set = digit(languages, 0, 9);
  const auto join = [&languages](std::initializer_list<Lang> parts) {
    return languages.concat({parts.begin(), parts.size()});
  };
  const auto either = [&languages](std::initializer_list<Lang> parts) {
    return languages.any_of({parts.begin(), parts.size()});
  };
  const Lang zero_fraction = languages.repeat(join({point, zero, zeros}), 0, 1);
  const Lang whole = either({zero, join({digit(languages, 1, 9), languages.repeat(digit_set, 0, -1)})});
  constexpr int64_t kPlacesMax = 2000;
  const auto refuse = [] {
    return Error{Code::kInvalidArgument, "the divisor has more digits than an automaton can hold"};
  };
  if (divisor.exponent > kPlacesMax || divisor.exponent < -kPlacesMax) return refuse();
  const auto places = static_cast<int32_t>(divisor.exponent < 0 ? -divisor.exponent : divisor.exponent);
  if (divisor.digits == "1") {  // a power of ten: only places count
    if (divisor.exponent >= 0) {
      const Lang ending = join({whole, languages.repeat(zero, places, places)});
      const Lang not_zero = join({digit(languages, 1, 9), languages.repeat(digit_set, 0, -1)});
      if (places == 0) return join({ending, zero_fraction});
      return join({either({zero, join({not_zero, languages.repeat(zero, places, places)})}), zero_fraction});
    }
    return join({whole, languages.repeat(join({point, languages.repeat(digit_set, 1, places), zeros}), 0, 1)});
  }
  if (divisor.digits.size() > 18) return refuse();
  int64_t value = 0;
  for (const char c : divisor.digits) value = value * 10 + value_of(c);
  if (divisor.exponent <= 0) {
    if (!Multiples::fits(value, places)) return refuse();
    return languages.automaton(std::make_shared<Multiples>(value, places));
  }
  if (!Multiples::fits(value, 0)) return refuse();
  const Lang all = languages.automaton(std::make_shared<Multiples>(value, 0));
  const Lang shorter[] = {all, join({digit(languages, 1, 9), languages.repeat(digit_set, 0, -1)})};
  return join(
      {either({zero, join({languages.all_of(shorter), languages.repeat(zero, places, places)})}), zero_fraction});
}

std::optional<Decimal> least_whole_multiple(const Decimal& divisor) {
  if (divisor.exponent >= 0) return divisor;
  if (divisor.digits.size() > 18) return std::nullopt;
  int64_t value = 0;
  for (const char c : divisor.digits) value = value * 10 + value_of(c);
  for (int64_t i = 0; i < -divisor.exponent && (value % 2 == 0 || value % 5 == 0); ++i) {
    if (value % 2 == 0) value /= 2;
    if (value % 5 == 0) value /= 5;
  }
  return parse_decimal(std::to_string(value));
}

}  // namespace deepinfer::grammar
