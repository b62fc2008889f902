#include "protocol/special_tokens.h"

#include <string>

namespace deepinfer::protocol {
namespace {

// In the order of Special. Bars are U+FF5C, the underscores of the first two U+2581.
constexpr std::array<std::string_view, kNumSpecials> kSpellings = {
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜System｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜latest_reminder｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜image｜>",
    "<｜/polygon｜>",
    "<｜polygon｜>",
    "<｜/point｜>",
    "<｜point｜>",
    "<｜/box｜>",
    "<｜box｜>",
    "<｜/ref｜>",
    "<｜ref｜>",
};
static_assert(!kSpellings.back().empty());

constexpr std::string_view kOtherImageSpelling = "<｜deepseek_image｜>";
constexpr int32_t kImageId = 129264;  // in every release that knows images

std::optional<int32_t> find_added(const Tokenizer& tokenizer, std::string_view text) {
  const std::optional<int32_t> id = tokenizer.token_to_id(text);
  return id && tokenizer.is_added(*id) ? id : std::nullopt;
}

/// The id goes first: V4's file, which has the token under another name, gives the spelling to another id.
std::optional<int32_t> find_image(const Tokenizer& tokenizer) {
  if (tokenizer.contains(kImageId) && tokenizer.is_added(kImageId)) return kImageId;
  const std::optional<int32_t> id = find_added(tokenizer, spelling(Special::kImage));
  return id ? id : find_added(tokenizer, kOtherImageSpelling);
}

}  // namespace

std::string_view spelling(Special special) { return kSpellings[static_cast<size_t>(special)]; }

Result<SpecialTokens> SpecialTokens::of(const Tokenizer& tokenizer) {
  SpecialTokens tokens;
  for (size_t i = 0; i < kNumSpecials; ++i) {
    const auto special = static_cast<Special>(i);
    tokens.ids_[i] = special == Special::kImage ? find_image(tokenizer) : find_added(tokenizer, spelling(special));
    if (!tokens.ids_[i] && !is_grounding(special))
      return Error{Code::kBadModelFile, "tokenizer.json has no added token " + std::string(spelling(special))};
  }
  return tokens;
}

std::optional<Special> SpecialTokens::find(int32_t id) const {
  for (size_t i = 0; i < kNumSpecials; ++i) {
    if (ids_[i] == id) return static_cast<Special>(i);
  }
  return std::nullopt;
}

}  // namespace deepinfer::protocol
