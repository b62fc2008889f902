// What SchemaMachine tells about strings and names without a step: what may stay inside, where the quote leads, and how many
// bytes there are to an end.
#include <algorithm>

#include "grammar/schema_machine_impl.h"
#include "grammar/schema_unique.h"

namespace deepinfer::grammar {

std::optional<StringBody> SchemaMachine::string_body(State state) {
  if (state == kDead) return std::nullopt;
  const Place p = place(state);
  if (p.aux != 0) return std::nullopt;
  if (p.phase == Phase::kString) return value_body(p);
  if (p.phase == Phase::kKey) return key_body(p);
  return std::nullopt;
}

bool SchemaMachine::in_any_text(State state) {
  if (state == kDead) return false;
  const Place p = place(state);
  if ((p.phase != Phase::kString && p.phase != Phase::kKey) || p.aux != 0 || frames_.captures(p.frame)) return false;
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kString) return words.size() == 1 && words[0] == kAnyText && p.min_left == 0 && p.max_left < 0;
  return words.size() == 2 && words[0] == kFree && words[1] == kAnyText && p.min_left == 0;
}

std::optional<TextList> SchemaMachine::text_list(State state) {
  if (state == kDead) return std::nullopt;
  const Place p = place(state);
  if (p.aux != 0 || (p.phase != Phase::kString && p.phase != Phase::kKey)) return std::nullopt;
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kKey && words[0] == kNamed) {
    if (words[4] != kNothing) return std::nullopt;
    return TextList{0, only_needed_escapes(p)};
  }
  const Lang lang = p.phase == Phase::kString ? words[0] : words[1];
  if (lang == kAnyText || p.min_left > 0 || p.max_left >= 0 || !languages_->may_be_list(lang)) return std::nullopt;
  return TextList{lang, only_needed_escapes(p)};
}

bool SchemaMachine::visit_texts(State state, TextVisitor& visitor) {
  const Place p = place(state);
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kString) return languages_->visit_texts(words[0], visitor);
  if (words[0] == kFree) return languages_->visit_texts(words[1], visitor);
  const NameSet& set = *frames_.names(p.frame);
  int32_t n_entered = 0;  // bytes of `before`, the name before
  std::string_view before;
  for (uint32_t name = words[1]; name < words[2]; ++name) {
    if (!set.offers(name)) continue;
    const std::string_view text = set.table->names[name].substr(words[3]);
    const auto n_shared = static_cast<int32_t>(std::ranges::mismatch(before, text).in1 - before.begin());
    before = text;
    if (n_shared > n_entered) continue;  // the visitor has left what they share
    visitor.leave(n_entered - n_shared);
    n_entered = n_shared;
    const auto n_bytes = static_cast<int32_t>(text.size());
    while (n_entered < n_bytes && visitor.enter(static_cast<uint8_t>(text[static_cast<size_t>(n_entered)])))
      ++n_entered;
    if (n_entered == n_bytes) visitor.end();
  }
  visitor.leave(n_entered);
  return true;
}

uint32_t SchemaMachine::kind_step(uint32_t kind, uint8_t byte) {
  return byte < 0x20 || byte == '"' || byte == '\\' ? kNothing : languages_->next(kind, byte);
}

std::optional<NextBytes> SchemaMachine::kind_next_bytes(uint32_t kind) {
  return NextBytes{languages_->next_bytes(kind).words};
}

State SchemaMachine::kind_state(uint32_t kind) {
  Place p;
  p.phase = Phase::kString;
  p.text = texts_.intern({kind});
  return intern(p);
}

int32_t SchemaMachine::chars_left(State state) {
  const Place p = place(state);
  if (p.phase != Phase::kString && p.phase != Phase::kStringEscape) return -1;
  const int32_t n_chars = languages_->chars_at_least(texts_.at(p.text)[0]);
  if (p.phase == Phase::kString || n_chars < 0) return n_chars;
  // Any character may still come of a backslash, and of its u, if only some must be escaped.
  if ((p.aux != kBackslash && p.aux != kDigits) || only_needed_escapes(p)) return -1;
  return std::max(n_chars - 1, 0);
}

std::optional<Machine::KindName> SchemaMachine::kind_name(uint32_t kind) {
  if (kind == kAnyTextFewEscapes) return KindName{Fingerprint{}, static_cast<uint32_t>(options_.escapes)};
  const std::optional<Fingerprint> print = languages_->fingerprint(kind);
  if (!print) return std::nullopt;
  return KindName{*print, static_cast<uint32_t>(options_.escapes)};
}

