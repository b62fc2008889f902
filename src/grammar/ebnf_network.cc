// Three passes: fold regular parts bottom-up, lay the others out as edges between positions, drop dead and empty edges.
// Nothing here recurses: rules and nodes may nest as deeply as the text allows.
#include "grammar/ebnf_network.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/check.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kHeightMax = 100;    // of a folded part; Languages bounds the nesting of expressions, too
constexpr int64_t kCopySizeMax = 256;  // of a regular rule that is folded in more than one place
constexpr size_t kEdgesMax = 500'000;
constexpr int64_t kLengthMax = int64_t{1} << 60;

/// What is known of a part of the grammar.
struct Fold {
  bool is_regular = false;
  Lang lang = kNothing;
  int32_t height = 0;
  int64_t size = 0;  // literals and classes in it
};

class Folder {
 public:
  Folder(Languages& languages, const Ebnf& grammar, Fuel& fuel)
      : languages_(languages), grammar_(grammar), fuel_(fuel), folds_(grammar.nodes.size()) {}

  void fold();
  [[nodiscard]] const Fold& of(uint32_t node) const { return folds_[node]; }
  [[nodiscard]] bool is_reached(uint32_t rule) const { return is_reached_[rule]; }
  [[nodiscard]] const Fold& start() const { return folds_[grammar_.rules[grammar_.start].body]; }

 private:
  void find_reached();
  void fold_rule(uint32_t rule);
  void fold_call(const EbnfNode& node, Fold& out) const;
  void fold_list(const EbnfNode& node, Fold& out);
  template <class Take>
  void for_each_call(uint32_t rule, Take take) const {
    for (uint32_t i = grammar_.rules[rule].first_node; i <= grammar_.rules[rule].body; ++i)
      if (grammar_.nodes[i].kind == EbnfNode::Kind::kCall) take(grammar_.nodes[i].a);
  }

  Languages& languages_;
  const Ebnf& grammar_;
  Fuel& fuel_;
  std::vector<Fold> folds_;        // by node
  std::vector<bool> is_reached_;   // by rule
  std::vector<bool> is_done_;      // by rule
  std::vector<uint32_t> n_calls_;  // of each rule, in reached rules
  std::vector<Lang> langs_;
};

void Folder::find_reached() {
  is_reached_.assign(grammar_.rules.size(), false);
  n_calls_.assign(grammar_.rules.size(), 0);
  std::vector<uint32_t> open = {grammar_.start};
  is_reached_[grammar_.start] = true;
  while (!open.empty()) {
    const uint32_t rule = open.back();
    open.pop_back();
    for_each_call(rule, [&](uint32_t called) {
      ++n_calls_[called];
      if (is_reached_[called]) return;
      is_reached_[called] = true;
      open.push_back(called);
    });
  }
}

/// Called rules first; those in cycles, and what calls them, last.
void Folder::fold() {
  find_reached();
  const size_t n_rules = grammar_.rules.size();
  is_done_.assign(n_rules, false);
  std::vector<uint32_t> n_open(n_rules, 0);  // calls of rules that are not done
  std::vector<std::vector<uint32_t>> callers(n_rules);
  std::vector<uint32_t> ready;
  for (uint32_t rule = 0; rule < n_rules; ++rule) {
    if (!is_reached_[rule]) continue;
    for_each_call(rule, [&](uint32_t called) {
      ++n_open[rule];
      callers[called].push_back(rule);
    });
    if (n_open[rule] == 0) ready.push_back(rule);
  }
  while (!ready.empty() && !fuel_.empty()) {
    const uint32_t rule = ready.back();
    ready.pop_back();
    fold_rule(rule);
    is_done_[rule] = true;
    for (const uint32_t caller : callers[rule])
      if (--n_open[caller] == 0) ready.push_back(caller);
  }
  for (uint32_t rule = 0; rule < n_rules; ++rule)
    if (is_reached_[rule] && !is_done_[rule]) fold_rule(rule);
}

void Folder::fold_rule(uint32_t rule) {
  for (uint32_t i = grammar_.rules[rule].first_node; i <= grammar_.rules[rule].body; ++i) {
    if (!fuel_.spend()) return;
    const EbnfNode& node = grammar_.nodes[i];
    switch (node.kind) {
      case EbnfNode::Kind::kTexts:
        folds_[i] = {.is_regular = true, .lang = node.a, .height = 2, .size = 1};
        break;
      case EbnfNode::Kind::kCall:
        fold_call(node, folds_[i]);
        break;
      default:
        fold_list(node, folds_[i]);
    }
    if (folds_[i].height > kHeightMax) folds_[i].is_regular = false;
  }
}

