// Frames: bytes of values, and of ways to the end of all that is open. What a value needs is a least fixpoint (a value that
// can only be written with itself inside cannot be written) over numbered wants, so that no answer hangs on what was asked
// before: there is no limit on a question as a whole, only the limit of schema_ways.cc on what one container may choose from.
#include <algorithm>
#include <utility>

#include "grammar/schema_frames.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kUnknownCost = -1, kBusy = -2;
constexpr int64_t kSomeBytes = 1000;      // there may be a way; nobody knows
constexpr int32_t kValueDepthMax = 24;    // nested values, of about 3 KB of stack; deeper ones are asked on their own
constexpr int32_t kExploreDepthMax = 40;  // nested choices around a value
constexpr int32_t kFinishDepthMax = 40;   // nested frames whose ends hang on each other
constexpr int32_t kTruthsMax = 300;       // partial truths of roots looked at
constexpr size_t kRootsMax = 64;

int64_t plus(int64_t a, int64_t b) { return std::min(kNever, a + b); }

/// Sets a value for as long as it lives.
template <typename T>
class With {
 public:
  With(T& place, T value) : place_(place), outer_(std::exchange(place, value)) {}
  ~With() { place_ = outer_; }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  T& place_;
  const T outer_;
};

}  // namespace

// ---- values ----

int64_t Frames::value_cost(Want want) {
  if (want == kNoValue) return kNever;
  if (want == kAnyValue) return 1;
  return cost_of(want * 3, want);
}

int64_t Frames::value_cost(Want want, ValueKind kind) {
  if (want == kNoValue) return kNever;
  if (want == kAnyValue) return 2;
  return cost_of(want * 3 + (kind == ValueKind::kObject ? 1 : 2), want);
}

int64_t Frames::value_bytes(Want want) {
  const With exact(exact_, true);
  return value_cost(want);
}

int64_t Frames::cost_of(uint32_t slot, Want want) {
  auto& costs = costs_[exact_ ? 1 : 0];
  if (slot < costs.size() && costs[slot] >= 0) return costs[slot];
  if (slot >= costs.size()) costs.resize(slot + slot / 2 + 32, kUnknownCost);
  if (costs[slot] <= kBusy) {  // inside itself
    tainted_ = std::min(tainted_, static_cast<int32_t>(kBusy - costs[slot]));
    return kNever;
  }
  if (!formulas_.spend()) return kSomeBytes;  // nothing is relied on any more
  if (exact_ && !is_possible(slot, want)) return costs_[1][slot] = kNever;
  if (value_depth_ > 0) {
    if (value_depth_ <= kValueDepthMax && explore_depth_ <= kExploreDepthMax) return cost_inside(slot, want);
    deferred_.push_back(slot);
    tainted_ = -1;
    return kNever;
  }
  const int64_t cost = cost_inside(slot, want);
  if (!exact_ && cost < kNever) deferred_.clear();
  if (!deferred_.empty()) {
    deferred_.push_back(slot);
    settle_deferred();
  }
  settle_provisional();
  return costs_[exact_ ? 1 : 0][slot] >= 0 ? costs_[exact_ ? 1 : 0][slot] : kNever;
}

/// A question of its own, whatever is being asked.
bool Frames::is_possible(uint32_t slot, Want want) {
  const With possible(exact_, false);
  const With depth(value_depth_, 0);
  const With untainted(tainted_, kUntainted);
  std::vector<uint32_t> outer = std::exchange(deferred_, {});
  const int64_t cost = cost_of(slot, want);
  deferred_ = std::move(outer);
  return cost < kNever;
}

/// The answers to questions that were met too deep inside others, and then to these. Deepest first, until nothing changes.
void Frames::settle_deferred() {
  std::vector<uint32_t> slots;
  const auto take = [&] {
    for (const uint32_t slot : std::exchange(deferred_, {})) {
      if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
    }
  };
  const auto is_known = [&](uint32_t slot) { return costs_[exact_ ? 1 : 0][slot] >= 0; };
  take();
  std::reverse(slots.begin(), slots.end());
  for (bool more = true; more && formulas_.spend();) {
    more = false;
    const size_t n_before = slots.size();
    for (size_t i = slots.size(); i-- > 0;) {
      if (is_known(slots[i])) continue;
      cost_inside(slots[i], slots[i] / 3);
      more = more || is_known(slots[i]);
    }
    take();
    more = more || slots.size() > n_before;
  }
  for (const uint32_t slot : slots) {  // only with each other inside
    if (!is_known(slot)) costs_[exact_ ? 1 : 0][slot] = kNever;
  }
}

