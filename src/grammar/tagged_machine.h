// Free text with regions: after a begin string the text follows the machine of the region, up to its end string.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/machine.h"

namespace deepinfer::grammar {

struct TaggedRegion {
  std::string begin, end;
  std::unique_ptr<Machine> content;  // of well-formed UTF-8 texts
};

/// Why these regions cannot be told apart, or are otherwise no use; contents are not looked into.
std::optional<std::string> refuse_regions(std::span<const Constraint::Region> regions, bool free_text);

/// Precondition: refuse_regions() is fine with the regions, and no content starts dead.
///
/// A content that may end may also go on: both are followed, so that every way to read the text counts. A state is a set of
/// such ways, each a place in free text, in a content or in an end string. States are dead exactly when no text goes on
/// like that, as far as the contents know. distance() is exact up to what the contents say, but in free text before a
/// region that must come it may be an upper bound.
std::unique_ptr<Machine> make_tagged_machine(std::vector<TaggedRegion> regions, bool free_text, bool region_required);

}  // namespace deepinfer::grammar