void Folder::fold_call(const EbnfNode& node, Fold& out) const {
  const Fold& body = folds_[grammar_.rules[node.a].body];
  if (is_done_[node.a] && body.is_regular && (body.size <= kCopySizeMax || n_calls_[node.a] == 1)) out = body;
}

void Folder::fold_list(const EbnfNode& node, Fold& out) {
  const bool is_sequence = node.kind == EbnfNode::Kind::kSequence;
  langs_.clear();
  for (uint32_t i = 0; i < node.n_parts; ++i) {
    const Fold& part = folds_[grammar_.parts[node.a + i]];
    if (!part.is_regular || !fuel_.spend()) return;
    langs_.push_back(part.lang);
    out.height = std::max(out.height, part.height + (is_sequence && i + 1 == node.n_parts ? 0 : 1));
    out.size += part.size;
  }
  if (out.height > kHeightMax) return;
  out.is_regular = true;
  if (is_sequence) {
    out.lang = languages_.concat(langs_);
  } else if (node.kind == EbnfNode::Kind::kAlternatives) {
    out.lang = languages_.any_of(langs_);
  } else {
    out.lang = languages_.repeat(langs_[0], node.min, node.max);
  }
}

/// An edge between positions before those that can be empty are dropped.
struct Edge {
  enum class Kind : uint8_t { kEmpty, kText, kCall };
  Kind kind;
  uint32_t from, to;
  uint32_t label = 0;  // a Lang or a rule
};

/// Lists of numbers that start with the same key.
class Index {
 public:
  explicit Index(size_t n_keys) : first_(n_keys, kNone) {}
  void add(uint32_t key, uint32_t value) {
    links_.push_back({value, first_[key]});
    first_[key] = static_cast<uint32_t>(links_.size() - 1);
  }
  template <class Take>
  void for_each(uint32_t key, Take take) const {
    for (uint32_t i = first_[key]; i != kNone; i = links_[i].next) take(links_[i].value);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Link {
    uint32_t value, next;
  };
  std::vector<uint32_t> first_;
  std::vector<Link> links_;
};

class Builder {
 public:
  Builder(Languages& languages, const Ebnf& grammar, const Folder& folder, Fuel& fuel)
      : languages_(languages), grammar_(grammar), folder_(folder), fuel_(fuel) {}

  Result<EbnfNetwork> build();

 private:
  struct Task {
    uint32_t node, from, to;
  };

  uint32_t add_position() { return n_positions_++; }
  void add_edge(Edge edge) {
    if (edge.kind == Edge::Kind::kText && edge.label == kEmptyText) edge.kind = Edge::Kind::kEmpty;
    if (edge.kind == Edge::Kind::kText && edge.label == kNothing) return;
    edges_.push_back(edge);
  }
  void lay_out(const Task& task);
  void lay_out_sequence(const EbnfNode& node, const Task& task);
  void lay_out_alternatives(const EbnfNode& node, const Task& task);
  void lay_out_repeat(const EbnfNode& node, const Task& task);
  void find_rests();
  void connect(uint32_t position);
  [[nodiscard]] bool can_be_empty(const Edge& edge) const;

