// The engine as an embedder sees it: open a model directory, generate, score. One Engine belongs to one thread at a
// time; requests run one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/options.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"

namespace deepinfer {

/// Called with work done and work in all (bytes while loading, tokens while prefilling). May be empty.
using Progress = std::function<void(int64_t done, int64_t total)>;

/// What a caller may watch while a request runs. All members may be empty.
struct GenerationEvents {
  std::function<void(int32_t sequence, std::string_view text)> on_text;  // text that is certain to stay, in order
  /// Each token of the answer (never a stop id), before its text. False ends the sequence with this token, as a stop.
  std::function<bool(int32_t sequence, int32_t token_id)> on_token;
  Progress on_prefill;
};

struct Score {
  std::vector<double> logprobs;  // of token i + 1 given tokens 0..i; one fewer than tokens
  double nll = 0;                // -sum of logprobs, in nats
  double perplexity = 0;         // exp(nll / logprobs.size()); NaN when there is none
};

/// Receives logits rows [n, vocab] of consecutive tokens, the first being `first_token`.
using LogitsSink = std::function<Status(int64_t first_token, std::span<const float> logits)>;

class Engine {
 public:
  /// Reads the model and reserves all memory. kInvalidArgument for options out of range, kBadModelFile for the
  /// directory, kOutOfCapacity when memory does not suffice.
  static Result<Engine> open(const EngineOptions& options, const Progress& progress = {});

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  [[nodiscard]] const Tokenizer& tokenizer() const;
  [[nodiscard]] int32_t vocab_size() const;  // of the model's head
  [[nodiscard]] int32_t bos_token_id() const;
  [[nodiscard]] int64_t n_context() const;
  [[nodiscard]] std::string_view backend_name() const;
  /// Lines worth a log entry: unused tensors, unknown config keys.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  /// Ids of prompt text: BOS in front unless it has one; added tokens in it are matched when `special`.
  [[nodiscard]] Result<std::vector<int32_t>> encode_prompt(std::string_view text, bool special = true) const;

  /// Runs a request to its end; one completion a sequence. kInvalidArgument names field, value and limit.
  Result<std::vector<Completion>> generate(const Request& request, const GenerationEvents& events = {});

  /// Log-probabilities of given ids (always with all rows through all layers); every logits row goes to `sink` when
  /// set.
  Result<Score> score(std::span<const int32_t> tokens, const LogitsSink& sink = {}, const Progress& progress = {});

  /// Runs n_tokens prompt rows, then n_steps decode rows, of arbitrary ids without sampling: what benchmarks time.
  /// kInvalidArgument when they do not fit the context.
  Result<Timing> time_forward(int64_t n_tokens, int64_t n_steps);

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What `deepinfer inspect` shows of a model directory: config, layer plan, tensors, memory plan. No weight is read.
/// kBadModelFile as open().
Result<std::string> inspect_model(const EngineOptions& options, bool as_json);

/// For `deepinfer doctor`.
struct MachineReport {
  std::string text;      // what this machine can run, what is missing, and what is wrong with the shipped model
  Status shipped_model;  // one line when something is
};

/// Reads all of the shipped model, whose directory is given or the reason why there is none, and compares it with its
/// SHA256SUMS.
MachineReport describe_machine(const Result<std::string>& shipped_model_dir, bool as_json);

}  // namespace deepinfer
