// Inside of a compiled grammar: a machine and its masks behind a lock, and the budget after which new sequences get fresh
// ones. For grammar.cc, matcher.cc and tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grammar/flat_map.h"
#include "grammar/grammar.h"
#include "grammar/machine.h"
#include "grammar/mask.h"

namespace deepinfer::grammar {

struct GrammarBudget {
  int64_t n_bytes_shared = int64_t{32} << 20;  // beyond: new sequences start with a fresh machine
  int64_t n_bytes_max = int64_t{256} << 20;    // beyond: the sequences that share the states fail
  int64_t n_steps = 20'000'000;                // of one mask or one token
  std::chrono::milliseconds time{250};
  std::chrono::milliseconds time_ahead{2};  // then prepare() begins no further question
  int64_t n_steps_ahead = 2'000'000;        // of prepare(), that must not be passed
  std::chrono::milliseconds time_ahead_max{20};
};

/// A machine, the states found so far and their masks. Any thread; one lock, held for one mask or one token.
class GrammarStates {
 public:
  GrammarStates(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<Machine> machine,
                const GrammarBudget& budget);

  [[nodiscard]] State start() const { return start_; }
  /// Empty once failed.
  Mask mask(State state);
  /// Answers ahead what most texts ask, for a small part of what a compilation may take. May fail, if that was too little.
  void prepare();
  /// kDead: not allowed, or failed.
  State advance(State state, int32_t token);
  bool complete(State state);
  int64_t distance(State state);
  /// The bytes that must follow, at most n_max.
  std::string forced_bytes(State state, int32_t n_max);
  /// Why no mask is to be had any more; "" while all is well.
  [[nodiscard]] std::string failure() const;
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kNoForcedByte = 256;

  void refuel() { fuel_ = Fuel(budget_.n_steps, budget_.time); }
  void check();
  uint32_t forced_byte(State state);

  const std::shared_ptr<const Vocabulary> vocabulary_;
  const GrammarBudget budget_;
  State start_ = kDead;
  std::atomic<int64_t> n_bytes_{0};

  mutable std::mutex mutex_;  // guards all below
  std::unique_ptr<Machine> machine_;
  MaskCache cache_;
  Fuel fuel_;
  FlatMap forced_;  // State -> byte or kNoForcedByte
  int32_t n_unchecked_ = 0;
  std::string failure_;
};

class CompiledGrammar {
 public:
  /// `again` makes the machine once more, with nothing remembered; null if it cannot.
  using MakeMachine = std::function<std::unique_ptr<Machine>()>;
  CompiledGrammar(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<Machine> machine, MakeMachine again,
                  const GrammarBudget& budget = {});

  [[nodiscard]] const Vocabulary& vocabulary() const { return *vocabulary_; }
  /// For a new sequence. Any thread.
  std::shared_ptr<GrammarStates> states();
  /// All states in use, those that old sequences keep included.
  [[nodiscard]] int64_t n_bytes() const;

 private:
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const MakeMachine again_;
  const GrammarBudget budget_;

  mutable std::mutex mutex_;  // guards both below
  std::shared_ptr<GrammarStates> states_;
  mutable std::vector<std::weak_ptr<GrammarStates>> old_;
};

}  // namespace deepinfer::grammar
