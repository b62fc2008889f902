#include "grammar/schema_wants.h"

#include <algorithm>

#include "grammar/char_set.h"
#include "grammar/numbers.h"

namespace deepinfer::grammar {
namespace {

constexpr Formula kUnknownFormula = ~0u;
constexpr Formula kBusyFormula = ~0u - 1;

uint8_t type_bit(ValueKind kind) {
  constexpr uint8_t kBits[kNValueKinds] = {kNullBit,   kBooleanBit, kBooleanBit, kNumberBit,
                                           kStringBit, kObjectBit,  kArrayBit};
  return kBits[static_cast<size_t>(kind)];
}

bool has_in_place(const Node& n) {
  return !n.all_of.empty() || !n.any_of.empty() || !n.one_of.empty() || !n.none_of.empty() || !n.conditionals.empty() ||
         !n.dependent_schemas.empty();
}

/// Nothing but types and members in place is written in the node.
bool is_bare(const Node& n) {
  return n.may_be_true && n.may_be_false && n.text == kAnyText && n.min_length == 0 && n.max_length < 0 && !n.number &&
         n.properties.empty() && n.pattern_properties.empty() && n.additional_properties == kTrueNode &&
         n.property_names == kTrueNode && n.required.empty() && n.dependent_required.empty() && n.min_properties == 0 &&
         n.max_properties < 0 && !n.unevaluated_properties && n.prefix_items.empty() && n.items == kTrueNode &&
         !n.contains && n.min_items == 0 && n.max_items < 0 && !n.unique_items && !n.unevaluated_items &&
         !n.has_items && !n.has_additional_properties;
}

bool is_reference(const Node& n) {
  return n.types == kEveryType && n.all_of.size() == 1 && n.any_of.empty() && n.one_of.empty() && n.none_of.empty() &&
         n.conditionals.empty() && n.dependent_schemas.empty() && is_bare(n);
}

}  // namespace

uint32_t StringTable::intern(std::string_view text) {
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  strings_.emplace_back(text);
  const auto id = static_cast<uint32_t>(strings_.size() - 1);
  numbers_.emplace(strings_.back(), id);
  n_bytes_ += static_cast<int64_t>(text.size() + sizeof(std::string) + 48);
  return id;
}

Wants::Wants(Languages& l, const Schema& schema, PropertyOrder o)
    : languages(l), order(o), schema_(schema), resolved_(schema.nodes.size(), -1) {
  wants_.intern({kFalseFormula});
  wants_.intern({kTrueFormula});
  resolved_[kTrueNode] = kTrueNode;
  resolved_[kFalseNode] = kFalseNode;
  expanded_.assign(schema.nodes.size() * kNValueKinds, kUnknownFormula);
}

NodeId Wants::resolve(NodeId id) {
  NodeId at = id;
  for (size_t n_steps = 0; resolved_[static_cast<size_t>(at)] < 0; ++n_steps) {
    const Node& n = node(at);
    if (n_steps > schema_.nodes.size()) return resolved_[static_cast<size_t>(id)] = kFalseNode;  // only itself
    if (is_reference(n)) {
      at = n.all_of[0];
      continue;
    }
    NodeId self = at;
    if (n.types == 0) self = kFalseNode;
    if (n.types == kEveryType && !has_in_place(n) && is_bare(n)) self = kTrueNode;
    resolved_[static_cast<size_t>(at)] = self;
  }
  return resolved_[static_cast<size_t>(id)] = resolved_[static_cast<size_t>(at)];
}

bool Wants::has_own(NodeId id, ValueKind kind) {
  const Node& n = node(id);
  if (kind == ValueKind::kNumber) return n.number.has_value();
  if (kind == ValueKind::kString) return n.text != kAnyText || n.min_length > 0 || n.max_length >= 0;
  const auto says_something = [this](NodeId child) { return resolve(child) != kTrueNode; };
  if (kind == ValueKind::kObject) {
    if (!n.required.empty() || n.min_properties > 0 || n.max_properties >= 0 || n.unevaluated_properties) return true;
    if (!n.dependent_required.empty() || says_something(n.additional_properties)) return true;
    if (says_something(n.property_names)) return true;
    if (order == PropertyOrder::kSchema && !n.properties.empty()) return true;
    for (const auto& [name, child] : n.properties) {
      if (says_something(child)) return true;
    }
    for (const auto& [names, child] : n.pattern_properties) {
      if (says_something(child)) return true;
    }
    return false;
  }
  if (n.min_items > 0 || n.max_items >= 0 || n.contains || n.unique_items || n.unevaluated_items) return true;
  if (says_something(n.items)) return true;
  return std::any_of(n.prefix_items.begin(), n.prefix_items.end(), says_something);
}

Formula Wants::expand(NodeId id, ValueKind kind) {
  if (id == kTrueNode) return kTrueFormula;
  if (id == kFalseNode) return kFalseFormula;
  Formula& slot = expanded_[static_cast<size_t>(id) * kNValueKinds + static_cast<size_t>(kind)];
  if (slot == kBusyFormula || depth_ > kDepthMax) {  // valid only if it is valid, or too deep to say
    overflown_ = true;
    return kFalseFormula;
  }
  if (slot != kUnknownFormula) return slot;
  slot = kBusyFormula;
  ++depth_;
  const NodeId self = resolve(id);
  const Formula f = self == id ? expand_fresh(node(id), id, kind) : expand(self, kind);
  --depth_;
  return slot = f;  // expanded_ never grows
}

Formula Wants::expand_fresh(const Node& n, NodeId id, ValueKind kind) {
  if ((n.types & type_bit(kind)) == 0) return kFalseFormula;
  if (kind == ValueKind::kTrue && !n.may_be_true) return kFalseFormula;
  if (kind == ValueKind::kFalse && !n.may_be_false) return kFalseFormula;
  std::vector<Formula> parts;
  if (kind > ValueKind::kFalse && has_own(id, kind)) parts.push_back(formulas.variable(Atom::own(id)));
  for (const NodeId member : n.all_of) parts.push_back(expand(member, kind));
  std::vector<Formula> choices;
  const auto expand_all = [&](const std::vector<NodeId>& members) {
    choices.clear();
    for (const NodeId member : members) choices.push_back(expand(member, kind));
  };
  for (const auto& group : n.any_of) {
    expand_all(group);
    parts.push_back(formulas.any(choices));
  }
  for (const auto& group : n.one_of) {
    expand_all(group);
    parts.push_back(formulas.one(choices));
  }
  for (const NodeId member : n.none_of) parts.push_back(formulas.negation(expand(member, kind)));
  for (const Node::Conditional& c : n.conditionals) {
    const Formula condition = expand(c.if_node, kind);
    parts.push_back(formulas.any(formulas.negation(condition), expand(c.then_node, kind)));
    parts.push_back(formulas.any(condition, expand(c.else_node, kind)));
  }
  if (kind == ValueKind::kObject) {
    for (const auto& [name, member] : n.dependent_schemas) {
      const Formula present = formulas.variable(Atom::present(strings.intern(name)));
      parts.push_back(formulas.any(formulas.negation(present), expand(member, kind)));
    }
  }
  return formulas.all(parts);
}

Want Wants::want(Formula ok, std::span<const NodeId> roots) {
  if (ok == kFalseFormula) return kNoValue;
  std::vector<uint32_t> words{ok};
  words.insert(words.end(), roots.begin(), roots.end());
  return wants_.intern(words);
}

Formula Wants::total(Want want, ValueKind kind) {
  const auto of = roots(want);
  return formulas.substitute(ok(want), [&](uint32_t root) { return expand(static_cast<NodeId>(of[root]), kind); });
}

bool Wants::is_any_number(Lang spellings) { return spellings == any_number(); }

bool Wants::literal(Want want, ValueKind kind, std::vector<uint8_t>& truth) {
  truth.clear();
  for (const uint32_t root : roots(want)) {
    truth.push_back(expand(static_cast<NodeId>(root), kind) == kTrueFormula ? 1 : 0);
  }
  return formulas.holds(ok(want), [&](uint32_t root) { return truth[root] != 0; });
}

bool Wants::is_simple(Want want) {
  if (want == kNoValue || roots(want).size() > 1) return false;
  for (const ValueKind kind : {ValueKind::kObject, ValueKind::kArray, ValueKind::kString, ValueKind::kNumber}) {
    const Formula whole = total(want, kind);
    if (!formulas.is_conjunction(whole) || formulas.variables(whole).size() > 1) return false;
  }
  return true;
}

const ScalarPlan& Wants::scalar(Want want, ValueKind kind) {
  auto& plans = scalars_[kind == ValueKind::kString ? 1 : 0];
  if (want >= plans.size()) plans.resize(wants_.size());
  if (plans[want]) return *plans[want];
  auto plan = std::make_unique<ScalarPlan>();
  const Formula whole = total(want, kind);
  find_truth(want, kind, *plan);
  if (kind == ValueKind::kString && plan->tracked.empty() && formulas.is_conjunction(whole)) {
    std::vector<Lang> texts;
    for (const uint32_t atom : formulas.variables(whole)) {
      const Node& n = node(Atom::node(atom));
      if (n.text != kAnyText) texts.push_back(n.text);
      plan->min_length = std::max(plan->min_length, n.min_length);
      if (n.max_length >= 0) {
        plan->max_length = plan->max_length < 0 ? n.max_length : std::min(plan->max_length, n.max_length);
      }
    }
    const bool crossed = plan->max_length >= 0 && plan->max_length < plan->min_length;
    plan->allowed = crossed ? kNothing : texts.size() == 1 ? texts[0] : languages.all_of(texts);
    if (plan->allowed != kAnyText && (plan->min_length > 0 || plan->max_length >= 0)) {
      const Lang one = languages.chars(CharSet::all());
      const Lang parts[] = {plan->allowed, languages.repeat(one, plan->min_length, plan->max_length)};
      plan->allowed = languages.all_of(parts);
      plan->min_length = 0;
      plan->max_length = -1;
    }
  } else {
    plan->allowed = bounds_of(whole, kind).surely;
  }
  if (const Lang unsure = unsure_texts(want, kind, *plan); unsure != kNothing) {
    plan->allowed = languages.except(plan->allowed, unsure);
  }
  if (languages.is_empty(plan->allowed)) plan->allowed = kNothing;
  if (want >= plans.size()) plans.resize(wants_.size());
  plans[want] = std::move(plan);
  return *plans[want];
}

/// Texts for which it is not known whether a tracked root is true: what hangs on it could come out wrong.
Lang Wants::unsure_texts(Want want, ValueKind kind, const ScalarPlan& plan) {
  const auto of = roots(want);
  std::vector<Lang> unsure;
  for (size_t i = 0; i < of.size(); ++i) {
    if (plan.truth[i] != ScalarPlan::kTracked) continue;
    const Bounds bounds = bounds_of(expand(static_cast<NodeId>(of[i]), kind), kind);
    if (!bounds.exact()) unsure.push_back(languages.except(bounds.maybe, bounds.surely));
  }
  return languages.any_of(unsure);
}

void Wants::find_truth(Want want, ValueKind kind, ScalarPlan& plan) {
  const auto of = roots(want);
  const Formula wanted = ok(want);
  for (size_t i = 0; i < of.size(); ++i) {
    const auto with = [&](Formula value) {
      return formulas.substitute(wanted, [&](uint32_t root) { return root == i ? value : formulas.variable(root); });
    };
    uint8_t truth = ScalarPlan::kTracked;
    const Formula f = expand(static_cast<NodeId>(of[i]), kind);
    if (f == kFalseFormula || with(kTrueFormula) == kFalseFormula) {
      truth = ScalarPlan::kIsFalse;
    } else if (f == kTrueFormula || with(kFalseFormula) == kFalseFormula) {
      truth = ScalarPlan::kIsTrue;
    }
    plan.truth.push_back(truth);
    if (truth == ScalarPlan::kTracked) plan.tracked.push_back(bounds_of(f, kind).surely);
  }
}

ScalarPlan Wants::scalar_without(const ScalarPlan& plan, ValueKind kind, std::span<const std::string* const> values) {
  ScalarPlan rest = plan;
  std::vector<Lang> without;
  for (const std::string* value : values) {
    if (kind == ValueKind::kString) {
      without.push_back(languages.text(*value));
    } else if (Result<Lang> same = number_equal_to(languages, *value); same.ok()) {
      without.push_back(*same);
    }
  }
  rest.allowed = languages.except(plan.allowed, languages.any_of(without));
  if (languages.is_empty(rest.allowed)) rest.allowed = kNothing;
  return rest;
}

Lang Wants::plain_texts(Lang rest) {
  if (plain_ == kNothing) {
    const CharSet plain = CharSet::of({{' ', '!'}, {'#', '['}, {']', 0x10FFFF}});
    const Lang parts[] = {languages.repeat(languages.bytes(0x80, 0xBF), 0, 3),  // of a character that has begun
                          languages.repeat(languages.chars(plain), 0, -1)};
    plain_ = languages.concat(parts);
  }
  const Lang both[] = {rest, plain_};
  return languages.all_of(both);
}

int64_t Wants::string_bytes(Lang rest) {
  const int64_t shortest = languages.shortest(rest);
  if (shortest <= 0 || languages.exhausted()) return shortest;
  const int64_t plain = languages.shortest(plain_texts(rest));
  return plain < 0 ? shortest * kEscapeBytes : std::min(plain, shortest * kEscapeBytes);
}

int64_t Wants::string_bytes(std::string_view text) {
  int64_t n = 0;
  for (const char c : text) {
    const bool is_short = c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v');
    n += is_short ? 2 : c >= 0 && c < ' ' ? kEscapeBytes : 1;
  }
  return n;
}

Lang Wants::any_number() {
  if (!has_any_number_) {
    Result<Lang> all = number_language(languages, {});
    any_number_ = all.ok() ? *all : kNothing;
    has_any_number_ = true;
  }
  return any_number_;
}

Wants::Bounds Wants::bounds_of_own(NodeId id, ValueKind kind) {
  const Node& n = node(id);
  if (kind == ValueKind::kNumber) {
    const Lang number = n.number ? *n.number : any_number();
    return {number, n.number_at_most.value_or(number)};
  }
  if (n.max_length >= 0 && n.max_length < n.min_length) return {kNothing, kNothing};
  Bounds bounds{n.text, n.text_at_most.value_or(n.text)};
  if (n.min_length <= 0 && n.max_length < 0) return bounds;
  const Lang long_enough = languages.repeat(languages.chars(CharSet::all()), n.min_length, n.max_length);
  const bool exact = bounds.exact();
  for (Lang* lang : {&bounds.surely, &bounds.maybe}) {
    const Lang parts[] = {*lang, long_enough};
    *lang = lang == &bounds.maybe && exact ? bounds.surely : languages.all_of(parts);
  }
  return bounds;
}

Wants::Bounds Wants::bounds_of(Formula f, ValueKind kind) {
  auto& known = bounds_of_[kind == ValueKind::kString ? 1 : 0];
  if (const auto found = known.find(f); found != known.end()) return found->second;
  const Lang everything = kind == ValueKind::kString ? kAnyText : any_number();
  Bounds result{kNothing, kNothing};
  using Op = Formulas::Op;
  const Op o = formulas.op(f);
  if (o == Op::kTrue) result = {everything, everything};
  if (o == Op::kVariable) result = bounds_of_own(Atom::node(formulas.variable_of(f)), kind);
  if (o == Op::kNot) {
    const Bounds other = bounds_of(formulas.args(f)[0], kind);
    result.surely = languages.except(everything, other.maybe);
    result.maybe = other.exact() ? result.surely : languages.except(everything, other.surely);
  }
  if (o == Op::kAll || o == Op::kAny || o == Op::kOne) {
    std::vector<Bounds> parts;
    for (const Formula part : formulas.args(f)) parts.push_back(bounds_of(part, kind));
    result = bounds_of_parts(o, parts);
  }
  known.emplace(f, result);
  return result;
}

Wants::Bounds Wants::bounds_of_parts(Formulas::Op op, std::span<const Bounds> parts) {
  std::vector<Lang> surely, maybe;
  for (const Bounds& part : parts) {
    surely.push_back(part.surely);
    maybe.push_back(part.maybe);
  }
  using Op = Formulas::Op;
  const bool exact = surely == maybe;
  const auto combined = [&](const std::vector<Lang>& langs) {
    return op == Op::kAll   ? languages.all_of(langs)
           : op == Op::kAny ? languages.any_of(langs)
                            : languages.exactly_one(langs);
  };
  if (exact || op != Op::kOne) {
    const Lang all = combined(surely);
    return {all, exact ? all : combined(maybe)};
  }
  const auto one_without_others = [&](const std::vector<Lang>& one, const std::vector<Lang>& others) {
    std::vector<Lang> choices;
    for (size_t i = 0; i < one.size(); ++i) {
      std::vector<Lang> refused;
      for (size_t k = 0; k < others.size(); ++k)
        if (k != i) refused.push_back(others[k]);
      choices.push_back(languages.except(one[i], languages.any_of(refused)));
    }
    return languages.any_of(choices);
  };
  return {one_without_others(surely, maybe), one_without_others(maybe, surely)};
}

int64_t Wants::n_bytes() const {
  return formulas.n_bytes() + wants_.n_bytes() + strings.n_bytes() + languages.n_bytes() +
         static_cast<int64_t>(resolved_.size() * 4 + expanded_.size() * 4 +
                              (bounds_of_[0].size() + bounds_of_[1].size()) * 56);
}

}  // namespace deepinfer::grammar
