#include "grammar/schema_machine.h"

#include <algorithm>

#include "grammar/schema_machine_impl.h"
#include "grammar/schema_unique.h"

namespace deepinfer::grammar {
namespace {

constexpr std::string_view kLiterals[] = {"null", "true", "false"};
constexpr ValueKind kLiteralKinds[] = {ValueKind::kNull, ValueKind::kTrue, ValueKind::kFalse};
constexpr std::string_view kLiteralValues[] = {"z", "t", "f"};
constexpr int32_t kLineEndsMax = 255, kBlanksMax = 0xFFFF;  // as many as a state can count

bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

}  // namespace

SchemaMachine::SchemaMachine(std::unique_ptr<Languages> languages, Schema schema, const SchemaOptions& options)
    : languages_(std::move(languages)),
      schema_(std::move(schema)),
      options_(options),
      wants_(*languages_, schema_, options.order),
      frames_(wants_) {
  wants_.formulas.set_fuel(languages_->fuel());
  states_.intern(std::span<const uint32_t>());  // kDead
  texts_.intern(std::span<const uint32_t>());
  chain_.intern({0, 0});
  chain_.intern({0, 1});  // kUnknownText
  chain_.intern({0, 2});  // the start of names that are remembered
  const NodeId root = wants_.resolve(schema_.root);
  if (root == kTrueNode) {
    root_want_ = kAnyValue;
  } else if (root != kFalseNode) {
    root_want_ = wants_.want(wants_.formulas.variable(0), {&root, 1});
  }
  if (frames_.value_cost(root_want_) < kNever) {
    Place p;
    p.phase = Phase::kValue;
    start_ = intern(p);
    constexpr std::string_view kFirstBytes = "{[\"-0123456789tfn";
    const bool any = std::any_of(kFirstBytes.begin(), kFirstBytes.end(),
                                 [this](char c) { return step(start_, static_cast<uint8_t>(c)) != kDead; });
    if (!any) start_ = kDead;
    if (any) prepare();
  }
}

std::string_view SchemaMachine::failure() const {
  if (languages_->exhausted()) return "out of memory or time";
  if (wants_.overflown()) return "the schema is too deeply nested in place";
  return {};
}

State SchemaMachine::intern(const Place& p) {
  return states_.intern({static_cast<uint32_t>(p.phase) | p.aux << 8, p.frame, p.text, p.bits,
                         static_cast<uint32_t>(p.min_left), static_cast<uint32_t>(p.max_left), p.capture});
}

SchemaMachine::Place SchemaMachine::place(State state) const {
  const auto w = states_.at(state);
  Place p;
  p.phase = static_cast<Phase>(w[0] & 0xFF);
  p.aux = w[0] >> 8;
  p.frame = w[1];
  p.text = w[2];
  p.bits = w[3];
  p.min_left = static_cast<int32_t>(w[4]);
  p.max_left = static_cast<int32_t>(w[5]);
  p.capture = w[6];
  return p;
}

std::string SchemaMachine::chain_text(uint32_t from, uint32_t to) const {
  std::string text;
  for (; to != from && to > kUnknownText; to = chain_.at(to)[0]) text += static_cast<char>(chain_.at(to)[1]);
  std::reverse(text.begin(), text.end());
  return text;
}

State SchemaMachine::step(State from, uint8_t byte) {
  if (from == kDead) return kDead;
  if (const State* known = steps_.find(from, byte)) return *known;
  const State to = failure().empty() ? fresh_step(from, byte) : kDead;
  if (!failure().empty()) return kDead;  // not to be relied on
  steps_.put(from, byte, to);
  return to;
}

/// Inside strings without the states between the bytes: a text of n bytes is one new state, not n.
State SchemaMachine::steps(State from, std::string_view bytes) {
  while (!bytes.empty() && from != kDead) {
    if (bytes.size() > 1 && (phase(from) == Phase::kString || phase(from) == Phase::kKey)) {
      Place p = place(from);
      const std::optional<size_t> n_raw = feed_raw(p, bytes);
      if (!n_raw || !failure().empty()) return kDead;
      if (*n_raw > 0) {
        from = intern(p);
        bytes.remove_prefix(*n_raw);
        continue;
      }
    }
    from = step(from, static_cast<uint8_t>(bytes[0]));
    bytes.remove_prefix(1);
  }
  return from;
}

State SchemaMachine::fresh_step(State from, uint8_t byte) {
  const Place p = place(from);
  if (is_blank(byte) && takes_blanks(p)) return blank(p, byte);
  const uint32_t capture = frames_.captures(p.frame) ? extended(p.capture, byte) : 0;
  switch (p.phase) {
    case Phase::kDone:
      return kDead;
    case Phase::kValue:
      return begin_value(p, byte, capture);
    case Phase::kObjectStart:
      if (byte == '}') return close(p, capture);
      return byte == '"' ? begin_key(p, capture) : kDead;
    case Phase::kBeforeKey:
      return byte == '"' ? begin_key(p, capture) : kDead;
    case Phase::kAfterKey: {
      if (byte != ':') return kDead;
      Place next;
      next.phase = Phase::kValue;
      next.frame = p.frame;
      next.capture = capture;
      return intern(next);
    }
    case Phase::kArrayStart: {
      if (byte == ']') return close(p, capture);
      Place item = p;
      item.frame = frames_.begin_item(p.frame, p.capture);
      return item.frame == kNoFrame ? kDead : begin_value(item, byte, capture);
    }
    case Phase::kAfterValue:
      if (byte == ',') return comma(p, capture);
      return byte == (frames_.is_object(p.frame) ? '}' : ']') ? close(p, capture) : kDead;
    case Phase::kString:
      return string_byte(p, byte, capture);
    case Phase::kKey:
      return key_byte(p, byte, capture);
    case Phase::kStringEscape:
    case Phase::kKeyEscape:
      return escape_byte(p, byte, capture);
    case Phase::kNumber:
      return number(p, byte, capture);
    case Phase::kLiteral:
      return literal(p, byte, capture);
  }
  return kDead;
}

// ---- blanks ----

bool SchemaMachine::takes_blanks(const Place& p) const {
  return p.phase >= Phase::kValue && p.phase <= Phase::kAfterValue && p.frame != kOutside;
}

State SchemaMachine::blank(Place p, uint8_t byte) {
  uint32_t lines = p.aux >> 16, blanks = p.aux & 0xFFFF;
  byte == '\n' ? ++lines : ++blanks;
  if (static_cast<int32_t>(lines) > std::min(options_.line_ends_max, kLineEndsMax)) return kDead;
  if (static_cast<int32_t>(blanks) > std::min(options_.blanks_max, kBlanksMax)) return kDead;
  p.aux = lines << 16 | blanks;
  return intern(p);
}

std::optional<Blanks> SchemaMachine::blanks(State state) {
  if (state == kDead || phase(state) < Phase::kValue || phase(state) > Phase::kAfterValue) return std::nullopt;
  Place p = place(state);
  if (!takes_blanks(p)) return Blanks{state, 0, 0};  // around the whole text
  const auto left = [](int32_t n_max, uint32_t n) { return std::max(n_max - static_cast<int32_t>(n), 0); };
  const int32_t n_line_ends = left(std::min(options_.line_ends_max, kLineEndsMax), p.aux >> 16);
  const int32_t n_others = left(std::min(options_.blanks_max, kBlanksMax), p.aux & 0xFFFF);
  if (p.aux == 0) return Blanks{state, n_line_ends, n_others};
  p.aux = 0;
  return Blanks{intern(p), n_line_ends, n_others};
}

// ---- values ----

std::optional<NumberBody> SchemaMachine::number_body(State state) {
  if (state == kDead || phase(state) != Phase::kNumber) return std::nullopt;
  const Place p = place(state);
  std::vector<uint8_t> truth;
  NumberBody body{texts_.at(p.text)[0], p.frame != kOutside && end_number(p, truth), kDead};
  if (body.ends) body.after = end_value(p.frame, truth, p.capture);
  return body;
}

uint32_t SchemaMachine::number_kind(State state) {
  if (state == kDead || (phase(state) != Phase::kValue && phase(state) != Phase::kArrayStart)) return 0;
  const Place p = place(state);
  const Frame frame = p.phase == Phase::kValue ? p.frame : frames_.begin_item(p.frame, p.capture);
  return frame == kNoFrame ? kNothing : plan_at(frame, ValueKind::kNumber).allowed;
}

/// The bytes that a value may begin with, some too many.
const NextBytes& SchemaMachine::first_bytes(Want want) {
  const auto [found, is_new] = first_bytes_.try_emplace(want);
  NextBytes& bytes = found->second;
  if (!is_new) return bytes;
  if (want == kNoValue) return bytes;
  if (frames_.value_cost(want, ValueKind::kObject) < kNever) bytes.insert('{');
  if (frames_.value_cost(want, ValueKind::kArray) < kNever) bytes.insert('[');
  if (wants_.scalar(want, ValueKind::kString).allowed != kNothing) bytes.insert('"');
  if (wants_.scalar(want, ValueKind::kNumber).allowed != kNothing) {
    for (const char c : std::string_view("-0123456789")) bytes.insert(static_cast<uint8_t>(c));
  }
  for (uint32_t i = 0; i < std::size(kLiterals); ++i) {
    std::vector<uint8_t> truth;
    if (wants_.literal(want, kLiteralKinds[i], truth)) bytes.insert(static_cast<uint8_t>(kLiterals[i][0]));
  }
  return bytes;
}

State SchemaMachine::begin_value(const Place& p, uint8_t byte, uint32_t capture) {
  if (byte == '{') return open(p, ValueKind::kObject, capture);
  if (byte == '[') return open(p, ValueKind::kArray, capture);
  if (byte == '"') return begin_scalar(p, ValueKind::kString, capture);
  for (uint32_t i = 0; i < std::size(kLiterals); ++i) {
    if (byte != static_cast<uint8_t>(kLiterals[i][0])) continue;
    if (!literal_allowed(p.frame, kLiteralKinds[i])) return kDead;
    Place next;
    next.phase = Phase::kLiteral;
    next.aux = i << 4 | 1;
    next.frame = p.frame;
    next.capture = capture;
    return intern(next);
  }
  if (byte != '-' && (byte < '0' || byte > '9')) return kDead;
  Place next = p;
  next.phase = Phase::kNumber;
  next.aux = 0;
  const ScalarPlan& plan = plan_at(p.frame, ValueKind::kNumber);
  if (plan.allowed == kNothing) return kDead;
  next.text = text_of(plan);
  return number(next, byte, capture);
}

bool SchemaMachine::literal_allowed(Frame frame, ValueKind kind) {
  std::vector<uint8_t> truth;
  if (!wants_.literal(want_at(frame), kind, truth)) return false;
  if (!frames_.compares_items(frame) || !frames_.must_differ(frame)) return true;
  return !frames_.lists(frames_.list(frame), wants_.strings.intern(kLiteralValues[static_cast<size_t>(kind)]));
}

const ScalarPlan& SchemaMachine::plan_at(Frame frame, ValueKind kind) {
  const Want want = want_at(frame);
  const ScalarPlan& plan = wants_.scalar(want, kind);
  if (!frames_.compares_items(frame) || frames_.list(frame) == 0) return plan;
  if (plan.allowed == kNothing || plan.allowed == kAnyText || wants_.is_any_number(plan.allowed)) return plan;
  if (!frames_.must_differ(frame)) return plan;
  const char tag = kind == ValueKind::kString ? 's' : 'n';
  std::vector<std::string> values;
  for (uint32_t list = frames_.list(frame); list != 0; list = frames_.list_parent(list)) {
    const std::string& value = wants_.strings.at(frames_.list_string(list));
    if (!value.empty() && value[0] == tag) values.push_back(value.substr(1));
    if (values.size() > kTakenOutMax) return plan;
  }
  if (values.empty()) return plan;
  const uint64_t key = (uint64_t{frames_.list(frame)} << 32 | want) * 2 + (kind == ValueKind::kString ? 1 : 0);
  if (const auto found = plans_without_.find(key); found != plans_without_.end()) return found->second;
  std::vector<const std::string*> pointers;
  for (const std::string& value : values) pointers.push_back(&value);
  n_bytes_ += 200;
  return plans_without_.emplace(key, wants_.scalar_without(plan, kind, pointers)).first->second;
}

/// Before the first byte.
uint32_t SchemaMachine::text_of(const ScalarPlan& plan) {
  if (plan.tracked.empty()) return texts_.intern({plan.allowed});
  std::vector<uint32_t> langs{plan.allowed};
  langs.insert(langs.end(), plan.tracked.begin(), plan.tracked.end());
  return texts_.intern(langs);
}

State SchemaMachine::begin_scalar(const Place& p, ValueKind kind, uint32_t capture) {
  const ScalarPlan& plan = plan_at(p.frame, kind);
  if (plan.allowed == kNothing) return kDead;
  Place next;
  next.phase = Phase::kString;
  next.frame = p.frame;
  next.text = text_of(plan);
  next.min_left = plan.min_length;
  next.max_left = plan.max_length;
  next.capture = capture;
  return intern(next);
}

State SchemaMachine::open(const Place& p, ValueKind kind, uint32_t capture) {
  Place next;
  next.phase = kind == ValueKind::kObject ? Phase::kObjectStart : Phase::kArrayStart;
  next.frame = frames_.open(want_at(p.frame), kind, p.frame);
  if (next.frame == kNoFrame || !frames_.can_go_on(next.frame)) return kDead;
  next.capture = frames_.captures(p.frame) ? capture : 0;
  return intern(next);
}

State SchemaMachine::close(const Place& p, uint32_t capture) {
  std::vector<uint8_t> truth;
  if (!frames_.close(p.frame, truth)) return kDead;
  const Frame around = frames_.parent(p.frame);
  return end_value(around, truth, frames_.captures(around) ? capture : 0);
}

State SchemaMachine::comma(const Place& p, uint32_t capture) {
  Place next;
  next.frame = p.frame;
  next.capture = frames_.captures(frames_.parent(p.frame)) ? capture : 0;
  if (frames_.is_object(p.frame)) {
    if (frames_.names(p.frame) == nullptr) return kDead;
    next.phase = Phase::kBeforeKey;
    return intern(next);
  }
  next.phase = Phase::kValue;
  next.frame = frames_.begin_item(p.frame, next.capture);
  return next.frame == kNoFrame || !item_possible(next.frame) ? kDead : intern(next);
}

bool SchemaMachine::item_possible(Frame frame) {
  if (!frames_.compares_items(frame) || frames_.list(frame) == 0 || !frames_.must_differ(frame)) return true;
  for (const ValueKind kind : kLiteralKinds) {
    if (literal_allowed(frame, kind)) return true;
  }
  for (const ValueKind kind : {ValueKind::kString, ValueKind::kNumber}) {
    if (plan_at(frame, kind).allowed != kNothing) return true;
  }
  const Want want = want_at(frame);
  return frames_.value_cost(want, ValueKind::kObject) < kNever || frames_.value_cost(want, ValueKind::kArray) < kNever;
}

State SchemaMachine::end_value(Frame frame, std::span<const uint8_t> truth, uint32_t capture) {
  Place next;
  if (frame == kOutside) return intern(next);
  next.phase = Phase::kAfterValue;
  next.frame = ended_frame(frame, truth, capture);
  if (next.frame == kNoFrame) return kDead;
  next.capture = frames_.captures(frames_.parent(frame)) ? capture : 0;
  return intern(next);
}

/// The frame behind its value. Whether it can go on takes long to find out, and hangs on what the value was only where that
/// is compared.
Frame SchemaMachine::ended_frame(Frame frame, std::span<const uint8_t> truth, uint32_t capture) {
  constexpr size_t kTruthMax = 31;
  const auto living = [this](Frame f) { return f == kNoFrame || !frames_.can_go_on(f) ? kNoFrame : f; };
  if (frames_.compares_items(frame)) {
    const std::optional<std::string> canonical = canonical_value(chain_text(frames_.mark(frame), capture));
    if (!canonical) return kNoFrame;
    return living(frames_.end_value(frame, truth, wants_.strings.intern(*canonical)));
  }
  if (truth.size() > kTruthMax) return living(frames_.end_value(frame, truth, 0));
  uint32_t bits = 1;
  for (const uint8_t t : truth) bits = bits << 1 | t;
  const uint64_t key = uint64_t{frame} << 32 | bits;
  if (const auto found = ended_.find(key); found != ended_.end()) return found->second;
  const Frame ended = living(frames_.end_value(frame, truth, 0));
  ended_.emplace(key, ended);
  return ended;
}

State SchemaMachine::literal(const Place& p, uint8_t byte, uint32_t capture) {
  const uint32_t which = p.aux >> 4, at = p.aux & 15;
  if (byte != static_cast<uint8_t>(kLiterals[which][at])) return kDead;
  Place next = p;
  next.aux = which << 4 | (at + 1);
  next.capture = capture;
  if (at + 1 < kLiterals[which].size()) return intern(next);
  std::vector<uint8_t> truth;
  wants_.literal(want_at(p.frame), kLiteralKinds[which], truth);
  return end_value(p.frame, truth, capture);
}

State SchemaMachine::number(const Place& p, uint8_t byte, uint32_t capture) {
  const bool inside =
      (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' || byte == 'E';
  if (!inside) {
    std::vector<uint8_t> truth;
    if (p.frame == kOutside || !end_number(p, truth)) return kDead;
    return step(end_value(p.frame, truth, p.capture), byte);  // one level: a value has ended
  }
  Place next = p;
  if (!feed_string(next, byte)) return kDead;
  next.capture = capture;
  return intern(next);
}

bool SchemaMachine::end_number(const Place& p, std::vector<uint8_t>& truth) {
  const auto langs = texts_.at(p.text);
  return languages_->accepts_empty(langs[0]) &&
         truth_of(wants_.scalar(want_at(p.frame), ValueKind::kNumber), langs, truth);
}

bool SchemaMachine::truth_of(const ScalarPlan& plan, std::span<const uint32_t> langs, std::vector<uint8_t>& truth) {
  truth.clear();
  size_t n_tracked = 0;
  for (const uint8_t t : plan.truth) {
    if (t != ScalarPlan::kTracked) {
      truth.push_back(t == ScalarPlan::kIsTrue ? 1 : 0);
    } else {
      truth.push_back(languages_->accepts_empty(langs[++n_tracked]) ? 1 : 0);
    }
  }
  return true;
}

// ---- questions ----

bool SchemaMachine::complete(State state) {
  if (state == kDead) return false;
  const Place p = place(state);
  std::vector<uint8_t> truth;
  return p.phase == Phase::kDone || (p.phase == Phase::kNumber && p.frame == kOutside && end_number(p, truth));
}

int64_t SchemaMachine::distance(State state) {
  if (state == kDead) return -1;
  const Place p = place(state);
  const auto value = [&] {
    return p.frame == kOutside ? frames_.value_bytes(root_want_) : frames_.finish_cost(p.frame);
  };
  int64_t bytes = 0;
  switch (p.phase) {
    case Phase::kDone:
      break;
    case Phase::kValue:
      bytes = value();
      break;
    case Phase::kObjectStart:
    case Phase::kArrayStart:
    case Phase::kAfterValue:
      bytes = frames_.finish_cost(p.frame);
      break;
    case Phase::kBeforeKey: {
      const State key = begin_key(p, p.capture);
      bytes = key == kDead ? kNever : 1 + text_bytes(place(key));
      break;
    }
    case Phase::kAfterKey:
      bytes = 1 + value();
      break;
    case Phase::kLiteral: {
      std::vector<uint8_t> truth;
      wants_.literal(want_at(p.frame), kLiteralKinds[p.aux >> 4], truth);
      bytes = static_cast<int64_t>(kLiterals[p.aux >> 4].size() - (p.aux & 15));
      bytes += frames_.after_value_cost(p.frame, truth);
      break;
    }
    default:
      bytes = text_bytes(p);
  }
  return bytes >= kNever ? -1 : bytes;
}

std::optional<NextBytes> SchemaMachine::next_bytes(State state) {
  if (state == kDead) return NextBytes{};
  const Place p = place(state);
  NextBytes bytes;
  const auto insert = [&](std::string_view all) {
    for (const char c : all) bytes.insert(static_cast<uint8_t>(c));
  };
  if (takes_blanks(p)) {
    if (static_cast<int32_t>(p.aux >> 16) < options_.line_ends_max) insert("\n");
    if (static_cast<int32_t>(p.aux & 0xFFFF) < options_.blanks_max) insert(" \t\r");
  }
  switch (p.phase) {
    case Phase::kDone:
      return bytes;
    case Phase::kValue: {
      const NextBytes& first = first_bytes(want_at(p.frame));
      for (size_t i = 0; i < bytes.words.size(); ++i) bytes.words[i] |= first.words[i];
      return bytes;
    }
    case Phase::kArrayStart: {
      insert("]");
      const Frame item = frames_.begin_item(p.frame, p.capture);
      if (item == kNoFrame) return bytes;
      const NextBytes& first = first_bytes(want_at(item));
      for (size_t i = 0; i < bytes.words.size(); ++i) bytes.words[i] |= first.words[i];
      return bytes;
    }
    case Phase::kObjectStart:
      insert("}\"");
      return bytes;
    case Phase::kBeforeKey:
      insert("\"");
      return bytes;
    case Phase::kAfterKey:
      insert(":");
      return bytes;
    case Phase::kAfterValue:
      insert(frames_.is_object(p.frame) ? ",}" : ",]");
      return bytes;
    case Phase::kNumber:
      insert("0123456789+-.eE,]} \t\r\n");
      return bytes;
    case Phase::kLiteral:
      bytes.insert(static_cast<uint8_t>(kLiterals[p.aux >> 4][p.aux & 15]));
      return bytes;
    case Phase::kStringEscape:
    case Phase::kKeyEscape:
      insert("\"\\/bfnrtu0123456789abcdefABCDEF");
      return bytes;
    case Phase::kKey: {
      const auto words = texts_.at(p.text);
      if (words[0] != 0 || words[4] != kNothing) return std::nullopt;
      const MemberTable& table = *frames_.names(p.frame)->table;
      insert("\"\\");
      for (uint32_t name = words[1]; name < words[2]; ++name) {
        if (table.names[name].size() > words[3]) bytes.insert(static_cast<uint8_t>(table.names[name][words[3]]));
      }
      return bytes;
    }
    case Phase::kString:
      return std::nullopt;
  }
  return std::nullopt;
}

int64_t SchemaMachine::n_bytes() const {
  return n_bytes_ + wants_.n_bytes() + frames_.n_bytes() + states_.n_bytes() + texts_.n_bytes() + chain_.n_bytes() +
         steps_.n_bytes() +
         static_cast<int64_t>((after_names_.size() + before_members_.size() + ended_.size()) * 40 +
                              characters_.size() * 120 + sizeof(SchemaMachine));
}

std::variant<std::unique_ptr<Machine>, Refusal> build_schema_machine(std::unique_ptr<Languages> languages,
                                                                     Schema schema, const SchemaOptions& options) {
  auto machine = std::make_unique<SchemaMachine>(std::move(languages), std::move(schema), options);
  if (!machine->failure().empty()) return Refusal{"#", "", std::string(machine->failure())};
  return std::unique_ptr<Machine>(std::move(machine));
}

std::unique_ptr<Machine> make_schema_machine(std::unique_ptr<Languages> languages, Schema schema,
                                             const SchemaOptions& options) {
  return std::make_unique<SchemaMachine>(std::move(languages), std::move(schema), options);
}

}  // namespace deepinfer::grammar
