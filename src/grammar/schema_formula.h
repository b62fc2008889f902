// Boolean formulas over numbered variables, hash-consed and simplified as they are built. What a schema still wants of a
// value that is being read is such a formula: over its keywords (atoms), or over the truth of its subschemas.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/fuel.h"
#include "grammar/tuple_table.h"

namespace deepinfer::grammar {

using Formula = uint32_t;
inline constexpr Formula kFalseFormula = 0;
inline constexpr Formula kTrueFormula = 1;

/// Not thread-safe. Depth and size are limited; beyond, overflown() becomes true and the result is kFalseFormula.
class Formulas {
 public:
  enum class Op : uint32_t { kFalse, kTrue, kVariable, kNot, kAll, kAny, kOne };

  Formulas();
  Formula variable(uint32_t v) { return intern(Op::kVariable, {&v, 1}); }
  Formula negation(Formula f);
  Formula all(std::span<const Formula> parts) { return junction(Op::kAll, parts); }
  Formula any(std::span<const Formula> parts) { return junction(Op::kAny, parts); }
  Formula all(Formula a, Formula b) { return all(std::span<const Formula>(std::initializer_list<Formula>{a, b})); }
  Formula any(Formula a, Formula b) { return any(std::span<const Formula>(std::initializer_list<Formula>{a, b})); }
  Formula one(std::span<const Formula> parts);  // exactly one part is true

  [[nodiscard]] Op op(Formula f) const { return static_cast<Op>(tuples_.at(f)[0]); }
  /// kVariable: its number. Others: the parts.
  [[nodiscard]] std::span<const uint32_t> args(Formula f) const { return tuples_.at(f).subspan(1); }
  [[nodiscard]] uint32_t variable_of(Formula f) const { return tuples_.at(f)[1]; }
  /// All variables, ascending.
  std::span<const uint32_t> variables(Formula f);
  /// True, a variable, or an "all" of variables.
  [[nodiscard]] bool is_conjunction(Formula f) const;

  /// f with of(v), a Formula, in the place of every variable v.
  template <typename Of>
  Formula substitute(Formula f, Of&& of);
  /// The value of f where of(v) is the value of v.
  template <typename Of>
  bool holds(Formula f, Of&& of);
  /// When f can come out as `wanted`, where can(v, wanted) says the same of its variables.
  template <typename Can>
  Formula can_be(Formula f, bool wanted, Can&& can);

  /// Spent by every call; null: no limit. When it runs out results are kFalseFormula.
  void set_fuel(Fuel* fuel) { fuel_ = fuel; }
  bool spend(int64_t n_steps = 1) { return fuel_ == nullptr || fuel_->spend(n_steps); }

  [[nodiscard]] bool overflown() const { return overflown_; }
  [[nodiscard]] int64_t n_bytes() const {
    return tuples_.n_bytes() + static_cast<int64_t>(facts_.size() * sizeof(Fact));
  }

 private:
  struct Fact {
    uint32_t depth, size;  // size: of the tree, saturated
    uint32_t variables;    // tuple number + 1 in variable_sets_, 0: not asked yet
  };
  using Memo = std::unordered_map<uint64_t, Formula>;
  static constexpr uint32_t kSmall = 48;      // trees up to this size are walked without a memo
  static constexpr uint32_t kDepthMax = 128;  // levels of connectives
  static constexpr uint32_t kNumberMax = 1 << 21;

  Formula intern(Op op, std::span<const uint32_t> args);
  bool propagate(std::vector<Formula>& parts);
  Formula junction(Op op, std::span<const Formula> parts);
  Formula can_be_one(std::span<const Formula> may, std::span<const Formula> may_not, bool wanted);

  template <typename Of>
  Formula substitute_in(Formula f, Of& of, Memo* memo);
  template <typename Can>
  Formula can_be_in(Formula f, bool wanted, Can& can, Memo* memo);
  template <typename Of>
  bool holds_in(Formula f, Of& of, Memo* memo);

