// Random texts under a constraint, made through its masks: what a model that knows nothing would write.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "deepinfer/status.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

namespace deepinfer::cli {

/// Draws tokens from masks; once `n_bytes` are there, looks for a short way to the end.
/// Errors   kInvalidArgument: the mask was empty (why), or no end was found
Result<std::string> random_text(const grammar::Vocabulary& vocabulary,
                                const std::shared_ptr<grammar::CompiledGrammar>& compiled, int64_t n_bytes,
                                std::mt19937_64& random);

}  // namespace deepinfer::cli
