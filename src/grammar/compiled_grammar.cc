#include "grammar/compiled_grammar.h"

#include <chrono>
#include <utility>

namespace deepinfer::grammar {
namespace {

constexpr int32_t kChecksEvery = 64;  // tokens

}  // namespace

GrammarStates::GrammarStates(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<Machine> machine,
                             const GrammarBudget& budget)
    : vocabulary_(std::move(vocabulary)),
      budget_(budget),
      machine_(std::move(machine)),
      cache_(*vocabulary_, *machine_),
      fuel_(budget.n_steps, budget.time) {
  machine_->set_fuel(&fuel_);
  start_ = machine_->start();
  check();
}

/// Looks at memory and health after work that may have found new states.
void GrammarStates::check() {
  n_unchecked_ = 0;
  const int64_t n_bytes = machine_->n_bytes() + cache_.n_bytes() + forced_.n_bytes();
  n_bytes_.store(n_bytes, std::memory_order_relaxed);
  if (!failure_.empty()) return;
  if (const std::string_view cause = machine_->failure(); !cause.empty()) {
    failure_ = cause;
  } else if (n_bytes > budget_.n_bytes_max) {
    failure_ = "the states of the constraint take " + std::to_string(n_bytes) + " bytes; the limit is " +
               std::to_string(budget_.n_bytes_max);
  }
}

Mask GrammarStates::mask(State state) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return {};
  if (const Mask* known = cache_.find(state)) return *known;
  refuel();
  const Mask mask = cache_.mask(state);
  check();
  return failure_.empty() ? mask : Mask{};
}

void GrammarStates::prepare() {
  constexpr int64_t kBytesMax = int64_t{4} << 20;
  const std::lock_guard lock(mutex_);
  if (!failure_.empty() || n_bytes() > kBytesMax) return;
  const auto end = Fuel::Clock::now() + budget_.time_ahead;
  fuel_ = Fuel(budget_.n_steps_ahead, budget_.time_ahead_max);  // what is begun in time may take all of it
  machine_->visit_ahead([&](State state, bool behind_quote) {
    if (Fuel::Clock::now() > end || fuel_.n_left() < budget_.n_steps_ahead / 2) return false;
    behind_quote ? cache_.prepare_behind_quote(state) : static_cast<void>(cache_.mask(state));
    return true;
  });
  check();
}

State GrammarStates::advance(State state, int32_t token) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return kDead;
  refuel();
  const State to = cache_.advance(state, token);
  if (++n_unchecked_ >= kChecksEvery || !machine_->failure().empty()) check();
  return failure_.empty() ? to : kDead;
}

bool GrammarStates::complete(State state) {
  const std::lock_guard lock(mutex_);
  return failure_.empty() && machine_->complete(state);
}

int64_t GrammarStates::distance(State state) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return -1;
  refuel();
  const int64_t distance = machine_->distance(state);
  check();
  return failure_.empty() ? distance : -1;
}

std::string GrammarStates::forced_bytes(State state, int32_t n_max) {
  const std::lock_guard lock(mutex_);
  std::string bytes;
  if (!failure_.empty()) return bytes;
  refuel();
  while (static_cast<int32_t>(bytes.size()) < n_max) {
    const uint32_t byte = forced_byte(state);
    if (byte == kNoForcedByte) break;
    bytes += static_cast<char>(byte);
    state = machine_->step(state, static_cast<uint8_t>(byte));
  }
  check();
  return failure_.empty() ? bytes : std::string();
}

uint32_t GrammarStates::forced_byte(State state) {
  const uint32_t known = forced_.find(state);
  if (known != FlatMap::kNone) return known;
  uint32_t forced = kNoForcedByte;
  if (!machine_->complete(state)) {
    const std::optional<NextBytes> bytes = machine_->next_bytes(state);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (bytes && !bytes->contains(static_cast<uint8_t>(byte))) continue;
      if (machine_->step(state, static_cast<uint8_t>(byte)) == kDead) continue;
      if (forced != kNoForcedByte) {
        forced = kNoForcedByte;
        break;
      }
      forced = byte;
    }
  }
  forced_.insert(state, forced);
  return forced;
}

std::string GrammarStates::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

CompiledGrammar::CompiledGrammar(std::shared_ptr<const Vocabulary> vocabulary, std::unique_ptr<Machine> machine,
                                 MakeMachine again, const GrammarBudget& budget)
    : vocabulary_(std::move(vocabulary)),
      again_(std::move(again)),
      budget_(budget),
      states_(std::make_shared<GrammarStates>(vocabulary_, std::move(machine), budget_)) {}

std::shared_ptr<GrammarStates> CompiledGrammar::states() {
  std::shared_ptr<GrammarStates> worn;
  {
    const std::lock_guard lock(mutex_);
    if (states_->n_bytes() <= budget_.n_bytes_shared && states_->failure().empty()) return states_;
    worn = states_;
  }
  // Unlocked, because this is a compilation. Two threads may both do it; the first one's result is used.
  std::unique_ptr<Machine> machine = again_ ? again_() : nullptr;
  if (machine == nullptr) return worn;
  auto fresh = std::make_shared<GrammarStates>(vocabulary_, std::move(machine), budget_);
  const std::lock_guard lock(mutex_);
  if (states_ != worn) return states_;
  std::erase_if(old_, [](const auto& states) { return states.expired(); });
  old_.push_back(std::move(worn));
  states_ = std::move(fresh);
  return states_;
}

int64_t CompiledGrammar::n_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t n_bytes = static_cast<int64_t>(sizeof(*this)) + states_->n_bytes();
  for (const auto& old : old_)
    if (const auto states = old.lock()) n_bytes += states->n_bytes();
  return n_bytes;
}

}  // namespace deepinfer::grammar