/// What is known of body.kind.
void SchemaMachine::tell_kind(StringBody& body, bool every_escape) {
  if (!body.any_text) {
    body.takes_all = languages_->takes_every_text(body.kind);
    const std::optional<Languages::Counted> counted = languages_->counted(body.kind);
    if (counted && counted->body == kAnyText) {
      if (every_escape) {
        body.kind = kAnyText;
      } else if (counted->max >= 0) {  // else it is any text with every escape when it is long enough
        body.kind = kAnyTextFewEscapes;
      }
      body.any_text = true;
      body.min_left = counted->min;
      body.max_left = counted->max;
    } else if (counted && counted->body != kNothing) {
      body.counted_kind = counted->body;
      body.counted_min = counted->min;
      body.counted_max = counted->max;
    }
  }
  body.every_escape = (body.any_text || body.takes_all) && every_escape;
}

void SchemaMachine::add_used(Frame frame, std::string_view prefix, size_t n_tag,
                             std::vector<std::string_view>& rests) const {
  for (uint32_t list = frames_.list(frame); list != 0; list = frames_.list_parent(list)) {
    const std::string_view used = wants_.strings.at(frames_.list_string(list));
    if (used.starts_with(prefix)) rests.push_back(used.substr(std::max(prefix.size(), n_tag)));
  }
}

StringBody SchemaMachine::value_body(const Place& p) {
  const auto langs = texts_.at(p.text);
  StringBody body;
  body.any_text = langs[0] == kAnyText;
  body.kind = langs[0];
  body.min_left = p.min_left;
  body.max_left = p.max_left;
  tell_kind(body, !only_needed_escapes(p));
  body.after = kDead;
  for (size_t i = 1; i < langs.size(); ++i) {
    if (langs[i] != kNothing && langs[i] != kAnyText) body.same_after = false;
  }
  if (!body.same_after) return body;
  std::vector<uint8_t> truth;
  truth_of(wants_.scalar(want_at(p.frame), ValueKind::kString), langs, truth);
  if (frames_.captures(p.frame) && !frames_.compares_items(p.frame)) {
    body.after = end_value(p.frame, truth, kUnknownText);
    body.reach.brackets = false;
  } else if (frames_.captures(p.frame)) {
    compared_body(p, truth, body);
  } else {
    body.after = end_value(p.frame, truth, 0);
  }
  return body;
}

/// A string that is compared with others: what follows the quote hangs on all of the text.
void SchemaMachine::compared_body(const Place& p, std::span<const uint8_t> truth, StringBody& body) {
  body.same_after =
      frames_.compares_items(p.frame) && !frames_.captures(frames_.parent(p.frame)) && frames_.must_differ(p.frame);
  if (!body.same_after) return;
  const auto text = canonical_value(chain_text(frames_.mark(p.frame), p.capture) + "\"");
  if (text) add_used(p.frame, *text, 1, body.except);
  Place next;
  next.phase = Phase::kAfterValue;
  next.frame = frames_.end_value(p.frame, truth, 0);
  if (next.frame == kNoFrame) return;
  body.after = intern(next);
  // A comma and a quote: no other item has ended. But with this text the last one may have been used up.
  const Frame item = frames_.begin_item(next.frame, 0);
  body.reach.n_bytes = item != kNoFrame && may_be_used_up(item) ? 0 : 2;
}

/// Whether one more value that is not known yet can decide if another item is possible.
bool SchemaMachine::may_be_used_up(Frame item) {
  for (const ValueKind kind : {ValueKind::kNull, ValueKind::kTrue, ValueKind::kFalse}) {
    std::vector<uint8_t> truth;
    if (wants_.literal(want_at(item), kind, truth)) return true;  // told apart from the unknown value by comparing
  }
  size_t n_values = 0;
  for (uint32_t list = frames_.list(item); list != 0; list = frames_.list_parent(list)) ++n_values;
  return n_values >= kTakenOutMax || has_one_text(plan_at(item, ValueKind::kString).allowed);
}

/// Whether the language has one text, or seems so for long.
bool SchemaMachine::has_one_text(Lang lang) {
  constexpr int kBytesMax = 1024;
  if (lang == kAnyText) return false;
  for (int n_bytes = 0; n_bytes < kBytesMax; ++n_bytes) {
    Lang next = kNothing;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const Lang there = languages_->next(lang, static_cast<uint8_t>(byte));
      if (there == kNothing) continue;
      if (next != kNothing || languages_->accepts_empty(lang)) return false;
      next = there;
    }
    if (next == kNothing) return true;
    lang = next;
  }
  return true;
}

