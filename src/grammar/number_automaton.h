// Languages of numbers as tables, made once per process and limits: most schemas say the same few.
#pragma once

#include <memory>
#include <string>

#include "grammar/language.h"

namespace deepinfer::grammar {

/// The automaton of a language of number spellings ("0123456789+-.eE"); nullptr: it has more states than fit (512), or `from`
/// ran out of fuel. `name`: as of Automaton::name().
/// Cost     15 derivatives a state
std::shared_ptr<const Languages::Automaton> make_number_automaton(Languages& from, Lang lang, std::string name);

/// What was kept under this name; nullptr: nothing. Any thread.
std::shared_ptr<const Languages::Automaton> find_number_automaton(const std::string& name);
/// Kept as long as the process, up to 1,024 of them (4 MB at most); equal names must mean equal languages. Any thread.
void keep_number_automaton(const std::string& name, std::shared_ptr<const Languages::Automaton> automaton);

}  // namespace deepinfer::grammar
