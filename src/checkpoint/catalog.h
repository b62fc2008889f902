// The typed weight catalogue: which tensors a checkpoint of a given config has, with names exactly as released.
// Knows shapes, not files: a pure function of ModelConfig. Any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace deepinfer {

/// Parts of a checkpoint that are loaded independently.
enum class Section : uint8_t {
  kText,     // backbone: embed, layers.*, norm, head (Engram and gate.bias_vl included)
  kDrafter,  // mtp.*
  kVision,   // vision.*, aligner.*, image_start, image_end, image_newline
};

std::string_view section_name(Section section);  // "text", "drafter", "vision"

class SectionSet {
 public:
  constexpr SectionSet() = default;
  constexpr SectionSet(std::initializer_list<Section> sections) {
    for (const Section section : sections) insert(section);
  }
  constexpr void insert(Section section) { bits_ |= bit(section); }
  [[nodiscard]] constexpr bool contains(Section section) const { return (bits_ & bit(section)) != 0; }

 private:
  static constexpr uint8_t bit(Section section) { return static_cast<uint8_t>(1U << static_cast<uint8_t>(section)); }
  uint8_t bits_ = 0;
};

struct ExpectedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // as stored: packed FP4 counts bytes in the last dimension
  Section section = Section::kText;
  bool random_access = false;  // the Engram tables: rows are gathered, so loading does not read them through

  [[nodiscard]] int64_t n_bytes() const { return shape.n_elements() * element_bytes(dtype); }
};

/// Every tensor of a checkpoint of this config: text first (embed, layers in order, norm, head), then the drafter
/// (when n_draft_layers > 0), then vision (when the config has it). A scale follows its weight and is called like it
/// with `.scale` for `.weight`. Released config: 93,418 + 2,401 + 266 tensors.
/// Cost: one string a tensor, about 0.1 s for the released config.
/// Source: the released model's inventory; gate.bias_vl exists only with a vision tower.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

}  // namespace deepinfer