std::optional<StringBody> SchemaMachine::key_body(const Place& p) {
  const auto words = texts_.at(p.text);
  const bool named = words[0] == kNamed;
  const size_t at_others = named ? 4 : 1;
  if (words[at_others] == kNothing) return std::nullopt;  // a few names: soon walked
  const NameSet& set = *frames_.names(p.frame);
  StringBody body;
  body.kind = words[at_others];
  body.min_left = 0;
  body.max_left = -1;
  body.after = kDead;
  if (named && body.kind != kAnyText) {
    std::vector<Lang> all{words[at_others]};
    for (uint32_t name = words[1]; name < words[2]; ++name) {
      if (set.offers(name)) all.push_back(languages_->text(set.table->names[name].substr(words[3])));
    }
    body.kind = languages_->any_of(all);
  }
  body.any_text = body.kind == kAnyText;
  tell_kind(body, !only_needed_escapes(p));
  if (body.any_text && !body.every_escape) body.kind = kAnyNameFewEscapes;
  std::vector<uint32_t> patterns;
  if (set.one_class) patterns = set.patterns;
  for (size_t i = at_others + 1; i < words.size(); ++i) {
    if (words[i] != kNothing && words[i] != kAnyText) body.same_after = false;
    if (words[i] == kAnyText) patterns.push_back(static_cast<uint32_t>(i - at_others - 1));
  }
  body.same_after = body.same_after && !frames_.captures(p.frame);
  if (!body.same_after) return body;
  for (uint32_t name = words[1]; named && name < words[2]; ++name) {
    body.except.push_back(set.table->names[name].substr(words[3]));
  }
  if (set.remember) {
    add_used(p.frame, key_text(p), 0, body.except);
    // `:1,"`: no other name has ended. But this may be the last one of those that are free.
    body.reach.n_bytes = has_one_text(set.others) ? 2 : 4;
  }
  body.reach.values = false;
  body.after = after_other_name(p.frame, set, patterns);
  return body;
}

State SchemaMachine::after_other_name(Frame frame, const NameSet& set, std::span<const uint32_t> patterns) {
  return before_member(frame, frames_.class_of_others(frame, patterns), set.remember ? 0 : kForgotten);
}

/// Behind a name of the class, up to the end of the member's value: the same for all objects in which the value must be
/// the same. Precondition: !captures(frame)
State SchemaMachine::before_member(Frame frame, uint32_t name_class, uint32_t other) {
  const uint64_t key = uint64_t{frame} << 32 | name_class;
  if (const auto known = after_names_.find(key); known != after_names_.end()) return known->second;
  const Want want = frames_.member_want(frame, name_class, other);
  State state = kDead;
  if (const auto known = before_members_.find(want); known != before_members_.end()) {
    state = known->second;
  } else if (want != kNoValue) {
    Place next;
    next.phase = Phase::kAfterKey;
    next.frame = frames_.begin_member(frame, name_class, other);
    if (!failure().empty() || next.frame == kNoFrame) return kDead;  // not to be relied on
    state = before_members_[want] = intern(next);
  }
  if (!failure().empty()) return kDead;
  return after_names_[key] = state;
}

int64_t SchemaMachine::text_bytes(const Place& p) {
  const auto words = texts_.at(p.text);
  if (p.phase == Phase::kNumber) {
    const ScalarPlan& plan = wants_.scalar(want_at(p.frame), ValueKind::kNumber);
    return frames_.text_end_cost(p.frame, ValueKind::kNumber, plan, words, 0);
  }
  if (p.phase == Phase::kStringEscape || p.phase == Phase::kKeyEscape) return escape_bytes(p);
  if (p.phase == Phase::kString) {
    const ScalarPlan& plan = wants_.scalar(want_at(p.frame), ValueKind::kString);
    const int64_t n_bytes = p.min_left + static_cast<int64_t>(p.aux);
    return 1 + frames_.text_end_cost(p.frame, ValueKind::kString, plan, words, n_bytes);
  }
  int64_t best = other_name_bytes(p);
  if (words[0] == kNamed) best = std::min(best, frames_.name_cost(p.frame, words[1], words[2], words[3]));
  return best;
}

/// Bytes to the end by way of the best short escape, or else of the first character that \u with the digits so far can be.
int64_t SchemaMachine::escape_bytes(const Place& p) {
  const auto behind = [&](State state) { return state == kDead ? kNever : text_bytes(place(state)); };
  int64_t best = kNever;
  if (p.aux == kBackslash) {
    for (const char c : std::string_view("\"\\/bfnrt")) {
      best = std::min(best, 1 + behind(escape_byte(p, static_cast<uint8_t>(c), p.capture)));
    }
    const State by_code = best < kNever ? kDead : escape_byte(p, 'u', p.capture);
    return by_code == kDead ? std::min(best, kNever) : std::min(best, 1 + behind(by_code));
  }
  // One digit after the other, the lowest that goes on.
  const std::string_view all = p.aux == kSecondBackslash ? "\\" : p.aux == kSecondU ? "u" : "0123456789abcdef";
  for (const char c : all) {
    const State next = escape_byte(p, static_cast<uint8_t>(c), p.capture);
    if (next != kDead) return std::min(kNever, 1 + behind(next));
  }
  return kNever;
}

