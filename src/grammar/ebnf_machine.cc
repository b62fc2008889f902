#include "grammar/ebnf_machine.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "grammar/ebnf_network.h"
#include "grammar/flat_map.h"
#include "grammar/regex_machine.h"
#include "grammar/tuple_table.h"

namespace deepinfer::grammar {
namespace {

constexpr int64_t kBytesMax = int64_t{192} << 20;
constexpr int64_t kLengthMax = int64_t{1} << 60;

/// An item: a place within a rule, and the row where the rule was called. There is row 0, where nothing is called: the start
/// rule's. A row: the items that stand between two texts, of those that something can follow. All the rest of a row, what
/// is called from it and which texts begin there, is a function of these.
using Item = uint32_t;
using Row = uint32_t;
constexpr Row kOutside = 0;

/// A text that has begun, and where it leads.
using Open = uint64_t;  // a Lang, then an Item
constexpr Open open_text(Lang rest, Item to) { return uint64_t{rest} << 32 | to; }

class EbnfMachine : public Machine {
 public:
  EbnfMachine(std::unique_ptr<Languages> languages, EbnfNetwork network);

  /// Before all else.
  void begin(Fuel* fuel);

  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override;
  bool complete(State state) override { return state != kDead && states_.at(state)[0] != 0; }
  int64_t distance(State state) override;
  std::optional<NextBytes> next_bytes(State state) override;
  [[nodiscard]] int64_t n_bytes() const override { return languages_->n_bytes() + n_own_bytes(); }
  void set_fuel(Fuel* fuel) override {
    fuel_ = fuel;
    languages_->set_fuel(fuel);
  }
  [[nodiscard]] std::string_view failure() const override {
    return has_failed_ || languages_->exhausted() ? "the grammar needs more steps, time or memory than its limit" : "";
  }

 private:
  /// Where a rule that was called from a row may go on.
  struct Return {
    uint32_t rule;
    uint32_t first_item, n_items;  // of return_items_
    int64_t rest;                  // bytes of a shortest way from there to the end of the text
  };
  struct RowInfo {
    uint32_t first_open = 0, n_opens = 0;      // of opens_: texts that begin here
    uint32_t first_return = 0, n_returns = 0;  // of returns_, by rule
  };
  using Called = std::pair<uint32_t, Item>;  // a rule, and where its caller goes on

  Item item(uint32_t position, uint32_t rule, Row row) { return items_.intern({position, rule, row}); }
  bool spend() {
    if (fuel_ != nullptr && !fuel_->spend()) has_failed_ = true;
    return !has_failed_;
  }
  void mark(Item item, std::vector<Item>& to);
  void clear_marks() { ++stamp_; }

  State find_step(State from, uint8_t byte);
  /// The state that `opens_now_` and the row of `items` make.
  State arrive(std::span<const Item> ended);
  Row row_of(std::vector<Item>& items);
  void open_row(Row row);
  void add_returns();
  void find_return_rests(Row row);
  [[nodiscard]] const Return& return_of(Row row, uint32_t rule) const;
  [[nodiscard]] int64_t rest_of(Item item) const;
  const NextBytes& bytes_of(Lang lang);
  [[nodiscard]] int64_t n_own_bytes() const;

  std::unique_ptr<Languages> languages_;
  const EbnfNetwork network_;
  State start_ = kDead;
  Fuel* fuel_ = nullptr;
  bool has_failed_ = false;

  TupleTable items_;   // position, rule, row
  TupleTable rows_;    // items, ascending
  TupleTable states_;  // may end here; texts that are open, ascending, two words each. State 0 has none
  StepTable steps_;
  std::vector<RowInfo> row_infos_;
  std::vector<Open> opens_;
  std::vector<Return> returns_;
  std::vector<Item> return_items_;
  FlatMap lang_bytes_index_;
  std::vector<NextBytes> lang_bytes_;

