// Machines of plain texts: one regular language, or one of a list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/language.h"
#include "grammar/machine.h"

namespace deepinfer::grammar {

/// The texts of `start`. A state is a Lang, whose kNothing is kDead. Distances are exact.
std::unique_ptr<Machine> make_regex_machine(std::unique_ptr<Languages> languages, Lang start);

/// One of these texts; none: the machine starts dead. A state is a run of the sorted choices with a common prefix, so that
/// memory grows with what is visited. Distances are exact.
std::unique_ptr<Machine> make_choice_machine(std::vector<std::string> choices);

}  // namespace deepinfer::grammar
