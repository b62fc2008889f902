#include "grammar/tagged_machine.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>

#include "grammar/begin_trie.h"
#include "grammar/byte_set.h"
#include "grammar/tuple_table.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kRegionsMax = 1024;
constexpr size_t kBeginBytesMax = size_t{16} << 10;  // of all regions together
constexpr size_t kEndBytesMax = 1024;
constexpr int64_t kBytesMax = int64_t{128} << 20;

std::vector<std::string_view> begins_of(const auto& regions) {
  std::vector<std::string_view> begins;
  for (const auto& region : regions) begins.push_back(region.begin);
  return begins;
}

/// Bytes until the character is whole.
int64_t n_left(Utf8State state) {
  constexpr int8_t kLeft[kNumUtf8States] = {0, 1, 2, 3, 2, 2, 3, 3};
  static_assert(kBetween == 0 && kOneLeft == 1 && kTwoLeft == 2 && kThreeLeft == 3 && kNumUtf8States == 8);
  return kLeft[state];
}
static_assert(kAfterE0 >= 4 && kAfterED >= 4 && kAfterF0 >= 6 && kAfterF4 >= 6);

/// One way to read the text so far, in two words.
struct Way {
  enum Kind : uint32_t {
    kFree,      // value: a node of the begins and a UTF-8 state; no region yet, and one must come
    kFreeDone,  // the same; the text may end
    kBegin,     // where there is no free text: a node of the begins; at the root the text may not end
    kBeginDone,
    kInside,  // from here on two kinds per region. Value: a state of the content
    kEnding,  // so many bytes of the end string are read, at least one
  };
  uint32_t kind, value;
  bool operator<(const Way& other) const { return kind != other.kind ? kind < other.kind : value < other.value; }
  bool operator==(const Way&) const = default;

  static Way free(uint32_t node, Utf8State utf8, bool done) { return {done ? kFreeDone : kFree, node << 4 | utf8}; }
  static Way begin(uint32_t node, bool done) { return {done ? kBeginDone : kBegin, node}; }
  static Way inside(uint32_t region, State state) { return {kInside + 2 * region, state}; }
  static Way ending(uint32_t region, uint32_t n_read) { return {kEnding + 2 * region, n_read}; }

  [[nodiscard]] bool is_free() const { return kind <= kFreeDone; }
  [[nodiscard]] bool is_begin() const { return kind == kBegin || kind == kBeginDone; }
  [[nodiscard]] bool is_done() const { return kind == kFreeDone || kind == kBeginDone; }
  [[nodiscard]] bool is_inside() const { return kind >= kInside && kind % 2 == kInside % 2; }
  [[nodiscard]] uint32_t region() const { return (kind - kInside) / 2; }
  [[nodiscard]] uint32_t node() const { return is_free() ? value >> 4 : value; }
  [[nodiscard]] Utf8State utf8() const { return static_cast<Utf8State>(value & 15); }
};
static_assert(Way::kInside % 2 == 0);

class TaggedMachine : public Machine {
 public:
  TaggedMachine(std::vector<TaggedRegion> regions, bool free_text, bool region_required);

  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override;
  bool complete(State state) override;
  int64_t distance(State state) override;
  std::optional<StringBody> string_body(State state) override;
  std::optional<TextList> text_list(State state) override;
  bool visit_texts(State state, TextVisitor& visitor) override;
  std::optional<NextBytes> next_bytes(State state) override;
  std::optional<Blanks> blanks(State state) override;
  uint32_t kind_step(uint32_t kind, uint8_t byte) override;
  bool kind_ends(uint32_t kind) override;
  std::optional<FreeText> free_text(State state) override;
  bool leaves_free_text(State state, std::string_view bytes) override;
  std::optional<NextBytes> kind_next_bytes(uint32_t kind) override;
  int64_t kind_bytes(uint32_t kind) override;
  int32_t kind_chars(uint32_t kind) override;
  KindBounds kind_bounds(uint32_t kind, int32_t n) override;
  State kind_state(uint32_t kind) override;
  int32_t chars_left(State state) override;
  std::optional<KindName> kind_name(uint32_t kind) override;
  [[nodiscard]] int64_t n_bytes() const override;
  void set_fuel(Fuel* fuel) override;
  [[nodiscard]] std::string_view failure() const override;

 private:
  [[nodiscard]] Way way(State state, size_t i) const {
    const std::span<const uint32_t> words = states_.at(state);
    return {words[2 * i], words[2 * i + 1]};
  }
  [[nodiscard]] size_t n_ways(State state) const { return states_.at(state).size() / 2; }
  Machine& content(uint32_t region) { return *regions_[region].content; }

