#include "deepinfer/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "engine/answer_text.h"
#include "engine/backend_factory.h"
#include "engine/constraints.h"
#include "engine/memory_plan.h"
#include "engine/model_loader.h"
#include "engine/request_check.h"
#include "engine/sequence_runner.h"
#include "grammar/matcher.h"
#include "platform/cpu_features.h"
#include "sampling/logprobs.h"
#include "sampling/mask.h"
#include "sampling/sampler.h"

namespace deepinfer {

namespace {

// The release's end and padding tokens end an answer whatever the request and config.json say.
constexpr int32_t kAlwaysStopIds[] = {1, 2};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token_id, int32_t n_top) {
  const double normalizer = log_sum_exp(logits);
  TokenLogprobs result{.token_id = token_id, .logprob = *logprob(logits, token_id, normalizer)};
  std::vector<TokenLogprob> top(static_cast<size_t>(n_top));
  top.resize(static_cast<size_t>(top_logprobs(logits, normalizer, top)));
  for (const TokenLogprob& entry : top) result.top.push_back({entry.token_id, entry.logprob});
  return result;
}

}  // namespace

struct Engine::State {
  EngineOptions options;  // resolved: nothing left at "automatic"
  std::vector<std::string> warnings;
  // Order matters: later members borrow from earlier ones.
  std::unique_ptr<ops::Backend> backend;
  LoadedModel loaded;
  std::unique_ptr<KvMemory> kv_memory;
  std::unique_ptr<kv::Allocator> allocator;
  std::unique_ptr<ForwardPass> pass;
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<Constraints> constraints;
  std::vector<float> logits;                // [vocab] of the row being sampled
  std::vector<float> allowed_logits;        // the same under a constraint
  std::vector<grammar::MaskWord> mask_row;  // bits of the tokens that it allows

  [[nodiscard]] RunnerContext runner_context(int32_t n_tail_rows) const {
    return {.model = loaded.model.get(),
            .pass = pass.get(),
            .kv_memory = kv_memory.get(),
            .allocator = allocator.get(),
            .n_batch_tokens = options.n_batch_tokens,
            .n_tail_rows = n_tail_rows};
  }

  [[nodiscard]] std::vector<int32_t> end_ids() const;
  Result<Completion> run_sequence(const Request& request, int32_t sequence, std::optional<grammar::Matcher> matcher,
                                  const GenerationEvents& events);
  /// allowed_logits: the logits of what may stand at `position` under a constraint.
  Status apply_constraint(const grammar::Matcher& matcher, int64_t position);
};

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::open(const EngineOptions& options, const Progress& progress) {
  DI_RETURN_IF_ERROR(check_options(options));
  auto state = std::make_unique<State>();
  state->options = options;
  if (options.n_threads == 0) state->options.n_threads = available_cpus();
  DI_ASSIGN_OR_RETURN(state->backend, make_backend(options.backend, options.numerics, state->options.n_threads));
  DI_ASSIGN_OR_RETURN(state->loaded, load_model(options.model_dir, *state->backend, progress));
  state->warnings = state->loaded.checkpoint->warnings();

  const ModelConfig& config = state->loaded.model->config;
  DI_ASSIGN_OR_RETURN(const MemoryPlan plan, plan_memory(config, state->options));
  state->options.n_context = plan.n_context;
  state->options.n_batch_tokens = plan.limits.n_rows_max;
  DI_ASSIGN_OR_RETURN(KvMemory kv_memory, KvMemory::create(config, plan.kv_size, *state->backend));
  state->kv_memory = std::make_unique<KvMemory>(std::move(kv_memory));
  state->allocator = std::make_unique<kv::Allocator>(plan.kv_size.n_slots, plan.kv_size.n_blocks);
  DI_ASSIGN_OR_RETURN(ForwardPass pass, ForwardPass::create(*state->loaded.model, *state->backend,
                                                            {.limits = plan.limits,
                                                             .n_slots = plan.kv_size.n_slots,
                                                             .n_tail_rows = tail_rows(config, options)}));
  state->pass = std::make_unique<ForwardPass>(std::move(pass));
  state->sampler = std::make_unique<Sampler>(config.vocab_size);
  state->constraints = std::make_unique<Constraints>(*state->loaded.tokenizer, state->end_ids(), config.vocab_size);
  state->logits.resize(static_cast<size_t>(config.vocab_size));
  DI_RETURN_IF_ERROR(state->loaded.checkpoint->verify_sizes());  // nothing was cut while it was read
  return Engine(std::move(state));
}

