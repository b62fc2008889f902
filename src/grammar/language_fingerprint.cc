// Fingerprints: what an expression is, whatever numbers it and its parts have in this store.
#include <algorithm>

#include "grammar/language_store.h"

namespace deepinfer::grammar {

/// As kept per node; one of the two words of a fingerprint that is there is not zero, surely enough.
std::optional<Fingerprint> LanguageStore::fingerprint(Lang lang) {
  if (exhausted() || lang >= nodes_.size()) return std::nullopt;
  if (prints_.size() < nodes_.size()) {
    count_bytes(static_cast<int64_t>((nodes_.size() - prints_.size()) * sizeof(NodePrint)));
    prints_.resize(nodes_.size());
  }
  // The tails of a concatenation may be many, one in the other.
  std::vector<Lang> heads;
  Lang tail = lang;
  for (; kind(tail) == Kind::kConcat && prints_[tail].state == NodePrint::kNotAsked; tail = at(tail).b)
    heads.push_back(tail);
  if (prints_[tail].state == NodePrint::kNotAsked) find_print(tail);
  while (!heads.empty()) {
    find_print(heads.back());
    heads.pop_back();
  }
  const NodePrint& found = prints_[lang];
  if (found.state != NodePrint::kKnown || exhausted()) return std::nullopt;
  return found.print;
}

/// Precondition: of a concatenation the tail has been asked.
void LanguageStore::find_print(Lang lang) {
  const ExprNode node = at(lang);
  const bool is_list = node.kind == Kind::kUnion || node.kind == Kind::kCommon || node.kind == Kind::kOne;
  spend(1 + (is_list ? static_cast<int64_t>(node.b) : 0));
  Fingerprinter print;
  print.add(static_cast<uint64_t>(node.kind));
  bool is_known = true;
  const auto add_part = [&](Lang part) {
    const std::optional<Fingerprint> of_part = fingerprint(part);
    is_known = is_known && of_part.has_value();
    if (of_part) print.add(*of_part);
  };
  const auto add_counts = [&] {
    print.add(uint64_t{static_cast<uint32_t>(node.c)} << 32 | static_cast<uint32_t>(node.d));
  };
  switch (node.kind) {
    case Kind::kNothing:
    case Kind::kEmptyText:
    case Kind::kAnyText:
    case Kind::kAllBytes:
      break;
    case Kind::kBytes:
      for (const uint64_t word : sets_[node.a].words) print.add(word);
      break;
    case Kind::kText:
      print.add(text_of(node));
      break;
    case Kind::kChars:
      for (const CharRange range : char_sets_[node.a].ranges()) print.add(uint64_t{range.first} << 32 | range.last);
      print.add(node.b);
      add_counts();
      break;
    case Kind::kConcat:
      add_part(node.a);
      add_part(node.b);
      break;
    case Kind::kNot:
      add_part(node.a);
      break;
    case Kind::kRepeat:
      add_counts();
      add_part(node.a);
      break;
    case Kind::kUnion:
    case Kind::kCommon:
    case Kind::kOne: {  // their order is that of numbers
      std::vector<Fingerprint> parts;
      for (uint32_t i = 0; i < node.b && is_known; ++i) {
        const std::optional<Fingerprint> part = fingerprint(lists_[node.a + i]);
        is_known = part.has_value();
        if (part) parts.push_back(*part);
      }
      std::sort(parts.begin(), parts.end());
      for (const Fingerprint& part : parts) print.add(part);
      break;
    }
    case Kind::kAutomaton: {
      const std::string_view name = automata_[node.a]->name();
      is_known = !name.empty();
      print.add(name);
      add_counts();
      break;
    }
  }
  if (exhausted()) return;  // parts may have been left out
  prints_[lang] = {print.finish(), is_known ? NodePrint::kKnown : NodePrint::kNone};
}

}  // namespace deepinfer::grammar
