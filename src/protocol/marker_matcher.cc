#include "protocol/marker_matcher.h"

#include <utility>

#include "base/check.h"
#include "protocol/special_tokens.h"

namespace deepinfer::protocol {
namespace {

uint32_t n_bytes_of(unsigned char symbol) {
  if (symbol == kThinkCloseSymbol) return static_cast<uint32_t>(spelling(Special::kThinkClose).size());
  if (symbol == kDsmlSymbol) return static_cast<uint32_t>(spelling(Special::kDsml).size());
  return 1;
}

}  // namespace

MarkerMatcher::MarkerMatcher(std::string symbols, bool with_newlines)
    : symbols_(std::move(symbols)), with_newlines_(with_newlines) {
  DI_CHECK(!symbols_.empty());
  prefix_bytes_.push_back(0);
  for (const char c : symbols_)
    prefix_bytes_.push_back(prefix_bytes_.back() + n_bytes_of(static_cast<unsigned char>(c)));
  borders_.push_back(0);
  for (size_t i = 1; i < symbols_.size(); ++i) {
    uint32_t border = borders_[i - 1];
    while (border > 0 && symbols_[border] != symbols_[i]) border = borders_[border - 1];
    borders_.push_back(border + (symbols_[border] == symbols_[i] ? 1 : 0));
  }
}

void MarkerMatcher::add_to(WakeBytes& bytes) const {
  bytes.first[static_cast<unsigned char>(symbols_[0])] = true;
  if (with_newlines_) bytes.first['\n'] = true;
  if (symbols_.size() > 1) {
    bytes.second[static_cast<unsigned char>(symbols_[1])] = true;
  } else {
    bytes.is_one_enough = true;
  }
}

void MarkerMatcher::fall_back(unsigned char symbol) {
  while (n_matched_ > 0) {
    n_matched_ = borders_[n_matched_ - 1];
    if (symbol != static_cast<unsigned char>(symbols_[n_matched_])) continue;
    ++n_matched_;  // cannot complete: the border is shorter than what was matched
    return;
  }
}

}  // namespace deepinfer::protocol
