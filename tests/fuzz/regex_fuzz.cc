// A pattern up to the last newline, then any text. The machine takes what the pattern's language has, of the text and
// of walks through the masks, and a search finds what a whole match accepts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "grammar/language.h"
#include "grammar/regex.h"
#include "tests/fuzz/grammar_fuzz_walk.h"

namespace {

using namespace deepinfer::grammar;

/// The pattern as a language of its own.
class Searcher {
 public:
  explicit Searcher(std::string_view pattern) : fuel_(fuzz::kStepsMax, std::chrono::milliseconds(500)) {
    languages_.set_fuel(&fuel_);
    const auto search = parse_regex(languages_, pattern, Match::kSearch);
    const auto whole = parse_regex(languages_, pattern, Match::kWhole);
    DI_CHECK(languages_.exhausted() || (search.ok() && whole.ok()));
    if (!search.ok() || !whole.ok()) return;
    search_ = *search;
    whole_ = *whole;
  }
  void check(std::string_view text, bool is_whole) {
    const bool whole = languages_.accepts(whole_, text);
    const bool search = languages_.accepts(search_, text);
    if (languages_.exhausted()) return;
    DI_CHECK(whole == is_whole);
    DI_CHECK(search || !is_whole);
  }

 private:
  Fuel fuel_;
  Languages languages_;
  Lang search_ = kNothing, whole_ = kNothing;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto [pattern, text] = fuzz::halves_of(input);
  Constraint constraint;
  constraint.kind = Constraint::Kind::kRegex;
  constraint.source = pattern;
  const auto grammar = fuzz::compile_bounded(constraint);
  if (!grammar) return 0;
  Searcher searcher(pattern);
  if (const auto accepted = fuzz::accepts(grammar, text)) searcher.check(text, *accepted);
  fuzz::Random random(input);
  for (int i = 0; i < 2; ++i) {
    const auto walked = fuzz::Walk(grammar, true, random).run(12);
    if (walked) searcher.check(*walked, true);
  }
  return 0;
}
