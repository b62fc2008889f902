// Speed of constraints: schemas compiled and their valid instances replayed, on one thread, first visits included.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "deepinfer/constraint.h"
#include "deepinfer/status.h"

namespace deepinfer::bench {

struct GrammarBenchOptions {
  std::string model_dir;           // of the tokenizer
  grammar::SchemaOptions schema;   // how schemas are read
  std::vector<std::string> lines;  // grammar_input.h
  bool json = false;               // one JSON object, else a table
};

/// Every schema is compiled for itself and forgotten again; valid instances are replayed (those that are not marked count
/// as valid), invalid ones not. Times in microseconds: mask (the whole row), descriptor (asking for it alone), advance,
/// compile (text to first mask; refused ones apart); sizes of compiled grammars after their replays; seconds of the tokenizer artefact.
/// Errors   of the tokenizer; kInvalidArgument: a line cannot be read
Status run_grammar_bench(const GrammarBenchOptions& options, std::FILE* out);

}  // namespace deepinfer::bench
