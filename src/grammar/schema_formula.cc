#include "grammar/schema_formula.h"

#include <algorithm>

namespace deepinfer::grammar {

Formulas::Formulas() {
  intern(Op::kFalse, {});
  intern(Op::kTrue, {});
}

Formula Formulas::intern(Op op, std::span<const uint32_t> args) {
  if (!spend(1 + static_cast<int64_t>(args.size()))) return kFalseFormula;
  uint32_t small[8];
  std::vector<uint32_t> large;
  uint32_t* words = small;
  if (args.size() + 1 > std::size(small)) {
    large.resize(args.size() + 1);
    words = large.data();
  }
  words[0] = static_cast<uint32_t>(op);
  std::copy(args.begin(), args.end(), words + 1);
  const uint32_t id = tuples_.intern(std::span<const uint32_t>(words, args.size() + 1));
  if (id < facts_.size()) return id;
  Fact fact{0, 1, 0};
  if (op != Op::kVariable) {
    for (const Formula part : args) {
      fact.depth = std::max(fact.depth, facts_[part].depth + 1);
      fact.size = std::min<uint32_t>(fact.size + facts_[part].size, 1 << 28);
    }
  }
  facts_.push_back(fact);
  if (fact.depth > kDepthMax || id > kNumberMax) overflown_ = true;
  return overflown_ && id > kTrueFormula ? kFalseFormula : id;
}

Formula Formulas::negation(Formula f) {
  if (f <= kTrueFormula) return 1 - f;
  if (op(f) == Op::kNot) return args(f)[0];
  return intern(Op::kNot, {&f, 1});
}

Formula Formulas::junction(Op o, std::span<const Formula> parts) {
  const Formula neutral = o == Op::kAll ? kTrueFormula : kFalseFormula;
  const Formula absorbing = 1 - neutral;
  std::vector<Formula> flat;
  flat.reserve(parts.size());
  for (const Formula part : parts) {
    if (part == absorbing) return absorbing;
    if (part == neutral) continue;
    if (op(part) == o) {
      flat.insert(flat.end(), args(part).begin(), args(part).end());
    } else {
      flat.push_back(part);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.empty()) return neutral;
  if (flat.size() == 1) return flat[0];
  for (const Formula part : flat) {  // x with not x
    if (op(part) == Op::kNot && std::binary_search(flat.begin(), flat.end(), args(part)[0])) return absorbing;
  }
  if (o == Op::kAll && propagate(flat)) return junction(o, flat);
  return intern(o, flat);
}

/// Puts the variables that stand alone in `parts`, which must all hold, into the others. True: something changed.
bool Formulas::propagate(std::vector<Formula>& parts) {
  std::vector<uint32_t> is_true, is_false;
  bool compound = false;
  for (const Formula part : parts) {
    if (op(part) == Op::kVariable) {
      is_true.push_back(variable_of(part));
    } else if (op(part) == Op::kNot && op(args(part)[0]) == Op::kVariable) {
      is_false.push_back(variable_of(args(part)[0]));
    } else {
      compound = compound || facts_[part].size <= kSmall;
    }
  }
  if (!compound || is_true.size() + is_false.size() == 0) return false;
  const auto known = [&](uint32_t v) {
    if (std::find(is_true.begin(), is_true.end(), v) != is_true.end()) return kTrueFormula;
    if (std::find(is_false.begin(), is_false.end(), v) != is_false.end()) return kFalseFormula;
    return variable(v);
  };
  bool changed = false;
  for (Formula& part : parts) {
    const bool alone = op(part) == Op::kVariable || (op(part) == Op::kNot && op(args(part)[0]) == Op::kVariable);
    if (alone || facts_[part].size > kSmall) continue;
    const Formula with_known = substitute(part, known);
    changed = changed || with_known != part;
    part = with_known;
  }
  return changed;
}

Formula Formulas::one(std::span<const Formula> parts) {
  std::vector<Formula> rest, none;  // exactly one of `rest`, and nothing of `none`
  int32_t n_true = 0;
  for (const Formula part : parts) {
    if (part == kTrueFormula) ++n_true;
    if (part > kTrueFormula) rest.push_back(part);
  }
  if (n_true > 1) return kFalseFormula;
  std::sort(rest.begin(), rest.end());
  std::vector<Formula> single;
  for (size_t i = 0; i < rest.size();) {
    size_t end = i;
    while (end < rest.size() && rest[end] == rest[i]) ++end;
    (end - i == 1 ? single : none).push_back(rest[i]);
    i = end;
  }
  if (n_true == 1) {
    none.insert(none.end(), single.begin(), single.end());
    single.clear();
  }
  std::vector<Formula> result;
  for (const Formula part : none) result.push_back(negation(part));
  if (n_true == 0) {
    if (single.empty()) return kFalseFormula;
    result.push_back(single.size() == 1 ? single[0] : intern(Op::kOne, single));
  }
  return all(result);
}

bool Formulas::is_conjunction(Formula f) const {
  const Op o = op(f);
  if (o == Op::kTrue || o == Op::kVariable) return true;
  if (o != Op::kAll) return false;
  return std::all_of(args(f).begin(), args(f).end(), [this](Formula part) { return op(part) == Op::kVariable; });
}

std::span<const uint32_t> Formulas::variables(Formula f) {
  spend();
  if (facts_[f].variables != 0) return variable_sets_.at(facts_[f].variables - 1);
  std::vector<uint32_t> all;
  if (op(f) == Op::kVariable) {
    all.push_back(variable_of(f));
  } else if (op(f) != Op::kFalse && op(f) != Op::kTrue) {
    for (const Formula part : args(f)) {
      const auto of_part = variables(part);
      spend(static_cast<int64_t>(of_part.size()));
      all.insert(all.end(), of_part.begin(), of_part.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  facts_[f].variables = variable_sets_.intern(all) + 1;
  return variable_sets_.at(facts_[f].variables - 1);
}

Formula Formulas::can_be_one(std::span<const Formula> may, std::span<const Formula> may_not, bool wanted) {
  constexpr size_t kPartsMax = 24;  // beyond: an upper bound
  bool decided = true;              // every part's truth follows from the variables
  for (size_t i = 0; i < may.size(); ++i) decided = decided && may_not[i] == negation(may[i]);
  if (decided) return wanted ? one(may) : negation(one(may));
  std::vector<Formula> cases;
  if (!wanted) {
    if (may.size() > kPartsMax) return kTrueFormula;
    cases.push_back(all(may_not));
    for (size_t i = 0; i < may.size(); ++i) {
      for (size_t k = 0; k < i; ++k) cases.push_back(all(may[i], may[k]));
    }
    return any(cases);
  }
  size_t n_open = 0;  // parts that cannot be false whatever happens would be listed again and again
  for (const Formula f : may_not) n_open += f == kTrueFormula ? 0 : 1;
  if (n_open > kPartsMax) return any(may);
  for (size_t i = 0; i < may.size(); ++i) {
    if (may[i] == kFalseFormula) continue;
    std::vector<Formula> parts{may[i]};
    for (size_t k = 0; k < may.size(); ++k) {
      if (k != i && may_not[k] != kTrueFormula) parts.push_back(may_not[k]);
    }
    cases.push_back(all(parts));
  }
  return any(cases);
}

}  // namespace deepinfer::grammar
