// `deepinfer generate`: one request, its answers as running text or as JSON lines.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/json_answers.h"
#include "cli/line_io.h"
#include "cli/progress.h"
#include "cli/values.h"

namespace deepinfer::cli {

namespace {

/// Running text on standard output; with several sequences each under a heading.
class TextPrinter {
 public:
  explicit TextPrinter(int32_t n_sequences) : n_sequences_(n_sequences) {}

  void print(int32_t sequence, std::string_view text) {
    go_to(sequence);
    write(text);
  }

  void finish() {
    go_to(n_sequences_ - 1);
    write("\n");
  }

 private:
  void go_to(int32_t sequence) {
    if (n_sequences_ == 1) return;
    while (current_ < sequence) {
      if (current_ >= 0) write("\n");
      ++current_;
      write("--- answer " + std::to_string(current_ + 1) + " of " + std::to_string(n_sequences_) + " ---\n");
    }
  }

  void write(std::string_view text) {
    const Status status = output_.write(text);
    if (status.ok()) return;
    // The reader is gone and a callback cannot stop the engine: end here, with nothing left to clean up.
    tell("deepinfer: " + status.error().message);
    std::_Exit(exit_code(status.error().code));
  }

  Output output_ = Output::standard();
  int32_t n_sequences_;
  int32_t current_ = -1;
};

Result<std::vector<int32_t>> prompt_ids(const Engine& engine, const GenerateArguments& arguments) {
  if (arguments.tokens) return *arguments.tokens;
  if (arguments.prompt) return engine.encode_prompt(*arguments.prompt, arguments.special);
  Result<std::string> text = read_file("--prompt-file", *arguments.prompt_file, Tokenizer::kTextBytesMax);
  if (!text.ok()) return text.error();
  const std::string where = "--prompt-file " + shown(*arguments.prompt_file) + ": the prompt is ";
  if (text->empty()) return Error{Code::kInvalidArgument, where + "empty"};
  if (const auto offset = ill_formed_offset(*text)) {
    return Error{Code::kInvalidArgument, where + "not valid UTF-8 at byte " + std::to_string(*offset)};
  }
  return engine.encode_prompt(*text, arguments.special);
}

void tell_stats(const Engine& engine, const Completion& completion) {
  const Timing& timing = completion.timing;
  const auto speed = [](int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; };
  char text[256];
  std::snprintf(text, sizeof text,
                "backend %s: prompt %lld tokens in %.3f s (%.1f/s), answer %lld tokens, %lld steps in %.3f s (%.1f/s)",
                std::string(engine.backend_name()).c_str(), static_cast<long long>(completion.usage.n_prompt_tokens),
                timing.prefill_seconds, speed(completion.usage.n_prompt_tokens, timing.prefill_seconds),
                static_cast<long long>(completion.usage.n_completion_tokens),
                static_cast<long long>(timing.n_decode_steps), timing.decode_seconds,
                speed(timing.n_decode_steps, timing.decode_seconds));
  tell(text);
}

}  // namespace

Status run_generate(const GenerateArguments& arguments) {
  Result<Engine> engine = open_engine(arguments.engine, arguments.log_level);
  if (!engine.ok()) return engine.error();
  Request request = arguments.request;
  Result<std::vector<int32_t>> ids = prompt_ids(*engine, arguments);
  if (!ids.ok()) return ids.error();
  request.prompt = *std::move(ids);

  ProgressBar bar("prompt", ProgressBar::Unit::kCount, arguments.log_level >= LogLevel::kInfo);
  TextPrinter printer(request.n_sequences);
  GenerationEvents events{.on_prefill = bar.callback()};
  if (!arguments.json) {
    events.on_text = [&](int32_t sequence, std::string_view text) {
      bar.clear();
      printer.print(sequence, text);
    };
  }
  const Result<std::vector<Completion>> completions = engine->generate(request, events);
  bar.clear();
  if (!completions.ok()) return completions.error();

  if (!arguments.json) printer.finish();
  for (const Completion& completion : *completions) {
    if (arguments.json) {
      const AnswerOptions options{.logprobs = request.n_logprobs.has_value(), .stats = arguments.stats};
      const Status status = Output::standard().write(completion_line(completion, options) + "\n");
      if (!status.ok()) return status;
    }
    if (arguments.stats) tell_stats(*engine, completion);
  }
  return {};
}

}  // namespace deepinfer::cli