  void step_way(Way way, uint8_t byte);
  void enter(uint32_t node);
  void add_inside(uint32_t region, State state);
  void leave() {
    ways_.push_back(free_text_ ? Way::free(BeginTrie::kRoot, kBetween, true) : Way::begin(BeginTrie::kRoot, true));
  }
  State number();
  State number_inside(uint32_t region, State state);
  /// The only way, if it is inside a content that cannot end here: then the content can speak for the whole.
  [[nodiscard]] std::optional<Way> only_inside(State state);

  int64_t distance_of(Way way);
  int64_t cost_of(uint32_t node);
  void find_begin_rests();
  void find_begin_rests_in_free_text();
  [[nodiscard]] int64_t n_own_bytes() const {
    return begins_.n_bytes() + states_.n_bytes() + steps_.n_bytes() + kinds_.n_bytes() +
           static_cast<int64_t>(begin_rests_.capacity() * sizeof(int64_t));
  }

  std::vector<TaggedRegion> regions_;
  const BeginTrie begins_;
  const bool free_text_;
  std::string last_bytes_;  // of the begins, each once
  State start_ = kDead;
  Fuel* fuel_ = nullptr;
  bool has_failed_ = false;

  TupleTable states_;  // ways, ascending; state 0 has none
  StepTable steps_;
  TupleTable kinds_;                  // a region and a kind of its content; kind 0 is dead
  std::vector<int64_t> begin_rests_;  // by node: bytes of a short way through a region; empty: not needed yet
  std::vector<Way> ways_;
  std::vector<uint32_t> words_;
};

TaggedMachine::TaggedMachine(std::vector<TaggedRegion> regions, bool free_text, bool region_required)
    : regions_(std::move(regions)), begins_(begins_of(regions_)), free_text_(free_text) {
  states_.intern({});
  kinds_.intern({});
  for (const TaggedRegion& region : regions_) {
    if (last_bytes_.find(region.begin.back()) == std::string::npos) last_bytes_ += region.begin.back();
  }
  ways_.assign(
      1, free_text ? Way::free(BeginTrie::kRoot, kBetween, !region_required) : Way::begin(BeginTrie::kRoot, false));
  start_ = number();
}

State TaggedMachine::number() {
  std::sort(ways_.begin(), ways_.end());
  ways_.erase(std::unique(ways_.begin(), ways_.end()), ways_.end());
  words_.clear();
  for (const Way way : ways_) {
    words_.push_back(way.kind);
    words_.push_back(way.value);
  }
  return states_.intern(words_);
}

State TaggedMachine::number_inside(uint32_t region, State state) {
  ways_.clear();
  if (state != kDead) add_inside(region, state);
  return number();
}

State TaggedMachine::step(State from, uint8_t byte) {
  if (from == kDead || has_failed_) return kDead;
  if (const uint32_t* known = steps_.find(from, byte)) return *known;
  ways_.clear();
  const size_t n = n_ways(from);
  for (size_t i = 0; i < n; ++i) step_way(way(from, i), byte);
  if ((fuel_ != nullptr && !fuel_->spend(static_cast<int64_t>(n))) || n_own_bytes() > kBytesMax) has_failed_ = true;
  if (!failure().empty()) return kDead;
  const State to = number();
  steps_.put(from, byte, to);
  return to;
}

void TaggedMachine::step_way(Way way, uint8_t byte) {
  if (way.is_free()) {
    const Utf8State utf8 = next_utf8_state(way.utf8(), byte);
    if (utf8 == kIllFormed) return;
    const uint32_t node = begins_.next(way.node(), byte);
    if (begins_.ended(node) != BeginTrie::kNone) return enter(begins_.ended(node));
    return ways_.push_back(Way::free(node, utf8, way.is_done()));
  }
  if (way.is_begin()) {
    const uint32_t node = begins_.child(way.node(), byte);
    if (node == BeginTrie::kNone) return;
    enter(node);
    if (!begins_.bytes_of(node).empty()) ways_.push_back(Way::begin(node, false));
    return;
  }
  const uint32_t region = way.region();
  const std::string& end = regions_[region].end;
  uint32_t n_read = way.value;
  if (way.is_inside()) {
    add_inside(region, content(region).step(way.value, byte));
    if (end.empty() || !content(region).complete(way.value)) return;
    n_read = 0;
  }
  if (static_cast<uint8_t>(end[n_read]) != byte) return;
  if (n_read + 1 == end.size()) return leave();
  ways_.push_back(Way::ending(region, n_read + 1));
}