/// Bytes that were found while others were open can come down once those are known.
void Frames::settle_provisional() {
  const std::vector<uint32_t> slots = std::exchange(provisional_, {});
  for (bool more = !slots.empty(); more && formulas_.spend();) {
    more = false;
    ++value_depth_;
    for (const uint32_t slot : slots) {
      const int64_t cost = cost_fresh(slot, slot / 3);
      if (cost >= costs_[1][slot]) continue;
      costs_[1][slot] = cost;
      more = true;
    }
    --value_depth_;
  }
}

int64_t Frames::cost_inside(uint32_t slot, Want want) {
  const int32_t outer_tainted = tainted_;
  tainted_ = kUntainted;
  costs_[exact_ ? 1 : 0][slot] = kBusy - value_depth_;
  ++value_depth_;
  const int64_t cost = cost_fresh(slot, want);
  --value_depth_;
  const bool certain = tainted_ >= value_depth_;  // hangs on nothing further out
  costs_[exact_ ? 1 : 0][slot] = cost < kNever || certain ? cost : kUnknownCost;
  if (exact_ && cost < kNever && (!certain || !provisional_.empty())) provisional_.push_back(slot);
  tainted_ = certain ? outer_tainted : std::min(outer_tainted, tainted_);
  if (!exact_ && cost < kNever) tainted_ = outer_tainted;
  return cost;
}

int64_t Frames::cost_fresh(uint32_t slot, Want want) {
  if (slot % 3 != 0) {
    const ValueKind kind = slot % 3 == 1 ? ValueKind::kObject : ValueKind::kArray;
    ContainerPlan& p = plan_for(want, kind);
    if (p.total == kFalseFormula) return kNever;
    const uint32_t number = plan_of_want_[slot % 3 - 1][want] - 1;
    return plus(2, total_cost(first_words(p, number, kOutside)));
  }
  int64_t best = kNever;
  std::vector<uint8_t> truth;
  for (const ValueKind kind : {ValueKind::kNull, ValueKind::kTrue, ValueKind::kFalse}) {
    if (wants_.literal(want, kind, truth)) best = std::min<int64_t>(best, kind == ValueKind::kFalse ? 5 : 4);
  }
  for (const ValueKind kind : {ValueKind::kNumber, ValueKind::kString}) {
    if (!exact_ && best < kNever) return best;
    const ScalarPlan& plan = wants_.scalar(want, kind);
    if (plan.allowed == kNothing) continue;
    int64_t bytes = 1;
    if (exact_ && kind == ValueKind::kNumber) bytes = wants_.languages.shortest(plan.allowed);
    if (exact_ && kind == ValueKind::kString) bytes = wants_.string_bytes(plan.allowed);
    if (kind == ValueKind::kString) bytes = std::max<int64_t>(bytes, plan.min_length) + 2;
    best = std::min(best, bytes);
  }
  if (!exact_ && best < kNever) return best;
  best = std::min(best, cost_of(want * 3 + 1, want));
  if (!exact_ && best < kNever) return best;
  return std::min(best, cost_of(want * 3 + 2, want));
}

// ---- the end of everything ----

/// The least of partial(truth) + after(truth) over all truths of `truth.size()` roots; -1 in `truth`: not decided. partial()
/// may only rise as more is decided. `best`: more than that is of no interest.
template <typename Partial, typename After>
int64_t Frames::best_truth(std::vector<int8_t>& truth, int64_t best, int32_t& n_left, Partial& partial, After& after) {
  if (--n_left < 0) return kNever;
  const int64_t cost = partial(truth);
  if (cost >= best) return kNever;
  const auto open = std::find(truth.begin(), truth.end(), -1);
  if (open == truth.end()) {
    const std::vector<uint8_t> all(truth.begin(), truth.end());
    return plus(cost, after(all));
  }
  int64_t found = kNever;
  for (const int8_t value : {int8_t{1}, int8_t{0}}) {
    *open = value;
    found = std::min(found, best_truth(truth, std::min(best, found), n_left, partial, after));
  }
  *open = -1;
  return found;
}

template <typename Partial, typename After>
int64_t Frames::best_truth(size_t n_roots, Partial&& partial, After&& after) {
  if (!formulas_.spend()) return kSomeBytes;
  std::vector<int8_t> truth(n_roots, -1);
  int32_t n_left = n_roots > kRootsMax ? 0 : kTruthsMax;
  const int64_t best = best_truth(truth, kNever, n_left, partial, after);
  if (best < kNever || n_left >= 0) return best;
  return plus(partial(truth), kSomeBytes);  // given up
}