const Tokenizer& Engine::tokenizer() const { return *state_->loaded.tokenizer; }
int32_t Engine::vocab_size() const { return state_->loaded.model->config.vocab_size; }
int32_t Engine::bos_token_id() const { return state_->loaded.model->config.bos_token_id; }
int64_t Engine::n_context() const { return state_->options.n_context; }
std::string_view Engine::backend_name() const { return state_->backend->name(); }
const std::vector<std::string>& Engine::warnings() const { return state_->warnings; }

Result<std::vector<int32_t>> Engine::encode_prompt(std::string_view text, bool special) const {
  DI_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer().encode(text, special));
  if (ids.empty() || ids.front() != bos_token_id()) ids.insert(ids.begin(), bos_token_id());
  return ids;
}

Result<std::vector<Completion>> Engine::generate(const Request& request, const GenerationEvents& events) {
  DI_RETURN_IF_ERROR(check_request(request, vocab_size(), n_context()));
  std::optional<grammar::Matcher> matcher;
  if (request.constraint) {
    DI_ASSIGN_OR_RETURN(std::shared_ptr<grammar::CompiledGrammar> compiled,
                        state_->constraints->compile(*request.constraint));
    matcher.emplace(std::move(compiled), grammar::MatcherOptions{.starts_after = request.constraint_starts_after});
  }
  std::vector<Completion> completions;
  for (int32_t sequence = 0; sequence < request.n_sequences; ++sequence) {
    DI_ASSIGN_OR_RETURN(Completion completion, state_->run_sequence(request, sequence, matcher, events));
    completions.push_back(std::move(completion));
  }
  return completions;
}