  TupleTable tuples_, variable_sets_;
  std::vector<Fact> facts_;
  bool overflown_ = false;
  Fuel* fuel_ = nullptr;
};

template <typename Of>
Formula Formulas::substitute(Formula f, Of&& of) {
  Memo memo;
  return substitute_in(f, of, facts_[f].size > kSmall ? &memo : nullptr);
}

template <typename Of>
Formula Formulas::substitute_in(Formula f, Of& of, Memo* memo) {
  const Op o = op(f);
  if (o == Op::kFalse || o == Op::kTrue) return f;
  if (o == Op::kVariable) return of(variable_of(f));
  if (memo != nullptr) {
    if (const auto found = memo->find(f); found != memo->end()) return found->second;
  }
  if (!spend()) return kFalseFormula;
  std::vector<Formula> parts;
  parts.reserve(args(f).size());
  bool same = true;
  for (const Formula part : args(f)) {
    parts.push_back(substitute_in(part, of, memo));
    same = same && parts.back() == part;
  }
  Formula result = f;
  if (!same) {
    if (o == Op::kNot) result = negation(parts[0]);
    if (o == Op::kAll) result = all(parts);
    if (o == Op::kAny) result = any(parts);
    if (o == Op::kOne) result = one(parts);
  }
  if (memo != nullptr) memo->emplace(f, result);
  return result;
}

template <typename Of>
bool Formulas::holds(Formula f, Of&& of) {
  Memo memo;
  return holds_in(f, of, facts_[f].size > kSmall ? &memo : nullptr);
}

template <typename Of>
bool Formulas::holds_in(Formula f, Of& of, Memo* memo) {
  const Op o = op(f);
  if (o == Op::kFalse || o == Op::kTrue) return o == Op::kTrue;
  if (o == Op::kVariable) return of(variable_of(f));
  if (memo != nullptr) {
    if (const auto found = memo->find(f); found != memo->end()) return found->second != 0;
  }
  if (!spend()) return false;
  int32_t n_true = 0;
  for (const Formula part : args(f)) {
    n_true += holds_in(part, of, memo) ? 1 : 0;
    if (o == Op::kAny && n_true > 0) break;
    if (o == Op::kOne && n_true > 1) break;
  }
  bool result = n_true == 1;  // kOne
  if (o == Op::kNot) result = n_true == 0;
  if (o == Op::kAny) result = n_true > 0;
  if (o == Op::kAll) result = n_true == static_cast<int32_t>(args(f).size());
  if (memo != nullptr) memo->emplace(f, result ? 1 : 0);
  return result;
}

template <typename Can>
Formula Formulas::can_be(Formula f, bool wanted, Can&& can) {
  Memo memo;
  return can_be_in(f, wanted, can, facts_[f].size > kSmall ? &memo : nullptr);
}

template <typename Can>
Formula Formulas::can_be_in(Formula f, bool wanted, Can& can, Memo* memo) {
  const Op o = op(f);
  if (o == Op::kFalse || o == Op::kTrue) return (o == Op::kTrue) == wanted ? kTrueFormula : kFalseFormula;
  if (o == Op::kVariable) return can(variable_of(f), wanted);
  if (o == Op::kNot) return can_be_in(args(f)[0], !wanted, can, memo);
  const uint64_t key = uint64_t{f} * 2 + (wanted ? 1 : 0);
  if (memo != nullptr) {
    if (const auto found = memo->find(key); found != memo->end()) return found->second;
  }
  if (!spend()) return kFalseFormula;
  std::vector<Formula> may, may_not;
  const bool is_one = o == Op::kOne;
  for (const Formula part : args(f)) {
    if (is_one || wanted) may.push_back(can_be_in(part, true, can, memo));
    if (is_one || !wanted) may_not.push_back(can_be_in(part, false, can, memo));
  }
  Formula result;
  if (is_one) {
    result = can_be_one(may, may_not, wanted);
  } else if (o == Op::kAll) {
    result = wanted ? all(may) : any(may_not);
  } else {
    result = wanted ? any(may) : all(may_not);
  }
  if (memo != nullptr) memo->emplace(key, result);
  return result;
}

}  // namespace deepinfer::grammar