/// Bytes to the end by way of a name that is none of the table's, of the best class.
int64_t SchemaMachine::other_name_bytes(const Place& p) {
  const auto words = texts_.at(p.text);
  const size_t at_others = words[0] == kNamed ? 4 : 1;
  const Lang others = words[at_others];
  if (others == kNothing) return kNever;
  int64_t best = other_name_bytes(p, others);
  if (words.size() == at_others + 1) return best;  // no patterns, or all alike
  const auto patterns = words.subspan(at_others + 1);
  for (const std::vector<uint32_t>& some : frames_.pattern_sets(p.frame)) {
    std::vector<Lang> with{others}, without;
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      const bool is_in = std::find(some.begin(), some.end(), i) != some.end();
      (is_in ? with : without).push_back(patterns[i]);
    }
    Lang names = languages_->all_of(with);
    if (frames_.pattern_sets_are_exact(p.frame)) names = languages_->except(names, languages_->any_of(without));
    if (!languages_->is_empty(names)) best = std::min(best, other_name_bytes(p, names));
  }
  return best;
}

/// The same by way of a shortest of `names` that is a new one.
int64_t SchemaMachine::other_name_bytes(const Place& p, Lang names) {
  constexpr size_t kBytesMax = 64;  // more than names differ in
  const auto words = texts_.at(p.text);
  const bool named = words[0] == kNamed;
  const NameSet& set = *frames_.names(p.frame);
  std::vector<Lang> langs(words.begin() + (named ? 4 : 1), words.end());
  const Lang plain = wants_.plain_texts(names);
  langs[0] = languages_->is_empty(plain) ? names : plain;
  const std::string read = named || set.remember ? key_text(p) : std::string();
  const auto is_taken = [&](const std::string& name) {
    const auto& declared = set.table->names;
    if (named && std::binary_search(declared.begin(), declared.end(), std::string_view(name))) return true;
    for (uint32_t list = set.remember ? frames_.list(p.frame) : 0; list != 0; list = frames_.list_parent(list)) {
      if (frames_.list_string(list) == 0 || wants_.strings.at(frames_.list_string(list)) == name) return true;
    }
    return false;
  };
  std::string rest;
  const auto follow = [&](uint8_t byte) {
    for (Lang& lang : langs) lang = lang == kNothing ? kNothing : languages_->next(lang, byte);
    rest += static_cast<char>(byte);
  };
  const auto finish = [&] {  // in the shortest way, of these the first
    for (int64_t left = languages_->shortest(langs[0]); left > 0; --left) {
      for (uint32_t byte = 0; byte < 256; ++byte) {
        const Lang next = languages_->next(langs[0], static_cast<uint8_t>(byte));
        if (next == kNothing || languages_->shortest(next) != left - 1) continue;
        follow(static_cast<uint8_t>(byte));
        break;
      }
    }
  };
  finish();
  while (is_taken(read + rest)) {  // one byte more that makes it new, or else any that goes on
    const std::vector<Lang> before = langs;
    const std::string taken = rest;
    bool is_new = false;
    int32_t goes_on = -1;
    for (uint32_t byte = ' '; byte < 0x7F && !is_new && rest.size() < kBytesMax; ++byte) {
      if (languages_->next(before[0], static_cast<uint8_t>(byte)) == kNothing) continue;
      langs = before;
      rest = taken;
      follow(static_cast<uint8_t>(byte));
      finish();
      if (goes_on < 0) goes_on = static_cast<int32_t>(byte);
      is_new = !is_taken(read + rest);
    }
    if (is_new) break;
    if (goes_on < 0) return kNever;
    langs = before;
    rest = taken;
    follow(static_cast<uint8_t>(goes_on));
    finish();
  }
  std::vector<uint32_t> patterns;
  if (set.one_class) patterns = set.patterns;
  for (size_t i = 1; i < langs.size(); ++i) {
    if (languages_->accepts_empty(langs[i])) patterns.push_back(static_cast<uint32_t>(i - 1));
  }
  const uint32_t name_class = frames_.class_of_others(p.frame, patterns);
  return frames_.other_name_cost(p.frame, name_class, Wants::string_bytes(rest));
}

}  // namespace deepinfer::grammar