int64_t Frames::finish_cost(Frame f) {
  if (f == kOutside) return 0;
  if (const auto found = finish_costs_.find(f); found != finish_costs_.end()) return found->second;
  if (finish_depth_ > kFinishDepthMax) {
    finish_cut_ = true;
    return kSomeBytes;
  }
  if (finish_depth_ == 0) {  // the outer ones first, so that calls do not nest as deep as the text
    std::vector<Frame> around;
    for (Frame p = parent(f); p != kOutside; p = parent(p)) around.push_back(p);
    for (; around.size() > 1; around.pop_back()) {
      if (plan(around.back()).conjunction) after_value_cost(around.back(), {});
    }
  }
  ++finish_depth_;
  const int64_t cost = finish_fresh(f);
  --finish_depth_;
  if (!finish_cut_) finish_costs_.emplace(f, cost);
  if (finish_depth_ == 0) finish_cut_ = false;
  return cost;
}

int64_t Frames::finish_fresh(Frame f) {
  const View v = frames_.at(f);
  const ContainerPlan& p = plan(f);
  const Frame around = parent(f);
  if (around == kOutside || p.conjunction || plan(around).conjunction) {
    const With exact(exact_, true);
    const int64_t cost = plus(1, total_cost(v));
    if (around == kOutside || cost >= kNever) return cost;
    const With possible(exact_, false);
    const std::vector<uint8_t> all_true(p.roots.size(), 1);
    return plus(cost, after_value_cost(around, all_true));
  }
  const Formula whole = total(v);
  const auto partial = [&](const std::vector<int8_t>& truth) {
    const With exact(exact_, true);
    std::vector<Formula> all{whole};
    for (uint32_t i = 0; i < truth.size(); ++i) {
      if (truth[i] < 0) continue;
      const Formula root = v[kFirstFormula + i];
      all.push_back(truth[i] != 0 ? root : formulas_.negation(root));
    }
    return plus(1, formula_cost(v, formulas_.all(all)));
  };
  return best_truth(p.roots.size(), partial,
                    [&](const std::vector<uint8_t>& truth) { return after_value_cost(around, truth); });
}

int64_t Frames::after_value_cost(Frame f, std::span<const uint8_t> truth) {
  if (f == kOutside) return 0;
  std::vector<uint8_t> all_true;
  if (plan(f).conjunction) {
    all_true.assign(wants_.roots(child_want(f)).size(), 1);
    truth = all_true;
  }
  const Frame after = end_value(f, truth, kFreshString);
  return after == kNoFrame ? kNever : finish_cost(after);
}

int64_t Frames::text_end_cost(Frame f, ValueKind kind, const ScalarPlan& plan, std::span<const uint32_t> langs,
                              int64_t n_bytes) {
  Languages& languages = wants_.languages;
  const auto partial = [&](const std::vector<int8_t>& truth) {
    std::vector<Lang> with{langs[0]}, without;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i] >= 0) (truth[i] != 0 ? with : without).push_back(langs[i + 1]);
    }
    Lang rest = with.size() == 1 ? with[0] : languages.all_of(with);
    if (!without.empty()) rest = languages.except(rest, languages.any_of(without));
    if (languages.is_empty(rest)) return kNever;
    const int64_t bytes = kind == ValueKind::kString ? wants_.string_bytes(rest) : languages.shortest(rest);
    return bytes < 0 ? kNever : std::max(bytes, n_bytes);
  };
  const auto after = [&](const std::vector<uint8_t>& tracked) {
    if (f == kOutside) return int64_t{0};
    std::vector<uint8_t> truth;
    size_t n_tracked = 0;
    for (const uint8_t t : plan.truth) {
      truth.push_back(t == ScalarPlan::kTracked ? tracked[n_tracked++] : t == ScalarPlan::kIsTrue ? 1 : 0);
    }
    return after_value_cost(f, truth);
  };
  return best_truth(f == kOutside || this->plan(f).conjunction ? 0 : langs.size() - 1, partial,
                    [&](const std::vector<uint8_t>& tracked) {
                      if (f != kOutside && this->plan(f).conjunction) return after_value_cost(f, {});
                      return after(tracked);
                    });
}

int64_t Frames::name_cost(Frame f, uint32_t first, uint32_t last, size_t n_read) {
  int64_t best = kNever;
  const NameSet* set = names(f);
  for (uint32_t name = first; set != nullptr && name < last; ++name) {
    if (!set->offers(name)) continue;
    const Frame member = begin_member(f, name, 0);
    if (member == kNoFrame) continue;
    const auto bytes = Wants::string_bytes(set->table->names[name].substr(n_read)) + 2;
    best = std::min(best, plus(bytes, finish_cost(member)));
  }
  return best;
}

int64_t Frames::other_name_cost(Frame f, uint32_t name_class, int64_t n_bytes) {
  const NameSet* set = names(f);
  const Frame member = begin_member(f, name_class, set != nullptr && set->remember ? kFreshString : kForgotten);
  return member == kNoFrame ? kNever : plus(n_bytes + 2, finish_cost(member));
}

}  // namespace deepinfer::grammar