void TaggedMachine::enter(uint32_t node) {
  for (const uint32_t region : begins_.regions(node)) add_inside(region, content(region).start());
}

void TaggedMachine::add_inside(uint32_t region, State state) {
  if (state == kDead) return;
  ways_.push_back(Way::inside(region, state));
  if (regions_[region].end.empty() && content(region).complete(state)) leave();
}

bool TaggedMachine::complete(State state) {
  for (size_t i = 0; i < n_ways(state); ++i) {
    const Way at = way(state, i);
    if (!at.is_done()) continue;
    if (at.is_free() ? at.utf8() == kBetween : at.node() == BeginTrie::kRoot) return true;
  }
  return false;
}

// -- what contents know

std::optional<Way> TaggedMachine::only_inside(State state) {
  if (state == kDead || n_ways(state) != 1) return std::nullopt;
  const Way only = way(state, 0);
  if (!only.is_inside() || content(only.region()).complete(only.value)) return std::nullopt;
  return only;
}

std::optional<StringBody> TaggedMachine::string_body(State state) {
  const std::optional<Way> only = only_inside(state);
  if (!only) return std::nullopt;
  std::optional<StringBody> body = content(only->region()).string_body(only->value);
  if (!body) return std::nullopt;
  body->kind = kinds_.intern({only->region(), body->kind});
  if (body->counted_kind != 0) body->counted_kind = kinds_.intern({only->region(), body->counted_kind});
  if (body->same_after) body->after = number_inside(only->region(), body->after);
  return body;
}

std::optional<TextList> TaggedMachine::text_list(State state) {
  const std::optional<Way> only = only_inside(state);
  if (!only) return std::nullopt;
  std::optional<TextList> list = content(only->region()).text_list(only->value);
  if (list && list->kind != 0) list->kind = kinds_.intern({only->region(), list->kind});
  return list;
}

bool TaggedMachine::visit_texts(State state, TextVisitor& visitor) {
  const std::optional<Way> only = only_inside(state);
  return only && content(only->region()).visit_texts(only->value, visitor);
}

std::optional<Blanks> TaggedMachine::blanks(State state) {
  const std::optional<Way> only = only_inside(state);
  if (!only) return std::nullopt;
  std::optional<Blanks> blanks = content(only->region()).blanks(only->value);
  if (blanks) blanks->clean = number_inside(only->region(), blanks->clean);
  return blanks;
}

uint32_t TaggedMachine::kind_step(uint32_t kind, uint8_t byte) {
  if (kind == 0) return 0;
  const uint32_t region = kinds_.at(kind)[0];
  const uint32_t to = content(region).kind_step(kinds_.at(kind)[1], byte);
  return to == 0 ? 0 : kinds_.intern({region, to});
}

bool TaggedMachine::kind_ends(uint32_t kind) {
  return kind != 0 && content(kinds_.at(kind)[0]).kind_ends(kinds_.at(kind)[1]);
}

std::optional<FreeText> TaggedMachine::free_text(State state) {
  if (state == kDead || n_ways(state) != 1) return std::nullopt;
  const Way only = way(state, 0);
  if (!only.is_free() || only.utf8() != kBetween) return std::nullopt;
  return FreeText{last_bytes_};
}

/// A region begins within these bytes.
bool TaggedMachine::leaves_free_text(State state, std::string_view bytes) {
  uint32_t node = way(state, 0).node();
  for (const char c : bytes) {
    node = begins_.next(node, static_cast<uint8_t>(c));
    if (begins_.ended(node) != BeginTrie::kNone) return true;
  }
  return false;
}

std::optional<NextBytes> TaggedMachine::kind_next_bytes(uint32_t kind) {
  return kind == 0 ? NextBytes{} : content(kinds_.at(kind)[0]).kind_next_bytes(kinds_.at(kind)[1]);
}

int64_t TaggedMachine::kind_bytes(uint32_t kind) {
  return kind == 0 ? 0 : content(kinds_.at(kind)[0]).kind_bytes(kinds_.at(kind)[1]);
}

int32_t TaggedMachine::kind_chars(uint32_t kind) {
  return kind == 0 ? -1 : content(kinds_.at(kind)[0]).kind_chars(kinds_.at(kind)[1]);
}

