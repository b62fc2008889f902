// Frames of objects: which names may come next, and what happens to the object when one has.
#include <algorithm>
#include <bit>

#include "grammar/schema_frames.h"

namespace deepinfer::grammar {
namespace {

constexpr uint32_t kClassesMax = 64;
constexpr size_t kNamesTakenOut = 64;  // used names that a language of names is freed from

}  // namespace

bool NameSet::offers_any(uint32_t first, uint32_t last) const {
  for (uint32_t i = first; i < last;) {
    const uint32_t bits = offered[i / 32] >> (i % 32);
    const uint32_t n_here = std::min(32 - i % 32, last - i);
    if ((n_here == 32 ? bits : bits & ((1u << n_here) - 1)) != 0) return true;
    i += n_here;
  }
  return false;
}

bool Frames::name_usable(View v, uint32_t name) const {
  if (has_name(v, name)) return false;
  return wants_.order == PropertyOrder::kAny || plan_of(v).table->order[name] >= v[kPosition];
}

bool Frames::note_name(Words& w, uint32_t name_class, uint32_t other) {
  const ContainerPlan& p = plan_of(w);
  const MemberTable& table = *p.table;
  const auto n_names = static_cast<uint32_t>(table.names.size());
  if (name_class < n_names) {
    if (!name_usable(w, name_class)) return false;
    w[p.at_used + name_class / 32] |= 1u << (name_class % 32);
    if (wants_.order == PropertyOrder::kSchema) w[kPosition] = table.order[name_class] + 1;
    if (table.has_present) {
      const uint32_t present = Atom::present(table.name_ids[name_class]);
      const auto with_name = [&](uint32_t atom) { return atom == present ? kTrueFormula : formulas_.variable(atom); };
      for (uint32_t i = kFirstFormula; i < p.at_used; ++i) w[i] = formulas_.substitute(w[i], with_name);
      for (uint32_t i = p.at_clauses; i < p.n_words; ++i) w[i] = formulas_.substitute(w[i], with_name);
    }
  } else {
    if (other != kForgotten) {
      if (other != 0 && lists(w[kList], other)) return false;
      w[kList] = lists_.intern({w[kList], other});
    }
    if (wants_.order == PropertyOrder::kSchema) w[kPosition] = n_names;
  }
  w[kCount] = std::min(w[kCount] + 1, table.count_max);
  return true;
}

bool Frames::is_plain(const ContainerPlan& p) const {
  return p.conjunction && !p.table->counts && p.table->dependencies.empty();
}

uint32_t Frames::first_missing(View v) {
  uint32_t first = kNoClass;
  if (wants_.order == PropertyOrder::kAny) return first;
  const MemberTable& table = *plan_of(v).table;
  for (const auto& required : table.required) {
    for (const uint32_t name : required) {
      if (!has_name(v, name)) first = std::min(first, table.order[name]);
    }
  }
  return first;
}

Want Frames::test_member(View v, uint32_t name_class) {
  if (is_plain(plan_of(v)) && wants_.order == PropertyOrder::kAny) {
    if (name_class < plan_of(v).table->names.size() && !name_usable(v, name_class)) return kNoValue;
    return child_for(v, name_class);
  }
  Words w(v.begin(), v.end());
  if (!note_name(w, name_class, kForgotten)) return kNoValue;
  const Want want = possible_child(w, name_class);
  if (want == kNoValue) return kNoValue;
  if (plan_of(w).conjunction) return may_end(w) ? want : kNoValue;
  return without_dead_ends(w, name_class, want, true);
}

/// Precondition: is_plain()
void Frames::find_possible_names(ContainerPlan& p) {
  const MemberTable& table = *p.table;
  if (!p.possible_names.empty()) return;
  p.possible_names.resize(table.n_words(), 0);
  for (uint32_t name = 0; name < table.names.size(); ++name) {
    if (wants_.languages.accepts(table.unsure_names, table.names[name])) continue;
    const Want want = conjunction_child(p, name);
    if (want != kNoValue && value_cost(want) < kNever) p.possible_names[name / 32] |= 1u << (name % 32);
  }
}

void Frames::prepare(Want want, ValueKind kind, std::vector<Want>& inside) {
  if (value_cost(want, kind) >= kNever) return;
  ContainerPlan& p = plan_for(want, kind);
  if (!is_plain(p)) return;
  if (kind == ValueKind::kObject) {
    find_possible_names(p);
    for (uint32_t name = 0; name < p.table->names.size(); ++name) inside.push_back(conjunction_child(p, name));
  } else {
    for (uint32_t place = 0; place <= p.table->n_prefix; ++place) inside.push_back(conjunction_child(p, place));
  }
}

/// Where what a name's value must be does not hang on what came before.
void Frames::offer_plain(View v, std::vector<uint32_t>& offered) {
  ContainerPlan& p = plan_of(v);
  const MemberTable& table = *p.table;
  const auto n_names = static_cast<uint32_t>(table.names.size());
  find_possible_names(p);
  for (uint32_t i = 0; i < table.n_words(); ++i) offered[i] = p.possible_names[i] & ~v[p.at_used + i];
  if (wants_.order == PropertyOrder::kAny) return;
  const uint32_t last = first_missing(v);  // a name that is needed is not passed over
  for (uint32_t name = 0; name < n_names; ++name) {
    if (table.order[name] < v[kPosition] || table.order[name] > last) offered[name / 32] &= ~(1u << (name % 32));
  }
}

const NameSet* Frames::names(Frame f) {
  auto& slot = names_[f];
  if (!slot) {
    const View v = frames_.at(f);
    const ContainerPlan& p = plan_of(v);
    auto set = std::make_unique<NameSet>();
    set->table = p.table;
    set->offered.resize(p.table->n_words(), 0);
    if (is_plain(p)) {
      offer_plain(v, set->offered);
    } else {
      for (uint32_t name = 0; name < p.table->names.size(); ++name) {
        if (!name_usable(v, name)) continue;
        if (wants_.languages.accepts(p.table->unsure_names, p.table->names[name])) continue;
        if (test_member(v, name) != kNoValue) set->offered[name / 32] |= 1u << (name % 32);
      }
    }
    find_others(v, *set);
    n_bytes_ += static_cast<int64_t>(sizeof(NameSet) + 64 + set->offered.size() * 4);
    slot = std::move(set);
  }
  const bool any = slot->others != kNothing || slot->offers_any(0, static_cast<uint32_t>(slot->table->names.size()));
  return any ? slot.get() : nullptr;
}

uint32_t Frames::class_of_others(Frame f, std::span<const uint32_t> patterns) {
  MemberTable& table = *plan(f).table;
  return static_cast<uint32_t>(table.names.size()) + table.other_classes.intern(patterns);
}

/// Whether it makes a difference that an object has a name of the class twice. To everybody who reads the text the last
/// value counts, here all do: no harm where all values must be valid under the same schemas, or where nothing looks.
bool Frames::repeats_matter(View v, uint32_t name_class) {
  const ContainerPlan& p = plan_of(v);
  if (p.table->counts || p.unevaluated || (v[kFlags] & kCaptures) != 0) return true;
  if (p.conjunction) return false;
  const ClassUse& u = use(*p.table, name_class);
  for (uint32_t i = 0; i < p.table->nodes.size(); ++i) {
    const bool trivial = u.parts[i].n == 0 && !u.parts[i].fails;
    if (!trivial && tracked(v, static_cast<int32_t>(i), p.table->nodes[i])) return true;
  }
  return false;
}

void Frames::find_others(View v, NameSet& set) {
  ContainerPlan& p = plan_of(v);
  MemberTable& table = *p.table;
  const auto n_names = static_cast<uint32_t>(table.names.size());
  const auto n_patterns = static_cast<uint32_t>(table.patterns.size());
  const bool exact = n_patterns <= kPatternsExact;
  tried_all_ = tried_all_ && exact;
  // Classes to try: all combinations of patterns, or none of them and each alone.
  const uint32_t n_classes = std::min(exact ? 1u << n_patterns : n_patterns + 1, kClassesMax);
  uint64_t allowed = 0;
  for (uint32_t c = 0; c < n_classes; ++c) {
    std::vector<uint32_t> patterns;
    for (uint32_t i = 0; i < n_patterns; ++i) {
      if (exact ? (c >> i & 1) != 0 : c == i + 1) patterns.push_back(i);
    }
    const uint32_t name_class = n_names + table.other_classes.intern(patterns);
    if (test_member(v, name_class) == kNoValue) continue;
    set.one_class = exact && allowed == 0;
    set.patterns = std::move(patterns);
    set.remember = set.remember || !exact || repeats_matter(v, name_class);
    allowed |= uint64_t{1} << c;
  }
  if (allowed == 0) return;
  if (static_cast<uint32_t>(std::popcount(allowed)) == n_classes) {
    set.others = kAnyText;
    if (table.unsure_names != kNothing) set.others = wants_.languages.except(kAnyText, table.unsure_names);
    return;
  }
  Languages& languages = wants_.languages;
  const auto [found, is_new] = p.other_names.try_emplace(allowed, kNothing);
  if (is_new) found->second = names_of_classes(table, allowed, exact);
  std::vector<Lang> used;
  for (uint32_t list = v[kList]; list != 0 && used.size() < kNamesTakenOut; list = list_parent(list)) {
    if (list_string(list) != 0) used.push_back(languages.text(wants_.strings.at(list_string(list))));
  }
  set.others = found->second;
  if (table.unsure_names != kNothing) set.others = languages.except(set.others, table.unsure_names);
  if (!used.empty()) set.others = languages.except(set.others, languages.any_of(used));
  if (languages.is_empty(set.others)) set.others = kNothing;
}

/// The names of the classes of which `allowed` has the bit, without those of the table.
Lang Frames::names_of_classes(const MemberTable& table, uint64_t allowed, bool exact) {
  Languages& languages = wants_.languages;
  const auto n_patterns = static_cast<uint32_t>(table.patterns.size());
  std::vector<Lang> parts, refused;
  for (uint32_t i = 0; i < n_patterns && !exact; ++i) {
    const bool may = i + 1 >= kClassesMax || (allowed >> (i + 1) & 1) != 0;
    (may ? parts : refused).push_back(table.patterns[i]);
  }
  if (!exact && (allowed & 1) != 0) parts.assign(1, kAnyText);
  for (uint32_t c = 0; exact && c < 1u << n_patterns; ++c) {
    if ((allowed >> c & 1) == 0) continue;
    std::vector<Lang> common, without;
    for (uint32_t i = 0; i < n_patterns; ++i) ((c >> i & 1) != 0 ? common : without).push_back(table.patterns[i]);
    parts.push_back(languages.except(languages.all_of(common), languages.any_of(without)));
  }
  for (const std::string_view name : table.names) refused.push_back(languages.text(name));
  return languages.except(languages.any_of(parts), languages.any_of(refused));
}

Want Frames::member_want(Frame f, uint32_t name_class, uint32_t other) {
  Words w;
  return member_want(f, name_class, other, w);
}

Frame Frames::begin_member(Frame f, uint32_t name_class, uint32_t other) {
  Words w;
  const Want want = member_want(f, name_class, other, w);
  if (want == kNoValue) return kNoFrame;
  w[kChildWant] = want;
  w[kChildClass] = name_class;
  return frames_.intern(w);
}

/// `w` becomes the frame that has the name.
Want Frames::member_want(Frame f, uint32_t name_class, uint32_t other, Words& w) {
  w = copy(f);
  if (name_class < plan(f).table->names.size()) {
    const NameSet* set = names(f);
    if (set == nullptr || !set->offers(name_class)) return kNoValue;
  } else if (test_member(frames_.at(f), name_class) == kNoValue) {
    return kNoValue;
  }
  return note_name(w, name_class, other) ? child_for(w, name_class) : kNoValue;
}

}  // namespace deepinfer::grammar
