// What SchemaMachine finds out ahead, as a part of the compilation: answers that nearly every text asks, and states that are
// worth a look ahead.
#include <algorithm>
#include <unordered_set>

#include "grammar/schema_machine_impl.h"

namespace deepinfer::grammar {

/// Answers ahead what nearly every text asks of the values near the root, so that it is a part of the compilation and not of
/// masks. Does no work that grows with more than the schema.
void SchemaMachine::prepare() {
  constexpr size_t kWantsMax = 1024;
  constexpr int64_t kStepsMax = 200'000;
  const Fuel* const fuel = languages_->fuel();
  const int64_t n_left_min = fuel == nullptr ? 0 : fuel->n_left() - kStepsMax;
  std::vector<Want> wants{root_want_};
  std::unordered_set<Want> seen;
  for (size_t i = 0; i < wants.size() && seen.size() < kWantsMax; ++i) {
    const Want want = wants[i];
    if (fuel != nullptr && fuel->n_left() < n_left_min) return;
    if (!seen.insert(want).second || !wants_.is_simple(want)) continue;
    first_bytes(want);
    for (const ValueKind kind : {ValueKind::kObject, ValueKind::kArray}) frames_.prepare(want, kind, wants);
  }
}

/// Of values near the root: behind their names, before and in them. All in frames of their own, outside of which there is nothing.
void SchemaMachine::visit_ahead(const VisitAhead& visit) {
  constexpr size_t kWantsMax = 64, kNamesMax = 64;
  std::vector<Want> wants{root_want_};
  std::unordered_set<Want> seen;
  std::unordered_set<State> named;
  const auto look_into = [&](State value) {
    if (value != kDead && !visit(value, false)) return false;
    for (const std::string_view begin : {"\"", "{\"", "[", "[\"", "[{\""}) {
      const State inside = steps(value, begin);
      if (inside != kDead && !visit(inside, false)) return false;
    }
    return failure().empty();
  };
  if (!look_into(start_)) return;
  for (size_t i = 0; i < wants.size() && seen.size() < kWantsMax; ++i) {
    const Want want = wants[i];
    if (want == kNoValue || !seen.insert(want).second) continue;
    const Frame array = frames_.open(want, ValueKind::kArray, kOutside);
    const Frame item = array == kNoFrame ? kNoFrame : frames_.begin_item(array, 0);
    if (item != kNoFrame) wants.push_back(want_at(item));
    const Frame object = frames_.open(want, ValueKind::kObject, kOutside);
    const NameSet* names = object == kNoFrame ? nullptr : frames_.names(object);
    if (names == nullptr) continue;
    const size_t n_names = std::min(names->table->names.size(), kNamesMax);
    for (uint32_t name = 0; name < n_names; ++name) {
      if (!names->offers(name)) continue;
      const State state = before_member(object, name, 0);
      if (!failure().empty()) return;
      if (state == kDead || !named.insert(state).second) continue;
      if (!visit(state, true) || !look_into(step(state, ':'))) return;
      wants.push_back(want_at(place(state).frame));
    }
  }
}

}  // namespace deepinfer::grammar