  Languages& languages_;
  const Ebnf& grammar_;
  const Folder& folder_;
  Fuel& fuel_;
  uint32_t n_positions_ = 0;
  std::vector<uint32_t> ends_;  // by rule
  std::vector<Task> tasks_;
  std::vector<Edge> edges_;
  std::vector<Lang> langs_;
  EbnfNetwork out_;
  // connect():
  std::vector<std::vector<uint32_t>> edges_from_;
  std::vector<uint32_t> seen_by_;  // the last position whose surroundings had this one
  std::vector<uint32_t> open_;
};

Result<EbnfNetwork> Builder::build() {
  const size_t n_rules = grammar_.rules.size();
  out_.start_rule = grammar_.start;
  out_.starts.resize(n_rules);
  ends_.resize(n_rules);
  for (uint32_t rule = 0; rule < n_rules; ++rule) {
    out_.starts[rule] = add_position();
    ends_[rule] = add_position();
  }
  for (uint32_t rule = 0; rule < n_rules; ++rule) {
    if (!folder_.is_reached(rule)) continue;
    tasks_.push_back({grammar_.rules[rule].body, out_.starts[rule], ends_[rule]});
    while (!tasks_.empty() && fuel_.spend()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      lay_out(task);
      if (edges_.size() + tasks_.size() > kEdgesMax)
        return Error{Code::kInvalidArgument, "the rule " + grammar_.rules[rule].name +
                                                 " with its repeats takes the grammar beyond " +
                                                 std::to_string(kEdgesMax) + " positions"};
    }
  }
  find_rests();
  edges_from_.resize(n_positions_);
  for (uint32_t i = 0; i < edges_.size(); ++i) edges_from_[edges_[i].from].push_back(i);
  seen_by_.assign(n_positions_, UINT32_MAX);
  std::vector<bool> is_entered(n_positions_, false);
  for (const uint32_t start : out_.starts) is_entered[start] = true;
  for (const Edge& edge : edges_)
    if (edge.kind != Edge::Kind::kEmpty) is_entered[edge.to] = true;
  for (uint32_t i = 0; i < n_positions_ && !fuel_.empty(); ++i) {
    if (!is_entered[i] || out_.positions[i].rest < 0) continue;
    connect(i);
    if (out_.texts.size() + out_.calls.size() > 4 * kEdgesMax)
      return Error{Code::kInvalidArgument, "the parts that may be empty can follow each other in more than " +
                                               std::to_string(4 * kEdgesMax) + " ways"};
  }
  for (EbnfNetwork::Call& call : out_.calls) {
    const EbnfNetwork::Position& to = out_.positions[call.to];
    call.is_last = to.rest == 0 && to.n_texts == 0 && to.n_calls == 0;
  }
  return std::move(out_);
}

/// A part lies between two positions; no edge of it leads into `from` or out of `to`, unless they are the same.
void Builder::lay_out(const Task& task) {
  const EbnfNode& node = grammar_.nodes[task.node];
  if (const Fold& fold = folder_.of(task.node); fold.is_regular)
    return add_edge({Edge::Kind::kText, task.from, task.to, fold.lang});
  switch (node.kind) {
    case EbnfNode::Kind::kTexts:
      return add_edge({Edge::Kind::kText, task.from, task.to, node.a});
    case EbnfNode::Kind::kCall:
      return add_edge({Edge::Kind::kCall, task.from, task.to, node.a});
    case EbnfNode::Kind::kSequence:
      return lay_out_sequence(node, task);
    case EbnfNode::Kind::kAlternatives:
      return lay_out_alternatives(node, task);
    case EbnfNode::Kind::kRepeat:
      return lay_out_repeat(node, task);
  }
}

/// Neighbours that are regular become one text.
void Builder::lay_out_sequence(const EbnfNode& node, const Task& task) {
  uint32_t at = task.from;
  for (uint32_t i = 0; i < node.n_parts;) {
    langs_.clear();
    while (i < node.n_parts && folder_.of(grammar_.parts[node.a + i]).is_regular && fuel_.spend())
      langs_.push_back(folder_.of(grammar_.parts[node.a + i++]).lang);
    if (!langs_.empty()) {
      const uint32_t to = i == node.n_parts ? task.to : add_position();
      add_edge({Edge::Kind::kText, at, to, languages_.concat(langs_)});
      at = to;
      continue;
    }
    if (!fuel_.spend()) return;
    const uint32_t to = i + 1 == node.n_parts ? task.to : add_position();
    tasks_.push_back({grammar_.parts[node.a + i], at, to});
    at = to;
    ++i;
  }
}

void Builder::lay_out_alternatives(const EbnfNode& node, const Task& task) {
  langs_.clear();
  for (uint32_t i = 0; i < node.n_parts; ++i) {
    const uint32_t part = grammar_.parts[node.a + i];
    if (folder_.of(part).is_regular) {
      langs_.push_back(folder_.of(part).lang);
    } else {
      tasks_.push_back({part, task.from, task.to});
    }
  }
  if (!langs_.empty()) add_edge({Edge::Kind::kText, task.from, task.to, languages_.any_of(langs_)});
}

void Builder::lay_out_repeat(const EbnfNode& node, const Task& task) {
  const uint32_t part = grammar_.parts[node.a];
  const int64_t n_copies = node.max < 0 ? node.min : node.max;
  uint32_t at = task.from;
  for (int64_t i = 0; i < n_copies; ++i) {
    if (i >= node.min) add_edge({Edge::Kind::kEmpty, at, task.to});
    const uint32_t to = node.max >= 0 && i + 1 == n_copies ? task.to : add_position();
    tasks_.push_back({part, at, to});
    at = to;
    if (edges_.size() + tasks_.size() > kEdgesMax || !fuel_.spend()) return;
  }
  if (node.max == 0) add_edge({Edge::Kind::kEmpty, task.from, task.to});
  if (node.max >= 0) return;
  const uint32_t loop = add_position();
  add_edge({Edge::Kind::kEmpty, at, loop});
  add_edge({Edge::Kind::kEmpty, loop, task.to});
  tasks_.push_back({part, loop, loop});
}

/// Shortest ways to the ends of rules, the nearest first: a call costs what its rule costs from its start.
void Builder::find_rests() {
  out_.positions.resize(n_positions_);
  Index edges_to(n_positions_), calls_of(grammar_.rules.size());
  for (uint32_t i = 0; i < edges_.size(); ++i) {
    edges_to.add(edges_[i].to, i);
    if (edges_[i].kind == Edge::Kind::kCall) calls_of.add(edges_[i].label, i);
  }
  using Item = std::pair<int64_t, uint32_t>;  // rest, position
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  std::vector<uint32_t> rule_of(n_positions_, UINT32_MAX);  // whose start it is
  for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule) {
    rule_of[out_.starts[rule]] = rule;
    if (folder_.is_reached(rule)) open.emplace(0, ends_[rule]);
  }
  const auto rest = [this](uint32_t position) { return out_.positions[position].rest; };
  const auto reach = [&](uint32_t from, int64_t length) {
    if (rest(from) < 0) open.emplace(std::min(length, kLengthMax), from);
  };
  while (!open.empty() && fuel_.spend()) {
    const int64_t length = open.top().first;  // no binding, which clang 14 does not capture
    const uint32_t position = open.top().second;
    open.pop();
    if (rest(position) >= 0) continue;
    out_.positions[position].rest = length;
    edges_to.for_each(position, [&](uint32_t i) {
      const Edge& edge = edges_[i];
      int64_t cost = 0;
      if (edge.kind == Edge::Kind::kText) cost = languages_.shortest(edge.label);
      if (edge.kind == Edge::Kind::kCall) cost = rest(out_.starts[edge.label]);
      if (cost >= 0) reach(edge.from, cost + length);
    });
    if (rule_of[position] == UINT32_MAX) continue;
    calls_of.for_each(rule_of[position], [&](uint32_t i) {
      if (rest(edges_[i].to) >= 0) reach(edges_[i].from, length + rest(edges_[i].to));
    });
  }
}

