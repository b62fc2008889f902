// A grammar up to the last newline, then any text. A table of all parts and places, filled until nothing changes, says
// which texts are of the grammar; the machine must say the same, of the text and of its own walks.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/ebnf.h"
#include "grammar/language.h"
#include "tests/fuzz/grammar_fuzz_walk.h"

namespace {

using namespace deepinfer::grammar;

using Ends = uint64_t;  // bit e: a match ends at e
constexpr size_t kTextMax = 24;
constexpr size_t kNodesMax = 200;

class Recogniser {
 public:
  explicit Recogniser(std::string_view grammar) : fuel_(10'000'000, std::chrono::seconds(1)) {
    languages_.set_fuel(&fuel_);
    auto read = parse_ebnf(languages_, grammar, fuel_);
    if (read.ok()) ebnf_ = *std::move(read);
  }

  /// Nothing: too much work.
  std::optional<bool> accepts(std::string_view text) {
    if (text.size() > kTextMax || ebnf_.nodes.size() > kNodesMax || ebnf_.rules.empty()) return std::nullopt;
    text_ = text;
    table_.assign(ebnf_.nodes.size(), std::vector<Ends>(text.size() + 1, 0));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t node = 0; node < ebnf_.nodes.size(); ++node)
        for (size_t at = 0; at <= text.size(); ++at) {
          const Ends ends = match(ebnf_.nodes[node], at);
          changed = changed || ends != table_[node][at];
          table_[node][at] = ends;
          if (!fuel_.spend(50) || languages_.exhausted()) return std::nullopt;
        }
    }
    return (table_[ebnf_.rules[ebnf_.start].body][0] >> text.size() & 1) != 0;
  }

 private:
  Ends match_all(uint32_t part, Ends from) {
    Ends out = 0;
    for (size_t at = 0; at <= text_.size(); ++at)
      if ((from >> at & 1) != 0) out |= table_[part][at];
    return out;
  }

  Ends match(const EbnfNode& node, size_t at) {
    Ends ends = Ends{1} << at;
    switch (node.kind) {
      case EbnfNode::Kind::kTexts:
        return match_texts(node.a, at);
      case EbnfNode::Kind::kCall:
        return table_[ebnf_.rules[node.a].body][at];
      case EbnfNode::Kind::kSequence:
        for (uint32_t i = 0; i < node.n_parts; ++i) ends = match_all(ebnf_.parts[node.a + i], ends);
        return ends;
      case EbnfNode::Kind::kAlternatives:
        ends = 0;
        for (uint32_t i = 0; i < node.n_parts; ++i) ends |= table_[ebnf_.parts[node.a + i]][at];
        return ends;
      case EbnfNode::Kind::kRepeat:
        return match_repeat(node, ends);
    }
    return 0;
  }

  Ends match_texts(Lang lang, size_t at) {
    Ends ends = 0;
    for (size_t end = at; lang != kNothing; ++end) {
      if (languages_.accepts_empty(lang)) ends |= Ends{1} << end;
      if (end == text_.size()) break;
      lang = languages_.next(lang, static_cast<uint8_t>(text_[end]));
    }
    return ends;
  }

  /// More rounds than text_.size() + 1 add nothing: what may be empty may be so at any time, and the rest moves on.
  Ends match_repeat(const EbnfNode& node, Ends ends) {
    const uint32_t part = ebnf_.parts[node.a];
    for (int32_t i = 0; i < node.min && ends != 0; ++i) {
      const Ends next = match_all(part, ends);
      if (next == ends) break;
      ends = next;
    }
    for (int32_t i = node.min; node.max < 0 || i < node.max; ++i) {
      const Ends more = ends | match_all(part, ends);
      if (more == ends) break;
      ends = more;
    }
    return ends;
  }

  Fuel fuel_;
  Languages languages_;
  Ebnf ebnf_;
  std::string_view text_;
  std::vector<std::vector<Ends>> table_;  // by node and place
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto [source, text] = fuzz::halves_of(input);
  Constraint constraint;
  constraint.kind = Constraint::Kind::kEbnf;
  constraint.source = source;
  const auto grammar = fuzz::compile_bounded(constraint);
  if (!grammar) return 0;
  Recogniser recogniser(source);
  const auto accepted = fuzz::accepts(grammar, text);
  const auto recognised = accepted ? recogniser.accepts(text) : std::nullopt;
  DI_CHECK(!recognised || *recognised == *accepted);
  fuzz::Random random(input);
  for (int i = 0; i < 2; ++i) {
    const auto walked = fuzz::Walk(grammar, true, random).run(12);
    if (walked) DI_CHECK(recogniser.accepts(*walked).value_or(true));
  }
  return 0;
}