Machine::KindBounds TaggedMachine::kind_bounds(uint32_t kind, int32_t n) {
  if (kind == 0) return {kind, kind};
  const uint32_t region = kinds_.at(kind)[0];
  const KindBounds bounds = content(region).kind_bounds(kinds_.at(kind)[1], n);
  return {kinds_.intern({region, bounds.low}), kinds_.intern({region, bounds.high})};
}

State TaggedMachine::kind_state(uint32_t kind) {
  if (kind == 0) return kDead;
  const uint32_t region = kinds_.at(kind)[0];
  return number_inside(region, content(region).kind_state(kinds_.at(kind)[1]));
}

int32_t TaggedMachine::chars_left(State state) {
  const std::optional<Way> only = only_inside(state);
  return only ? content(only->region()).chars_left(only->value) : -1;
}

std::optional<Machine::KindName> TaggedMachine::kind_name(uint32_t kind) {
  return kind == 0 ? std::nullopt : content(kinds_.at(kind)[0]).kind_name(kinds_.at(kind)[1]);
}

std::optional<NextBytes> TaggedMachine::next_bytes(State state) {
  NextBytes bytes;
  for (size_t i = 0; i < n_ways(state); ++i) {
    const Way at = way(state, i);
    if (at.is_free()) return std::nullopt;
    if (at.is_begin()) {
      for (const uint8_t byte : begins_.bytes_of(at.node())) bytes.insert(byte);
      continue;
    }
    const std::string& end = regions_[at.region()].end;
    if (!at.is_inside()) {
      bytes.insert(static_cast<uint8_t>(end[at.value]));
      continue;
    }
    const std::optional<NextBytes> more = content(at.region()).next_bytes(at.value);
    if (!more) return std::nullopt;
    for (size_t k = 0; k < bytes.words.size(); ++k) bytes.words[k] |= more->words[k];
    if (!end.empty() && content(at.region()).complete(at.value)) bytes.insert(static_cast<uint8_t>(end[0]));
  }
  return bytes;
}

void TaggedMachine::set_fuel(Fuel* fuel) {
  fuel_ = fuel;
  for (const TaggedRegion& region : regions_) region.content->set_fuel(fuel);
}

std::string_view TaggedMachine::failure() const {
  if (has_failed_) return "the tagged regions need more steps, time or memory than their limit";
  for (const TaggedRegion& region : regions_)
    if (const std::string_view cause = region.content->failure(); !cause.empty()) return cause;
  return {};
}

int64_t TaggedMachine::n_bytes() const {
  int64_t n_bytes = n_own_bytes();
  for (const TaggedRegion& region : regions_)
    n_bytes += region.content->n_bytes() +
               static_cast<int64_t>(sizeof(TaggedRegion) + region.begin.capacity() + region.end.capacity());
  return n_bytes;
}

// -- distances

int64_t TaggedMachine::distance(State state) {
  if (complete(state)) return 0;
  int64_t best = -1;
  for (size_t i = 0; i < n_ways(state); ++i) {
    const int64_t length = distance_of(way(state, i));
    if (length >= 0 && (best < 0 || length < best)) best = length;
  }
  return best;
}

int64_t TaggedMachine::distance_of(Way way) {
  if (way.kind == Way::kFreeDone) return n_left(way.utf8());
  if (way.is_free() || way.is_begin()) {
    if (begin_rests_.empty()) find_begin_rests();
    const int64_t rest = has_failed_ ? -1 : begin_rests_[way.node()];
    return rest < 0 || way.is_begin() || way.node() != BeginTrie::kRoot ? rest : rest + n_left(way.utf8());
  }
  const auto n_end = static_cast<int64_t>(regions_[way.region()].end.size());
  if (!way.is_inside()) return n_end - way.value;
  const int64_t length = content(way.region()).distance(way.value);
  return length < 0 ? -1 : length + n_end;
}

/// From where the begin of this node has just ended.
int64_t TaggedMachine::cost_of(uint32_t node) {
  int64_t best = -1;
  for (const uint32_t region : begins_.regions(node)) {
    const int64_t length = distance_of(Way::inside(region, content(region).start()));
    if (length >= 0 && (best < 0 || length < best)) best = length;
  }
  return best;
}

void TaggedMachine::find_begin_rests() {
  begin_rests_.assign(begins_.size(), -1);
  if (free_text_) return find_begin_rests_in_free_text();
  const auto lower = [](int64_t& rest, int64_t other) {
    if (other >= 0 && (rest < 0 || other < rest)) rest = other;
  };
  for (uint32_t node = begins_.size(); node-- > 0;) {
    for (const uint8_t byte : begins_.bytes_of(node)) {
      const uint32_t to = begins_.child(node, byte);
      int64_t rest = begin_rests_[to];
      lower(rest, cost_of(to));
      if (rest >= 0) lower(begin_rests_[node], rest + 1);
    }
  }
}

