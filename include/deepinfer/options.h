// How an engine is set up: parsed and validated once, immutable afterwards. Every field has a command-line option of
// the same name (docs/OPTIONS.md).
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

enum class Numerics : uint8_t {
  kReference,      // the model's rounding points, sums in double: the ref backend
  kDeterministic,  // the same rounding points, any fixed row-invariant order of sums
  kFast,           // row-variant forms and wider intermediates are allowed
};

/// Which rows of a prompt the layers after the last KV source run on.
enum class PrefillTail : uint8_t {
  kCompact,  // the last n_compact_rows rows: approximate (the model is trained for it)
  kExact,    // every row the last token depends on: same result as kFull
  kFull,     // all rows
};

struct EngineOptions {
  std::string model_dir;
  std::string backend = "auto";  // auto, cpu, ref
  int32_t n_threads = 0;         // 0: every processor this process may use
  Numerics numerics = Numerics::kDeterministic;
  PrefillTail prefill_tail = PrefillTail::kFull;
  int32_t n_compact_rows = 0;    // rows of kCompact; 0: the last window + 2 * (draft block + 1)
  int64_t n_context = 0;         // most tokens of a sequence, prompt and answer; 0: the model's own limit
  int64_t kv_bytes = 0;          // memory for the global KV; 0: what one sequence of n_context tokens needs
  int32_t n_batch_tokens = 512;  // most rows of a step; activations are reserved for it
};

/// Limits that bound what a caller can make the engine reserve.
inline constexpr int64_t kContextMax = int64_t{1} << 24;
inline constexpr int32_t kBatchTokensMax = 65536;
inline constexpr int32_t kThreadsMax = 1024;

}  // namespace deepinfer
