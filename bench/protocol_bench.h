// Speed of the protocol layer: request body → prompt, and model output → events, on one core.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "deepinfer/status.h"

namespace deepinfer::bench {

struct ProtocolBenchOptions {
  int32_t n_runs = 5;     // of each case; the cases take turns
  std::string model_dir;  // of the tokenizer
};

/// Prints one JSON line a case: bench, commit, machine, case, scale, bytes, seconds (min, median, p90), ns_per_byte.
/// `render` reads a Chat Completions body and writes its prompt: 100 turns and 20 tools (about 100 kB), then the same
/// with one field at a time 10 and 100 times as large (tools: up to the limit), to show that no field costs more than
/// linear time. `encode` turns the prompt into ids. `stream` parses an answer in chunks of 16 bytes into the stream events
/// of each API. `parse` is the output parser alone.
/// Errors   of the tokenizer, as they come
Status run_protocol_bench(const ProtocolBenchOptions& options, std::FILE* out);

}  // namespace deepinfer::bench
