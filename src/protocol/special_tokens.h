// The tokens that the prompt writer may write and the output reader listens for: everything else is text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"

namespace deepinfer::protocol {

enum class Special : uint8_t {
  kBos,
  kEos,
  kSystem,
  kUser,
  kAssistant,
  kLatestReminder,
  kThinkOpen,
  kThinkClose,
  kDsml,  // ｜DSML｜, without angle brackets
  kImage,
  // Grounding: what the model says about places in an image. Content, not control.
  kPolygonClose,
  kPolygonOpen,
  kPointClose,
  kPointOpen,
  kBoxClose,
  kBoxOpen,
  kRefClose,
  kRefOpen,
};
inline constexpr size_t kNumSpecials = 18;

constexpr bool is_grounding(Special special) { return special >= Special::kPolygonClose; }

/// How it is written out ("<｜User｜>"). Lives for ever.
std::string_view spelling(Special special);

/// Ids of one tokenizer.
class SpecialTokens {
 public:
  /// Looked up by spelling; the image placeholder, which the released files spell in two ways, also by its id 129264.
  /// Errors   kBadModelFile: one that prompts need is no added token (the grounding tokens may be missing)
  static Result<SpecialTokens> of(const Tokenizer& tokenizer);

  /// Nothing for a grounding token that the tokenizer lacks.
  [[nodiscard]] std::optional<int32_t> id(Special special) const { return ids_[static_cast<size_t>(special)]; }
  [[nodiscard]] std::optional<Special> find(int32_t id) const;

 private:
  std::array<std::optional<int32_t>, kNumSpecials> ids_{};
};

}  // namespace deepinfer::protocol
