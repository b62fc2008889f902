// What the fuzzers of constraints share: compiling under limits, a small vocabulary, and random walks through the
// masks that compare masks with single steps. Everything is decided by the input, so that a fault comes back.
#pragma once

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/compiled_grammar.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/vocabulary.h"
#include "text/utf8.h"

namespace deepinfer::grammar::fuzz {

constexpr int32_t kEndOfText = 0;

/// Ids of single bytes are the bytes + 1.
inline const std::shared_ptr<const Vocabulary>& vocabulary() {
  static const std::shared_ptr<const Vocabulary> kVocabulary = [] {
    std::vector<std::string> tokens(1);
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* text : {"ab",    "aaaa", "abc", "12",    "0.5", "-1",   "e5",       "true",     "alse",
                             "null",  "{\"",  "\":", "\",\"", "\"}", "\"]",  "[[",       "]]",       "}}",
                             "[]",    "{}",   "\\u", "\\\"",  "\\n", "00e9", "\\ud83d",  "\\ude",    "\",",
                             "\": ",  "  ",   " \"", "\n  ",  "},{", "],[",  "\xC3\xA9", "\xF0\x9F", "\x98\x80",
                             "x\xC3", "()",   "((",  "))",    "+1",  "a\"",  "\"a\":",   "\"b\"",    "2020-"})
      tokens.emplace_back(text);
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    const std::vector<int32_t> ends = {kEndOfText};
    return *Vocabulary::build(views, ends, static_cast<int32_t>(tokens.size()));
  }();
  return kVocabulary;
}

/// Numbers that the input decides.
class Random {
 public:
  explicit Random(std::string_view input) {
    for (const char c : input) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  }
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<size_t>(state_ >> 33) % n;
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325;
};

/// Processor time: other programs do not count.
class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

/// Ten times what one compilation, mask or token may take, for the sanitizers.
constexpr double kSecondsMax = 2.5;
constexpr int64_t kStepsMax = 1'000'000;
constexpr int64_t kBytesMax = int64_t{80} << 20;  // of a grammar that was compiled and not yet walked

inline void check_message(const std::string& message) {
  DI_CHECK(!message.empty());
  DI_CHECK(message.find('\n') == std::string::npos);
  DI_CHECK(!find_ill_formed(message));
}

/// Null: refused.
inline std::shared_ptr<CompiledGrammar> compile_bounded(const Constraint& constraint) {
  CompileLimits limits;
  limits.n_steps = kStepsMax;
  const Stopwatch watch;
  const Compiled compiled = compile(vocabulary(), constraint, limits);
  DI_CHECK(watch.seconds() < kSecondsMax);
  DI_CHECK((compiled.grammar == nullptr) == compiled.refusal.has_value());
  for (const Ignored& ignored : compiled.ignored) DI_CHECK(!find_ill_formed(ignored.pointer + ignored.keyword));
  if (compiled.refusal) {
    check_message(compiled.refusal->reason);
    DI_CHECK(!find_ill_formed(compiled.refusal->pointer + compiled.refusal->keyword));
    return nullptr;
  }
  DI_CHECK(compiled.grammar->n_bytes() <= kBytesMax);
  return compiled.grammar;
}

/// Whether all bytes of `text`, one by one, and the end are allowed; nothing: a limit was reached.
inline std::optional<bool> accepts(const std::shared_ptr<CompiledGrammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  for (const char c : text) {
    const Stopwatch watch;
    const bool advances = matcher.advance(static_cast<uint8_t>(c) + 1);
    DI_CHECK(watch.seconds() < kSecondsMax);
    if (advances) continue;
    if (grammar->states()->failure().empty() && matcher.shortest_completion() >= 0) return false;
    return std::nullopt;
  }
  return matcher.complete();
}

class Walk {
 public:
  /// `is_exact`: an allowed token always leads to an end, and the machine knows the shortest one.
  Walk(const std::shared_ptr<CompiledGrammar>& grammar, bool is_exact, Random& random)
      : states_(grammar->states()), is_exact_(is_exact), matcher_(grammar), random_(random) {}

  /// A text that the constraint allows; nothing: none was found.
  std::optional<std::string> run(int32_t n_tokens) {
    for (int32_t n = 0; n < n_tokens && time_.seconds() < 1; ++n) {
      const std::vector<int32_t> allowed = look();
      if (matcher_.complete() && (allowed.empty() || random_.below(6) == 0)) return text_;
      if (allowed.empty()) {
        check_message(matcher_.failure());
        DI_CHECK(!is_exact_ || !states_->failure().empty());
        return std::nullopt;
      }
      take(pick(allowed, n));
    }
    return finish();
  }