/// The nearest first, over all bytes of begin strings and one that is in none.
void TaggedMachine::find_begin_rests_in_free_text() {
  ByteSet used;
  for (uint32_t node = 0; node < begins_.size(); ++node)
    for (const uint8_t byte : begins_.bytes_of(node)) used.add(byte);
  std::vector<uint8_t> alphabet;
  bool has_other = false;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_other = !has_other && byte < 0x80 && !used.contains(static_cast<uint8_t>(byte));
    has_other = has_other || is_other;
    if (is_other || used.contains(static_cast<uint8_t>(byte))) alphabet.push_back(static_cast<uint8_t>(byte));
  }
  using Reached = std::pair<int64_t, uint32_t>;  // rest, node
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // to, from
  std::vector<int64_t> costs(begins_.size(), -2);    // -2: not asked
  for (uint32_t node = 0; node < begins_.size(); ++node) {
    if (begins_.ended(node) != BeginTrie::kNone) continue;
    for (const uint8_t byte : alphabet) {
      const Utf8State utf8 = next_utf8_state(begins_.utf8(node), byte);
      if (utf8 == kIllFormed) continue;
      if (fuel_ != nullptr && !fuel_->spend()) has_failed_ = true;
      if (has_failed_) return;
      const uint32_t to = begins_.next(node, byte);
      if (const uint32_t ended = begins_.ended(to); ended != BeginTrie::kNone) {
        if (costs[ended] == -2) costs[ended] = cost_of(ended);
        if (costs[ended] >= 0) open.emplace(costs[ended] + 1, node);
      } else if (to != BeginTrie::kRoot || utf8 == kBetween) {
        steps.emplace_back(to, node);
      }
    }
  }
  std::sort(steps.begin(), steps.end());
  while (!open.empty()) {
    const auto [rest, node] = open.top();
    open.pop();
    if (begin_rests_[node] >= 0) continue;
    begin_rests_[node] = rest;
    auto at = std::lower_bound(steps.begin(), steps.end(), std::pair(node, uint32_t{0}));
    for (; at != steps.end() && at->first == node; ++at) open.emplace(rest + 1, at->second);
  }
}

}  // namespace

std::optional<std::string> refuse_regions(std::span<const Constraint::Region> regions, bool free_text) {
  if (regions.empty()) return "there is no region";
  if (regions.size() > kRegionsMax)
    return "there are " + std::to_string(regions.size()) + " regions; the limit is " + std::to_string(kRegionsMax);
  size_t n_begin_bytes = 0;
  for (size_t i = 0; i < regions.size(); ++i) {
    const Constraint::Region& region = regions[i];
    const std::string name = "region " + std::to_string(i + 1);
    if (region.content == nullptr) return name + " has no content";
    if (region.content->kind == Constraint::Kind::kTagged) return name + " has tagged regions itself";
    if (region.begin.empty()) return name + " has no begin";
    if (find_ill_formed(region.begin) || find_ill_formed(region.end)) return "a tag of " + name + " is not UTF-8";
    if (region.end.size() > kEndBytesMax)
      return "the end of " + name + " has more than " + std::to_string(kEndBytesMax) + " bytes";
    n_begin_bytes += region.begin.size();
  }
  if (n_begin_bytes > kBeginBytesMax)
    return "the begins have " + std::to_string(n_begin_bytes) + " bytes; the limit is " +
           std::to_string(kBeginBytesMax);
  if (!free_text) return std::nullopt;
  const BeginTrie begins(begins_of(regions));
  for (size_t i = 0; i < regions.size(); ++i) {
    const uint32_t other = begins.hidden_by(regions[i].begin);
    if (other == BeginTrie::kNone) continue;
    return "region " + std::to_string(i + 1) + " can never begin with " + quoted_for_message(regions[i].begin) +
           ", because " + quoted_for_message(regions[other].begin) + " ends before and begins region " +
           std::to_string(other + 1);
  }
  return std::nullopt;
}

std::unique_ptr<Machine> make_tagged_machine(std::vector<TaggedRegion> regions, bool free_text, bool region_required) {
  return std::make_unique<TaggedMachine>(std::move(regions), free_text, region_required);
}

}  // namespace deepinfer::grammar