bool Builder::can_be_empty(const Edge& edge) const {
  if (edge.kind == Edge::Kind::kEmpty) return true;
  return edge.kind == Edge::Kind::kText ? languages_.accepts_empty(edge.label)
                                        : out_.positions[out_.starts[edge.label]].rest == 0;
}

/// What may follow a position directly, in any number of empty steps.
void Builder::connect(uint32_t position) {
  EbnfNetwork::Position& out = out_.positions[position];
  out.first_text = static_cast<uint32_t>(out_.texts.size());
  out.first_call = static_cast<uint32_t>(out_.calls.size());
  open_.assign(1, position);
  seen_by_[position] = position;
  while (!open_.empty()) {
    const uint32_t at = open_.back();
    open_.pop_back();
    for (const uint32_t i : edges_from_[at]) {
      if (!fuel_.spend()) return;
      const Edge& edge = edges_[i];
      if (out_.positions[edge.to].rest < 0) continue;
      if (edge.kind == Edge::Kind::kCall && out_.positions[out_.starts[edge.label]].rest < 0) continue;
      if (edge.kind == Edge::Kind::kText) out_.texts.push_back({edge.label, edge.to});
      if (edge.kind == Edge::Kind::kCall) out_.calls.push_back({edge.label, edge.to, false});
      if (!can_be_empty(edge) || seen_by_[edge.to] == position) continue;
      seen_by_[edge.to] = position;
      open_.push_back(edge.to);
    }
  }
  out.n_texts = static_cast<uint32_t>(out_.texts.size()) - out.first_text;
  out.n_calls = static_cast<uint32_t>(out_.calls.size()) - out.first_call;
}

template <class T>
int64_t bytes_of(const std::vector<T>& items) {
  return static_cast<int64_t>(items.capacity() * sizeof(T));
}

}  // namespace

int64_t EbnfNetwork::n_bytes() const {
  return bytes_of(positions) + bytes_of(texts) + bytes_of(calls) + bytes_of(starts);
}

Result<std::variant<Lang, EbnfNetwork>> make_ebnf_network(Languages& languages, const Ebnf& grammar, Fuel& fuel) {
  Folder folder(languages, grammar, fuel);
  folder.fold();
  if (folder.start().is_regular) return std::variant<Lang, EbnfNetwork>(folder.start().lang);
  DI_ASSIGN_OR_RETURN(EbnfNetwork network, Builder(languages, grammar, folder, fuel).build());
  if (network.positions[network.starts[network.start_rule]].rest < 0) return std::variant<Lang, EbnfNetwork>(kNothing);
  return std::variant<Lang, EbnfNetwork>(std::move(network));
}

}  // namespace deepinfer::grammar
