#include "cli/grammar_walk.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "grammar/matcher.h"

namespace deepinfer::cli {

namespace {

using grammar::Matcher;

// Texts looked at for an end; simple constraints need about a hundred a byte.
constexpr int32_t kLooksMax = 50'000;

class Walk {
 public:
  Walk(const grammar::Vocabulary& vocabulary, const std::shared_ptr<grammar::CompiledGrammar>& compiled,
       std::mt19937_64& random)
      : vocabulary_(vocabulary), matcher_(compiled), random_(random) {}

  Result<std::string> run(int64_t n_bytes) {
    while (static_cast<int64_t>(text_.size()) < n_bytes) {
      if (matcher_.complete() && below(4) == 0) return std::move(text_);
      const std::vector<int32_t> allowed = allowed_tokens(matcher_);
      if (allowed.empty() && matcher_.complete()) return std::move(text_);
      if (allowed.empty()) return failed(matcher_.failure());
      const int32_t token = any(allowed);
      if (!matcher_.advance(token)) return not_allowed(token, "");
      text_ += vocabulary_.bytes(token);
      tokens_.push_back(token);
    }
    const Result<std::string> straight = straight_way();
    if (!straight.ok()) return straight;
    const std::string before = text_ + *straight;
    Result<std::string> way = way_to_end(16);
    if (!way.ok()) way = way_to_end(1);
    if (!way.ok()) return way;
    return before + *way;
  }

 private:
  /// A text on the way to the end.
  struct Way {
    int64_t cost;     // bytes so far, and those estimated to the end by their weight
    int32_t n_looks;  // when it was found: the youngest of equals is gone on with
    std::string text;
    Matcher matcher;
    bool operator<(const Way& other) const { return cost != other.cost ? cost > other.cost : n_looks < other.n_looks; }
  };

  /// Goes on by single bytes, any that bring the end nearer, as long as there are some.
  Result<std::string> straight_way() {
    std::string text;
    while (!matcher_.complete()) {
      const int64_t distance = matcher_.shortest_completion();
      bool found = false;
      std::vector<int32_t> allowed = allowed_tokens(matcher_);
      std::shuffle(allowed.begin(), allowed.end(), random_);
      for (const int32_t token : allowed) {
        if (vocabulary_.bytes(token).size() != 1) continue;
        Matcher next = matcher_.fork();
        if (!next.advance(token)) return not_allowed(token, text);
        const int64_t left = next.shortest_completion();
        if (left < 0 || left >= distance) continue;
        matcher_ = std::move(next);
        text += vocabulary_.bytes(token);
        found = true;
        break;
      }
      if (!found) break;
    }
    return text;
  }

  /// A search for the end over single bytes, the most promising way first. shortest_completion() is rough and may rise on
  /// the way; a large `weight` trusts it.
  Result<std::string> way_to_end(int64_t weight) {
    std::priority_queue<Way> ways;
    ways.push({matcher_.shortest_completion(), 0, "", matcher_});
    for (int32_t n_looks = 1; n_looks < kLooksMax && !ways.empty();) {
      const Way way = ways.top();
      ways.pop();
      if (way.matcher.complete()) return way.text;
      for (const int32_t token : allowed_tokens(way.matcher)) {
        if (vocabulary_.bytes(token).size() != 1) continue;
        Matcher next = way.matcher.fork();
        if (!next.advance(token)) return not_allowed(token, way.text);
        const int64_t distance = next.shortest_completion();
        ++n_looks;
        if (distance < 0) continue;
        std::string text = way.text + std::string(vocabulary_.bytes(token));
        // A blank leads nowhere as a rule; it is a last resort.
        const bool is_blank = text.find_last_not_of(" \t\r\n") != text.size() - 1;
        const int64_t cost = static_cast<int64_t>(text.size()) + weight * (distance + (is_blank ? 1000 : 0));
        ways.push({cost, n_looks, std::move(text), std::move(next)});
      }
    }
    return failed("no end was found");
  }

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  /// The tokens of the mask that do not end the text.
  std::vector<int32_t> allowed_tokens(const Matcher& matcher) const {
    std::vector<grammar::MaskWord> row(static_cast<size_t>(vocabulary_.n_words()));
    matcher.mask().fill(row);
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < row.size(); ++i) {
      for (grammar::MaskWord word = row[i]; word != 0; word &= word - 1) {
        const auto token = static_cast<int32_t>(i * 64 + static_cast<size_t>(std::countr_zero(word)));
        if (!vocabulary_.ends_text(token)) tokens.push_back(token);
      }
    }
    return tokens;
  }

  /// Half of the time a short one: structure is made of short tokens, and texts of long ones would hide it.
  int32_t any(const std::vector<int32_t>& allowed) {
    int32_t best = allowed[below(allowed.size())];
    if (below(2) == 0) return best;
    for (int i = 0; i < 15; ++i) {
      const int32_t token = allowed[below(allowed.size())];
      if (vocabulary_.bytes(token).size() < vocabulary_.bytes(best).size()) best = token;
    }
    return best;
  }

  /// `closing`: single bytes behind the tokens so far.
  [[nodiscard]] Error not_allowed(int32_t token, const std::string& closing) const {
    if (!matcher_.failure().empty()) return failed(std::string(matcher_.failure()));
    std::string what = "BUG: token " + std::to_string(token) + " is in the mask and not allowed behind the tokens";
    for (const int32_t before : tokens_) what += " " + std::to_string(before);
    return failed(what + " and the bytes \"" + closing + "\";");
  }

  [[nodiscard]] Error failed(const std::string& why) const {
    return Error{Code::kInvalidArgument, why + " after " + text_};
  }

  const grammar::Vocabulary& vocabulary_;
  Matcher matcher_;
  std::mt19937_64& random_;
  std::string text_;
  std::vector<int32_t> tokens_;
};

}  // namespace

Result<std::string> random_text(const grammar::Vocabulary& vocabulary,
                                const std::shared_ptr<grammar::CompiledGrammar>& compiled, int64_t n_bytes,
                                std::mt19937_64& random) {
  return Walk(vocabulary, compiled, random).run(n_bytes);
}

}  // namespace deepinfer::cli