std::vector<int32_t> Engine::State::end_ids() const {
  std::vector<int32_t> ids{loaded.model->config.eos_token_id};
  for (const int32_t id : kAlwaysStopIds) {
    if (id < loaded.model->config.vocab_size && std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

Status Engine::State::apply_constraint(const grammar::Matcher& matcher, int64_t position) {
  const grammar::Mask mask = matcher.mask();
  if (mask.empty()) {
    const std::string cause = matcher.failure();
    return Error{Code::kInvalidArgument,
                 "no token can follow at position " + std::to_string(position) +
                     " under the constraint: " + (cause.empty() ? "the text so far cannot be completed" : cause)};
  }
  allowed_logits.resize(logits.size());
  mask_row.resize((logits.size() + 63) / 64);
  mask.fill(mask_row);
  keep_allowed(logits, mask_row, allowed_logits);
  return {};
}

Result<Completion> Engine::State::run_sequence(const Request& request, int32_t sequence,
                                               std::optional<grammar::Matcher> matcher,
                                               const GenerationEvents& events) {
  Completion answer;
  answer.usage.n_prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t n_new_max =
      std::min(request.max_tokens, options.n_context - static_cast<int64_t>(request.prompt.size()));
  if (n_new_max == 0) return answer;

  SamplingParams params = sampling_params(request.sampling);
  params.seed = derive_seed(params.seed, static_cast<uint64_t>(sequence));
  AnswerText text(*loaded.tokenizer, request.prompt, request.stop_strings);
  const auto emit = [&](const std::string& delta) {
    if (events.on_text && !delta.empty()) events.on_text(sequence, delta);
  };
  const auto is_stop_id = [&](int32_t id) {
    return id == loaded.model->config.eos_token_id ||
           std::ranges::find(kAlwaysStopIds, id) != std::end(kAlwaysStopIds) ||
           std::ranges::find(request.stop_ids, id) != request.stop_ids.end();
  };

  DI_ASSIGN_OR_RETURN(SequenceRunner runner,
                      SequenceRunner::create(runner_context(tail_rows(loaded.model->config, options))));
  auto start = std::chrono::steady_clock::now();
  DI_RETURN_IF_ERROR(runner.prefill(request.prompt, logits, events.on_prefill));
  answer.timing.prefill_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  for (;;) {
    const int64_t position = answer.usage.n_prompt_tokens + static_cast<int64_t>(answer.token_ids.size());
    if (matcher) DI_RETURN_IF_ERROR(apply_constraint(*matcher, position));
    const Result<int32_t> sampled = sampler->sample(matcher ? allowed_logits : logits, position, params);
    if (!sampled.ok()) {  // the parameters were checked, so it is the logits
      return Error{Code::kBadModelFile, "the model's logits for position " + std::to_string(position) +
                                            " cannot be sampled from: " + sampled.error().message};
    }
    const int32_t token = *sampled;
    if (is_stop_id(token)) {
      answer.finish_reason = FinishReason::kStop;
      break;
    }
    if (matcher && !matcher->advance(token)) {  // a mask and its machine disagree: end this request, not the process
      return Error{Code::kInvalidArgument, "the constraint admitted token " + std::to_string(token) + " at position " +
                                               std::to_string(position) + " and then refused it"};
    }
    answer.token_ids.push_back(token);
    if (request.n_logprobs) answer.logprobs.push_back(token_logprobs(logits, token, *request.n_logprobs));
    const bool is_wanted = !events.on_token || events.on_token(sequence, token);
    emit(text.push(token));
    if (!is_wanted) answer.finish_reason = FinishReason::kStop;
    if (!is_wanted || text.stopped() || static_cast<int64_t>(answer.token_ids.size()) == n_new_max) break;
    DI_RETURN_IF_ERROR(runner.decode(token, logits));
    ++answer.timing.n_decode_steps;
  }
  answer.timing.decode_seconds = seconds_since(start);

  emit(text.finish());
  if (text.stopped()) answer.finish_reason = FinishReason::kStop;
  answer.stop_string = text.stop_string();
  answer.text = text.text();
  const auto n_kept = static_cast<size_t>(text.n_kept());
  answer.token_ids.resize(n_kept);
  if (request.n_logprobs) answer.logprobs.resize(n_kept);
  answer.usage.n_completion_tokens = static_cast<int64_t>(n_kept);
  return answer;
}

Result<Score> Engine::score(std::span<const int32_t> tokens, const LogitsSink& sink, const Progress& progress) {
  DI_RETURN_IF_ERROR(check_token_ids(tokens, vocab_size(), n_context()));
  Score score;
  const auto vocab = static_cast<size_t>(vocab_size());
  const auto take_rows = [&](int64_t first, std::span<const float> rows) -> Status {
    for (size_t i = 0; i < rows.size() / vocab; ++i) {
      const size_t next = static_cast<size_t>(first) + i + 1;
      if (next == tokens.size()) break;
      const std::span<const float> row = rows.subspan(i * vocab, vocab);
      const std::optional<double> value = logprob(row, tokens[next], log_sum_exp(row));
      if (!value) {
        return Error{Code::kBadModelFile, "the model gives token " + std::to_string(tokens[next]) + " at position " +
                                              std::to_string(next) + " no finite log-probability"};
      }
      score.logprobs.push_back(*value);
      score.nll -= *value;
    }
    return sink ? sink(first, rows) : Status{};
  };
  DI_ASSIGN_OR_RETURN(SequenceRunner runner, SequenceRunner::create(state_->runner_context(0)));
  DI_RETURN_IF_ERROR(runner.score(tokens, take_rows, progress));
  score.perplexity = score.logprobs.empty() ? std::numeric_limits<double>::quiet_NaN()
                                            : std::exp(score.nll / static_cast<double>(score.logprobs.size()));
  return score;
}

Result<Timing> Engine::time_forward(int64_t n_tokens, int64_t n_steps) {
  if (n_tokens < 1 || n_steps < 0 || n_tokens + n_steps > n_context()) {
    return Error{Code::kInvalidArgument, std::to_string(n_tokens) + " prompt tokens and " + std::to_string(n_steps) +
                                             " steps do not fit a context of " + std::to_string(n_context())};
  }
  std::vector<int32_t> tokens(static_cast<size_t>(n_tokens + n_steps));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto block = Philox{0}.block(i, RandomPurpose::kToken, 0);
    tokens[i] = static_cast<int32_t>(block[0] % static_cast<uint32_t>(vocab_size()));
  }
  DI_ASSIGN_OR_RETURN(
      SequenceRunner runner,
      SequenceRunner::create(state_->runner_context(tail_rows(state_->loaded.model->config, state_->options))));
  Timing timing{.n_decode_steps = n_steps};
  auto start = std::chrono::steady_clock::now();
  DI_RETURN_IF_ERROR(runner.prefill(std::span(tokens).first(static_cast<size_t>(n_tokens)), state_->logits, {}));
  timing.prefill_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < n_steps; ++i) {
    DI_RETURN_IF_ERROR(runner.decode(tokens[static_cast<size_t>(n_tokens + i)], state_->logits));
  }
  timing.decode_seconds = seconds_since(start);
  return timing;
}

}  // namespace deepinfer