 private:
  /// The tokens of the mask but the end of text; now and then all of it is checked.
  std::vector<int32_t> look() {
    const Stopwatch watch;
    const Mask mask = matcher_.mask();
    DI_CHECK(watch.seconds() < kSecondsMax);
    const int32_t n_head = vocabulary()->n_head();
    std::vector<int32_t> allowed;
    for (int32_t token = 0; token < n_head; ++token)
      if (token != kEndOfText && mask.allows(token)) allowed.push_back(token);
    if (!states_->failure().empty()) return {};
    DI_CHECK(mask.allows(kEndOfText) == matcher_.complete());
    if (random_.below(4) == 0) {
      for (int32_t token = 0; token < n_head; ++token) {
        const bool advances = matcher_.fork().advance(token);
        if (!states_->failure().empty()) return {};
        DI_CHECK(advances == mask.allows(token));
      }
      check_forced(allowed);
    }
    if (is_exact_ && random_.below(8) == 0) check_distance();
    return states_->failure().empty() ? allowed : std::vector<int32_t>();
  }

  void check_forced(const std::vector<int32_t>& allowed) {
    const std::string forced = matcher_.forced_bytes(20);
    Matcher ahead = matcher_.fork();
    for (const char c : forced) {
      const bool advances = ahead.advance(static_cast<uint8_t>(c) + 1);
      DI_CHECK(advances || !states_->failure().empty());
    }
    DI_CHECK(forced.empty() || !matcher_.complete());
    for (const int32_t token : allowed)
      DI_CHECK(forced.empty() || vocabulary()->bytes(token).front() == forced.front());
  }

  /// Some next byte is on the shortest way, and none shortens it more.
  void check_distance() {
    const int64_t distance = matcher_.shortest_completion();
    int64_t least = matcher_.complete() ? 0 : INT64_MAX;
    for (int32_t byte = 0; byte < 256; ++byte) {
      Matcher next = matcher_.fork();
      if (!next.advance(byte + 1)) continue;
      least = std::min(least, 1 + next.shortest_completion());
    }
    if (states_->failure().empty()) DI_CHECK(distance == least);
  }

  /// Structure is made of short tokens; blanks would hide it.
  int32_t pick(const std::vector<int32_t>& allowed, int32_t n) {
    int32_t best = allowed[random_.below(allowed.size())];
    for (size_t i = random_.below(4); i > 0; --i) {
      const int32_t token = allowed[random_.below(allowed.size())];
      const std::string_view bytes = vocabulary()->bytes(token);
      const bool is_plain = bytes.front() > ' ' && bytes.front() < 0x7F;
      if (is_plain && (n % 2 == 0 || bytes.size() < vocabulary()->bytes(best).size())) best = token;
    }
    return best;
  }

  void take(int32_t token) {
    const bool advances = matcher_.advance(token);
    DI_CHECK(advances || !states_->failure().empty());
    if (advances) text_ += vocabulary()->bytes(token);
  }

  /// The nearest way to the end, byte by byte.
  std::optional<std::string> finish() {
    for (int32_t n = 0; n < 100 && time_.seconds() < 2; ++n) {
      if (!states_->failure().empty()) return std::nullopt;
      if (matcher_.complete()) return text_;
      int64_t least = INT64_MAX;
      int32_t best = -1;
      for (int32_t byte = 0; byte < 256; ++byte) {
        Matcher next = matcher_.fork();
        if (!next.advance(byte + 1)) continue;
        const int64_t distance = next.shortest_completion();
        if (distance < 0 || distance >= least) continue;
        least = distance;
        best = byte + 1;
      }
      if (best < 0) return std::nullopt;
      take(best);
    }
    return std::nullopt;
  }

  const std::shared_ptr<GrammarStates> states_;  // those of matcher_
  const bool is_exact_;
  Matcher matcher_;
  Random& random_;
  std::string text_;
  const Stopwatch time_;
};

/// An input: what is up to its last newline, and what follows.
struct Halves {
  std::string_view first, second;
};
inline Halves halves_of(std::string_view input) {
  const size_t cut = std::min(input.rfind('\n'), input.size());
  return {input.substr(0, cut), input.substr(std::min(cut + 1, input.size()))};
}

}  // namespace deepinfer::grammar::fuzz
