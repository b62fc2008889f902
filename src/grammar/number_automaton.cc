#include "grammar/number_automaton.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace deepinfer::grammar {
namespace {

constexpr std::string_view kAlphabet = "0123456789+-.eE";
constexpr size_t kStatesMax = 512;
constexpr size_t kKeptMax = 1024;

struct State {
  std::array<int16_t, kAlphabet.size()> next;
  int32_t shortest;  // bytes
  bool accepts;
};

class NumberAutomaton final : public Languages::Automaton {
 public:
  NumberAutomaton(std::vector<State> states, std::string name) : states_(std::move(states)), name_(std::move(name)) {}

  [[nodiscard]] int32_t next(int32_t state, uint8_t byte) const override {
    const size_t i = kAlphabet.find(static_cast<char>(byte));
    return i == std::string_view::npos ? -1 : states_[static_cast<size_t>(state)].next[i];
  }
  [[nodiscard]] bool accepts(int32_t state) const override { return states_[static_cast<size_t>(state)].accepts; }
  [[nodiscard]] int64_t shortest(int32_t state) const override { return states_[static_cast<size_t>(state)].shortest; }
  [[nodiscard]] std::string_view alphabet() const override { return kAlphabet; }
  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  const std::vector<State> states_;
  const std::string name_;
};

struct Kept {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Languages::Automaton>> automata;
};

Kept& kept() {
  static Kept all;
  return all;
}

}  // namespace

std::shared_ptr<const Languages::Automaton> make_number_automaton(Languages& from, Lang lang, std::string name) {
  if (lang == kNothing) return nullptr;
  std::vector<Lang> langs{lang};
  std::unordered_map<Lang, int16_t> numbers{{lang, int16_t{0}}};
  std::vector<State> states;
  for (size_t i = 0; i < langs.size(); ++i) {
    State state{.next = {}, .shortest = static_cast<int32_t>(from.shortest(langs[i])), .accepts = false};
    state.accepts = from.accepts_empty(langs[i]);
    for (size_t c = 0; c < kAlphabet.size(); ++c) {
      const Lang to = from.next(langs[i], static_cast<uint8_t>(kAlphabet[c]));
      const auto [known, is_new] = numbers.try_emplace(to, static_cast<int16_t>(langs.size()));
      if (to != kNothing && is_new) langs.push_back(to);
      state.next[c] = to == kNothing ? int16_t{-1} : known->second;
    }
    if (langs.size() > kStatesMax || from.exhausted()) return nullptr;
    states.push_back(state);
  }
  return std::make_shared<NumberAutomaton>(std::move(states), std::move(name));
}

std::shared_ptr<const Languages::Automaton> find_number_automaton(const std::string& name) {
  const std::lock_guard lock(kept().mutex);
  const auto found = kept().automata.find(name);
  return found == kept().automata.end() ? nullptr : found->second;
}

void keep_number_automaton(const std::string& name, std::shared_ptr<const Languages::Automaton> automaton) {
  const std::lock_guard lock(kept().mutex);
  if (kept().automata.size() < kKeptMax) kept().automata.try_emplace(name, std::move(automaton));
}

}  // namespace deepinfer::grammar
