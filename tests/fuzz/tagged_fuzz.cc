// Free text with regions: a byte of options, regions up to the last newline, then a text. 0x1E stands between regions,
// 0x1F between begin, end and content, whose first letter is its kind. Plain recursion over places says which texts
// are right.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/grammar_fuzz_walk.h"
#include "text/utf8.h"

namespace {

using namespace deepinfer::grammar;
using deepinfer::find_ill_formed;

/// What is up to `mark`, which goes with it.
std::string_view cut(std::string_view& rest, char mark) {
  const size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return part;
}

Constraint constraint_of(uint8_t options, std::string_view regions) {
  Constraint constraint;
  constraint.kind = Constraint::Kind::kTagged;
  constraint.region_required = (options & 1) != 0;
  constraint.free_text = (options & 2) == 0;
  while (!regions.empty() && constraint.regions.size() < 8) {
    std::string_view region = cut(regions, '\x1E');
    const std::string_view begin = cut(region, '\x1F'), end = cut(region, '\x1F');
    auto content = std::make_shared<Constraint>();
    const char kind = region.empty() ? 'r' : region.front();
    content->kind = kind == 'e'   ? Constraint::Kind::kEbnf
                    : kind == 's' ? Constraint::Kind::kJsonSchema
                    : kind == 'c' ? Constraint::Kind::kChoice
                                  : Constraint::Kind::kRegex;
    content->source = region.substr(std::min<size_t>(1, region.size()));
    for (std::string_view rest = content->source; kind == 'c' && !rest.empty();)
      content->choices.emplace_back(cut(rest, '|'));
    constraint.regions.push_back({std::string(begin), std::string(end), std::move(content)});
  }
  return constraint;
}

class Recogniser {
 public:
  explicit Recogniser(const Constraint& constraint) : constraint_(constraint) {
    for (const Constraint::Region& region : constraint.regions)
      contents_.push_back(fuzz::compile_bounded(*region.content));
  }

  /// Nothing: a limit was reached.
  std::optional<bool> accepts(std::string_view text) {
    for (const auto& content : contents_)
      if (!content) return std::nullopt;
    text_ = text;
    known_.clear();
    has_failed_ = false;
    const bool accepted = from(0, constraint_.free_text && !constraint_.region_required);
    return has_failed_ ? std::nullopt : std::optional(accepted);
  }

 private:
  /// Behind a region, or at the start. `may_end`: enough regions were there.
  bool from(size_t at, bool may_end) {
    const auto [known, is_new] = known_.try_emplace({at, may_end}, false);
    if (!is_new) return known->second;
    const bool accepted = constraint_.free_text ? free_from(at, may_end) : begin_at(at, may_end);
    return known_[{at, may_end}] = accepted;
  }

  bool free_from(size_t at, bool may_end) {
    for (size_t end = at + 1; end <= text_.size(); ++end) {
      size_t longest = 0;
      for (const Constraint::Region& region : constraint_.regions)
        if (region.begin.size() <= end - at && text_.substr(0, end).ends_with(region.begin))
          longest = std::max(longest, region.begin.size());
      if (longest == 0) continue;
      if (find_ill_formed(text_.substr(at, end - at))) return false;
      for (size_t i = 0; i < contents_.size(); ++i) {
        const std::string& begin = constraint_.regions[i].begin;
        if (begin.size() == longest && text_.substr(0, end).ends_with(begin) && inside(i, end)) return true;
      }
      return false;
    }
    return may_end && !find_ill_formed(text_.substr(at));
  }

  bool begin_at(size_t at, bool may_end) {
    if (at == text_.size()) return may_end;
    for (size_t i = 0; i < contents_.size(); ++i) {
      const std::string& begin = constraint_.regions[i].begin;
      if (text_.substr(at).starts_with(begin) && inside(i, at + begin.size())) return true;
    }
    return false;
  }

  bool inside(size_t region, size_t at) {
    const std::string& end = constraint_.regions[region].end;
    Matcher matcher(contents_[region]);
    while (true) {
      if (matcher.complete() && text_.substr(at).starts_with(end) && from(at + end.size(), true)) return true;
      if (at == text_.size() || !matcher.advance(static_cast<uint8_t>(text_[at]) + 1)) break;
      ++at;
    }
    has_failed_ = has_failed_ || !contents_[region]->states()->failure().empty();
    return false;
  }

  const Constraint& constraint_;
  std::vector<std::shared_ptr<CompiledGrammar>> contents_;
  std::string_view text_;
  std::map<std::pair<size_t, bool>, bool> known_;
  bool has_failed_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto [regions, text] = fuzz::halves_of(input.substr(1));
  const Constraint constraint = constraint_of(data[0], regions);
  const auto grammar = fuzz::compile_bounded(constraint);
  if (!grammar) return 0;
  Recogniser recogniser(constraint);
  const auto accepted = fuzz::accepts(grammar, text);
  const auto recognised = accepted ? recogniser.accepts(text) : std::nullopt;
  DI_CHECK(!recognised || *recognised == *accepted);
  fuzz::Random random(input);
  for (int i = 0; i < 2; ++i) {
    const auto walked = fuzz::Walk(grammar, false, random).run(16);
    if (walked) DI_CHECK(recogniser.accepts(*walked).value_or(true));
  }
  return 0;
}
