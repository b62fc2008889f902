// Rules as networks of positions: what is regular is folded into languages, what can lead nowhere is left out.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "deepinfer/status.h"
#include "grammar/ebnf.h"
#include "grammar/fuel.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

/// Every way through a rule is a path from its start to a position with rest 0, over texts and calls of rules. All that
/// can be empty has been stepped over: a rule may end at a position, or not, without looking further.
struct EbnfNetwork {
  struct Text {
    Lang lang;  // not empty; its empty text, if it has one, does not count
    uint32_t to;
  };
  struct Call {
    uint32_t rule;  // an empty text of the rule does not count, though it may have one
    uint32_t to;
    bool is_last;  // nothing can follow: the caller ends where the called rule ends
  };
  struct Position {
    uint32_t first_text = 0, n_texts = 0, first_call = 0, n_calls = 0;
    int64_t rest = -1;  // bytes of a shortest way to the end of the rule; all positions that are reached have one
  };
  std::vector<Position> positions;
  std::vector<Text> texts;
  std::vector<Call> calls;
  std::vector<uint32_t> starts;  // a position by rule
  uint32_t start_rule = 0;

  [[nodiscard]] int64_t n_bytes() const;
};

/// The whole grammar as one language where no rule needs a stack, otherwise a network; kNothing if no text matches.
/// Errors   kInvalidArgument: repeats of parts that are not regular expand to too many positions
/// Cost     spends `fuel`; where that or `languages` runs out the result is of no use, which the caller looks at
Result<std::variant<Lang, EbnfNetwork>> make_ebnf_network(Languages& languages, const Ebnf& grammar, Fuel& fuel);

}  // namespace deepinfer::grammar
