#include "grammar/regex_machine.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace deepinfer::grammar {
namespace {

static_assert(kNothing == kDead);

class RegexMachine : public Machine {
 public:
  RegexMachine(std::unique_ptr<Languages> languages, Lang start) : languages_(std::move(languages)), start_(start) {}

  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override { return languages_->next(from, byte); }
  bool complete(State state) override { return languages_->accepts_empty(state); }
  int64_t distance(State state) override { return languages_->shortest(state); }
  std::optional<NextBytes> next_bytes(State state) override;
  [[nodiscard]] int64_t n_bytes() const override { return languages_->n_bytes(); }
  void set_fuel(Fuel* fuel) override { languages_->set_fuel(fuel); }
  [[nodiscard]] std::string_view failure() const override {
    return languages_->exhausted() ? "the pattern needs more steps, time or memory than its limit" : "";
  }

 private:
  std::unique_ptr<Languages> languages_;
  Lang start_;
};

std::optional<NextBytes> RegexMachine::next_bytes(State state) {
  return NextBytes{languages_->next_bytes(state).words};
}

class ChoiceMachine : public Machine {
 public:
  explicit ChoiceMachine(std::vector<std::string> choices) : choices_(std::move(choices)) {
    std::sort(choices_.begin(), choices_.end());
    choices_.erase(std::unique(choices_.begin(), choices_.end()), choices_.end());
    for (const std::string& choice : choices_) n_text_bytes_ += static_cast<int64_t>(choice.capacity());
    if (!choices_.empty()) start_ = number({0, static_cast<uint32_t>(choices_.size()), 0});
  }

  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override;
  bool complete(State state) override {
    return state != kDead && choices_[runs_[state].first].size() == runs_[state].depth;
  }
  int64_t distance(State state) override;
  std::optional<NextBytes> next_bytes(State state) override;
  [[nodiscard]] int64_t n_bytes() const override {
    return n_text_bytes_ + static_cast<int64_t>(choices_.capacity() * sizeof(std::string) +
                                                runs_.capacity() * sizeof(Run) + numbers_.size() * 40);
  }

 private:
  struct Run {
    uint32_t first, end;  // of choices_, whose first `depth` bytes are equal
    uint32_t depth;
    int32_t distance = -1;
  };
  State number(Run run);
  [[nodiscard]] int byte_of(uint32_t choice, uint32_t depth) const {  // -1: it ends here
    return depth < choices_[choice].size() ? static_cast<uint8_t>(choices_[choice][depth]) : -1;
  }
  /// The first choice of the run whose next byte is not less than `byte`.
  [[nodiscard]] uint32_t first_from(const Run& run, int byte) const;

  std::vector<std::string> choices_;  // ascending
  int64_t n_text_bytes_ = 0;
  State start_ = kDead;
  std::vector<Run> runs_{1};  // by State
  std::unordered_map<uint64_t, State> numbers_;
};

/// The first choice and the depth determine the run.
State ChoiceMachine::number(Run run) {
  const auto [at, is_new] =
      numbers_.try_emplace(uint64_t{run.first} << 32 | run.depth, static_cast<State>(runs_.size()));
  if (is_new) runs_.push_back(run);
  return at->second;
}

uint32_t ChoiceMachine::first_from(const Run& run, int byte) const {
  uint32_t low = run.first;
  for (uint32_t high = run.end; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    if (byte_of(middle, run.depth) < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

State ChoiceMachine::step(State from, uint8_t byte) {
  if (from == kDead) return kDead;
  const Run run = runs_[from];
  const uint32_t first = first_from(run, byte);
  if (first == run.end || byte_of(first, run.depth) != byte) return kDead;
  return number({first, first_from(run, byte + 1), run.depth + 1});
}

std::optional<NextBytes> ChoiceMachine::next_bytes(State state) {
  NextBytes bytes;
  if (state == kDead) return bytes;
  const Run& run = runs_[state];
  for (uint32_t at = first_from(run, 0); at < run.end;) {
    const int byte = byte_of(at, run.depth);
    bytes.insert(static_cast<uint8_t>(byte));
    at = first_from(run, byte + 1);
  }
  return bytes;
}

int64_t ChoiceMachine::distance(State state) {
  if (state == kDead) return -1;
  Run& run = runs_[state];
  if (run.distance < 0) {
    size_t n_min = choices_[run.first].size();
    for (uint32_t i = run.first; i < run.end; ++i) n_min = std::min(n_min, choices_[i].size());
    run.distance = static_cast<int32_t>(n_min - run.depth);
  }
  return run.distance;
}

}  // namespace

std::unique_ptr<Machine> make_regex_machine(std::unique_ptr<Languages> languages, Lang start) {
  return std::make_unique<RegexMachine>(std::move(languages), start);
}

std::unique_ptr<Machine> make_choice_machine(std::vector<std::string> choices) {
  return std::make_unique<ChoiceMachine>(std::move(choices));
}

}  // namespace deepinfer::grammar
