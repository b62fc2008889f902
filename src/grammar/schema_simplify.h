// The graph of a read schema: cycles that no instance step breaks, and nodes that say nothing or allow nothing. One thread.
#pragma once

#include <vector>

#include "grammar/schema.h"

namespace deepinfer::grammar {

/// Nodes n0, n1, .. of a cycle of in-place references (each applies the next to the same value, the last the first);
/// empty: there is none.
/// Cost     linear
std::vector<NodeId> find_in_place_cycle(const Schema& schema);

/// Replaces nodes that are always true, never true or only stand for another node, drops members of in-place groups that
/// decide nothing, and then the nodes that nothing refers to any more. The set of valid values stays the same.
/// Precondition: no in-place cycle
/// Cost     linear
void simplify(Schema& schema);

}  // namespace deepinfer::grammar
