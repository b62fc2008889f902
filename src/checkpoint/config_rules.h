// Which layer plans and widths are possible: the rules between values of a ModelConfig. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"

namespace deepinfer {

/// Every broken rule, in words that name the key, its value and the rule; empty for a valid config. Precondition: each
/// value by itself is inside the range that parse_model_config checks (sizes positive and small enough for products).
/// `draft_compress_ratios` are the entries of compress_ratios behind those of the backbone layers.
std::vector<std::string> config_rule_problems(const ModelConfig& config,
                                              const std::vector<int32_t>& draft_compress_ratios);

}  // namespace deepinfer