  uint32_t stamp_ = 0;
  std::vector<uint32_t> marks_;  // by item
  std::vector<Item> work_, row_items_, ended_;
  std::vector<Open> opens_now_;
  std::vector<Called> called_;
  std::vector<uint32_t> words_;
};

EbnfMachine::EbnfMachine(std::unique_ptr<Languages> languages, EbnfNetwork network)
    : languages_(std::move(languages)), network_(std::move(network)) {}

void EbnfMachine::begin(Fuel* fuel) {
  fuel_ = fuel;
  states_.intern({});
  rows_.intern({});
  row_infos_.resize(1);
  const uint32_t rule = network_.start_rule;
  const Item first = item(network_.starts[rule], rule, kOutside);
  opens_now_.clear();
  start_ = arrive({&first, 1});
}

void EbnfMachine::mark(Item item, std::vector<Item>& to) {
  if (item >= marks_.size()) marks_.resize(std::max<size_t>(64, 2 * size_t{item} + 2), 0);
  if (marks_[item] == stamp_) return;
  marks_[item] = stamp_;
  to.push_back(item);
}

State EbnfMachine::step(State from, uint8_t byte) {
  if (from == kDead || has_failed_) return kDead;
  if (const uint32_t* known = steps_.find(from, byte)) return *known;
  const State to = find_step(from, byte);
  if (languages_->exhausted() || n_own_bytes() > kBytesMax) has_failed_ = true;
  if (has_failed_) return kDead;
  steps_.put(from, byte, to);
  return to;
}

State EbnfMachine::find_step(State from, uint8_t byte) {
  const std::span<const uint32_t> words = states_.at(from);
  opens_now_.clear();
  ended_.clear();
  for (size_t i = 1; i < words.size(); i += 2) {
    if (!spend()) return kDead;
    const Lang rest = languages_->next(words[i], byte);
    if (rest == kNothing) continue;
    if (rest != kEmptyText) opens_now_.push_back(open_text(rest, words[i + 1]));
    if (languages_->accepts_empty(rest)) ended_.push_back(words[i + 1]);
  }
  if (opens_now_.empty() && ended_.empty()) return kDead;
  return arrive(ended_);
}

/// Ends what has ended: where a rule is at its end, whatever called it goes on. An empty text of a rule plays no part, so
/// only rows before this one are looked at, which are complete.
State EbnfMachine::arrive(std::span<const Item> ended) {
  clear_marks();
  work_.clear();
  row_items_.clear();
  bool is_complete = false;
  for (const Item item : ended) mark(item, work_);
  for (size_t i = 0; i < work_.size(); ++i) {
    if (!spend()) return kDead;
    const std::span<const uint32_t> item = items_.at(work_[i]);
    const EbnfNetwork::Position& position = network_.positions[item[0]];
    if (position.n_texts + position.n_calls > 0) row_items_.push_back(work_[i]);
    if (position.rest > 0) continue;
    if (item[2] == kOutside) {
      is_complete = true;
      continue;
    }
    const Return& to = return_of(item[2], item[1]);
    for (uint32_t k = 0; k < to.n_items; ++k) mark(return_items_[to.first_item + k], work_);
    if (fuel_ != nullptr && !fuel_->spend(to.n_items)) has_failed_ = true;
  }
  const RowInfo info = row_infos_[row_of(row_items_)];
  if (has_failed_) return kDead;
  opens_now_.insert(opens_now_.end(), opens_.begin() + info.first_open,
                    opens_.begin() + info.first_open + info.n_opens);
  std::sort(opens_now_.begin(), opens_now_.end());
  opens_now_.erase(std::unique(opens_now_.begin(), opens_now_.end()), opens_now_.end());
  if (fuel_ != nullptr && !fuel_->spend(static_cast<int64_t>(opens_now_.size()))) has_failed_ = true;
  words_.assign(1, is_complete ? 1 : 0);
  for (const Open open : opens_now_) {
    words_.push_back(static_cast<uint32_t>(open >> 32));
    words_.push_back(static_cast<uint32_t>(open));
  }
  return states_.intern(words_);
}

Row EbnfMachine::row_of(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  const Row row = rows_.intern(items);
  if (row == row_infos_.size()) open_row(row);
  return row;
}

/// Calls what can be called. The last call of a rule stands in its caller's place, which keeps right recursion flat.
void EbnfMachine::open_row(Row row) {
  clear_marks();
  work_.clear();
  called_.clear();
  RowInfo info;
  info.first_open = static_cast<uint32_t>(opens_.size());
  for (const Item item : rows_.at(row)) mark(item, work_);
  for (size_t i = 0; i < work_.size() && spend(); ++i) {
    const std::span<const uint32_t> at = items_.at(work_[i]);
    const uint32_t rule = at[1], from = at[2];
    const EbnfNetwork::Position& position = network_.positions[at[0]];
    if (fuel_ != nullptr && !fuel_->spend(position.n_texts + position.n_calls)) has_failed_ = true;
    for (uint32_t k = 0; k < position.n_texts; ++k) {
      const EbnfNetwork::Text& text = network_.texts[position.first_text + k];
      opens_.push_back(open_text(text.lang, item(text.to, rule, from)));
    }
    for (uint32_t k = 0; k < position.n_calls; ++k) {
      const EbnfNetwork::Call& call = network_.calls[position.first_call + k];
      if (!call.is_last) called_.emplace_back(call.rule, item(call.to, rule, from));
      const uint32_t start = network_.starts[call.rule];
      mark(call.is_last ? item(start, rule, from) : item(start, call.rule, row), work_);
    }
  }
  const auto first = opens_.begin() + info.first_open;
  std::sort(first, opens_.end());
  opens_.erase(std::unique(first, opens_.end()), opens_.end());
  info.n_opens = static_cast<uint32_t>(opens_.size()) - info.first_open;
  info.first_return = static_cast<uint32_t>(returns_.size());
  add_returns();
  info.n_returns = static_cast<uint32_t>(returns_.size()) - info.first_return;
  row_infos_.push_back(info);
  find_return_rests(row);
}

void EbnfMachine::add_returns() {
  std::sort(called_.begin(), called_.end());
  called_.erase(std::unique(called_.begin(), called_.end()), called_.end());
  for (size_t i = 0; i < called_.size();) {
    Return to{called_[i].first, static_cast<uint32_t>(return_items_.size()), 0, -1};
    for (; i < called_.size() && called_[i].first == to.rule; ++i) return_items_.push_back(called_[i].second);
    to.n_items = static_cast<uint32_t>(return_items_.size()) - to.first_item;
    returns_.push_back(to);
  }
}

/// The nearest first, because a rule called here may be on the way of another one called here.
void EbnfMachine::find_return_rests(Row row) {
  const RowInfo info = row_infos_[row];
  using Reached = std::pair<int64_t, uint32_t>;  // rest, index of returns_
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
  std::vector<std::pair<uint32_t, Reached>>
      through;  // a rule called here: what goes on through its return, and at which cost
  for (uint32_t i = info.first_return; i < info.first_return + info.n_returns; ++i) {
    for (uint32_t k = 0; k < returns_[i].n_items; ++k) {
      if (!spend()) return;
      const std::span<const uint32_t> at = items_.at(return_items_[returns_[i].first_item + k]);
      const int64_t rest = network_.positions[at[0]].rest;
      if (at[2] == row) {
        through.push_back({at[1], {rest, i}});
      } else {
        open.emplace(rest + (at[2] == kOutside ? 0 : return_of(at[2], at[1]).rest), i);
      }
    }
  }
  std::sort(through.begin(), through.end());
  while (!open.empty() && spend()) {
    const auto [rest, i] = open.top();
    open.pop();
    if (returns_[i].rest >= 0) continue;
    returns_[i].rest = std::min(rest, kLengthMax);
    auto next = std::lower_bound(through.begin(), through.end(), std::pair(returns_[i].rule, Reached(0, 0)));
    for (; next != through.end() && next->first == returns_[i].rule; ++next)
      open.emplace(returns_[i].rest + next->second.first, next->second.second);
  }
}

const EbnfMachine::Return& EbnfMachine::return_of(Row row, uint32_t rule) const {
  const RowInfo& info = row_infos_[row];
  const auto first = returns_.begin() + info.first_return;
  const auto end = first + info.n_returns;
  const auto at = std::partition_point(first, end, [rule](const Return& to) { return to.rule < rule; });
  DI_DCHECK(at != end && at->rule == rule);
  return *at;
}

int64_t EbnfMachine::rest_of(Item item) const {
  const std::span<const uint32_t> at = items_.at(item);
  return network_.positions[at[0]].rest + (at[2] == kOutside ? 0 : return_of(at[2], at[1]).rest);
}

int64_t EbnfMachine::distance(State state) {
  if (state == kDead || has_failed_) return -1;
  const std::span<const uint32_t> words = states_.at(state);
  if (words[0] != 0) return 0;
  int64_t best = -1;
  for (size_t i = 1; i < words.size(); i += 2) {
    const int64_t length = languages_->shortest(words[i]);
    if (length < 0 || !spend()) return -1;
    const int64_t all = std::min(length + rest_of(words[i + 1]), kLengthMax);
    if (best < 0 || all < best) best = all;
  }
  return best;
}

std::optional<NextBytes> EbnfMachine::next_bytes(State state) {
  NextBytes bytes;
  if (state == kDead) return bytes;
  const std::span<const uint32_t> words = states_.at(state);
  for (size_t i = 1; i < words.size(); i += 2) {
    if (i > 1 && words[i] == words[i - 2]) continue;
    const NextBytes& more = bytes_of(words[i]);
    for (size_t k = 0; k < bytes.words.size(); ++k) bytes.words[k] |= more.words[k];
  }
  if (languages_->exhausted()) has_failed_ = true;
  return bytes;
}

const NextBytes& EbnfMachine::bytes_of(Lang lang) {
  const uint32_t known = lang_bytes_index_.find(lang);
  if (known != FlatMap::kNone) return lang_bytes_[known];
  lang_bytes_index_.insert(lang, static_cast<uint32_t>(lang_bytes_.size()));
  return lang_bytes_.emplace_back(NextBytes{languages_->next_bytes(lang).words});
}

template <class T>
int64_t bytes_in(const std::vector<T>& items) {
  return static_cast<int64_t>(items.capacity() * sizeof(T));
}

int64_t EbnfMachine::n_own_bytes() const {
  return network_.n_bytes() + items_.n_bytes() + rows_.n_bytes() + states_.n_bytes() + steps_.n_bytes() +
         bytes_in(row_infos_) + bytes_in(opens_) + bytes_in(returns_) + bytes_in(return_items_) + bytes_in(marks_) +
         bytes_in(lang_bytes_) + lang_bytes_index_.n_bytes();
}

}  // namespace

Result<std::unique_ptr<Machine>> make_ebnf_machine(std::unique_ptr<Languages> languages, const Ebnf& grammar,
                                                   Fuel& fuel) {
  DI_ASSIGN_OR_RETURN(auto network, make_ebnf_network(*languages, grammar, fuel));
  if (const Lang* lang = std::get_if<Lang>(&network)) {
    if (!languages->exhausted() && !fuel.empty() && languages->is_empty(*lang))
      return Error{Code::kInvalidArgument, "no text matches the grammar"};
    languages->set_fuel(nullptr);
    return make_regex_machine(std::move(languages), *lang);
  }
  auto machine = std::make_unique<EbnfMachine>(std::move(languages), std::move(std::get<EbnfNetwork>(network)));
  machine->begin(&fuel);
  machine->set_fuel(nullptr);
  return std::unique_ptr<Machine>(std::move(machine));
}

}  // namespace deepinfer::grammar
