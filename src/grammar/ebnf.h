// Grammars as clients write them: EBNF in the GBNF style. Text -> rules over languages; docs/GRAMMAR.md has the dialect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "grammar/fuel.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

/// A part of a rule's body. Parts stand before what they are part of.
struct EbnfNode {
  enum class Kind : uint8_t { kTexts, kCall, kSequence, kAlternatives, kRepeat };
  Kind kind = Kind::kTexts;
  uint32_t a = 0;  // kTexts: a Lang; kCall: a rule; else the first of its parts in Ebnf::parts
  uint32_t n_parts = 0;
  int32_t min = 1, max = 1;  // kRepeat; max -1: any number
};

struct EbnfRule {
  std::string name;
  uint32_t first_node = 0, body = 0;  // all nodes of the rule, of which the body is the last
};

struct Ebnf {
  std::vector<EbnfNode> nodes;
  std::vector<uint32_t> parts;
  std::vector<EbnfRule> rules;  // all are defined
  uint32_t start = 0;
};

/// Literals and classes become languages at once.
/// Errors   kInvalidArgument: what is wrong, with line and column (characters, from 1)
/// Cost     linear; spends `fuel`, and stops early where that is empty, which the caller looks at
Result<Ebnf> parse_ebnf(Languages& languages, std::string_view text, Fuel& fuel);

}  // namespace deepinfer::grammar
