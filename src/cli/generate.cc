// `deepinfer generate`: one request, its answers as running text or as JSON lines.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/constraint_options.h"
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

/// What the model thinks, apart from its answer: on standard error.
class ReasoningPrinter {
 public:
  explicit ReasoningPrinter(bool is_on) : is_on_(is_on) {}

  void print(std::string_view text) {
    if (!is_on_) return;
    std::fwrite(text.data(), 1, text.size(), stderr);
    is_open_ = true;
  }

  /// A blank line between the reasoning and what follows it.
  void end() {
    if (std::exchange(is_open_, false)) std::fputs("\n\n", stderr);
  }

 private:
  bool is_on_;
  bool is_open_ = false;
};

/// The text of --prompt or --prompt-file.
Result<std::string> prompt_text(const GenerateArguments& arguments) {
  if (arguments.prompt) return *arguments.prompt;
  Result<std::string> text = read_file("--prompt-file", *arguments.prompt_file, Tokenizer::kTextBytesMax);
  if (!text.ok()) return text.error();
  const std::string where = "--prompt-file " + shown(*arguments.prompt_file) + ": the prompt is ";
  if (text->empty()) return Error{Code::kInvalidArgument, where + "empty"};
  if (const auto offset = ill_formed_offset(*text)) {
    return Error{Code::kInvalidArgument, where + "not valid UTF-8 at byte " + std::to_string(*offset)};
  }
  return text;
}

Result<std::vector<int32_t>> prompt_ids(const Engine& engine, const GenerateArguments& arguments) {
  if (arguments.tokens) return *arguments.tokens;
  const Result<std::string> text = prompt_text(arguments);
  if (!text.ok()) return text.error();
  return engine.encode_prompt(*text, arguments.special);
}

void tell_stats(const Engine& engine, const Completion& completion) {
  const Timing& timing = completion.timing;
  const auto speed = [](int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; };
  char text[256];
  std::snprintf(text, sizeof text,
                "backend %s: prompt %lld tokens in %.3f s (%.1f tokens/s), answer %lld tokens, %lld steps in %.3f s "
                "(%.1f tokens/s)",
                std::string(engine.backend_name()).c_str(), static_cast<long long>(completion.usage.n_prompt_tokens),
                timing.prefill_seconds, speed(completion.usage.n_prompt_tokens, timing.prefill_seconds),
                static_cast<long long>(completion.usage.n_completion_tokens),
                static_cast<long long>(timing.n_decode_steps), timing.decode_seconds,
                speed(timing.n_decode_steps, timing.decode_seconds));
  tell(text);
}

/// Raw text in, running text out.
Status generate_text(Engine& engine, const GenerateArguments& arguments) {
  Request request = arguments.request;
  Result<std::vector<int32_t>> ids = prompt_ids(engine, arguments);
  if (!ids.ok()) return ids.error();
  request.prompt = *std::move(ids);
  Result<std::optional<grammar::Constraint>> constraint = make_constraint(arguments.constraint);
  if (!constraint.ok()) return constraint.error();
  request.constraint = *std::move(constraint);

  ProgressBar bar("prompt", ProgressBar::Unit::kCount, arguments.log_level >= LogLevel::kInfo);
  TextPrinter printer(request.n_sequences);
  GenerationEvents events{.on_prefill = bar.callback()};
  if (!arguments.json) {
    events.on_text = [&](int32_t sequence, std::string_view text) {
      bar.clear();
      printer.print(sequence, text);
    };
  }
  const Result<std::vector<Completion>> completions = engine.generate(request, events);
  bar.clear();
  if (!completions.ok()) return completions.error();

  if (!arguments.json) printer.finish();
  for (const Completion& completion : *completions) {
    if (arguments.json) {
      const AnswerOptions options{.logprobs = request.n_logprobs.has_value(), .stats = arguments.stats};
      const Status status = Output::standard().write(completion_line(completion, options) + "\n");
      if (!status.ok()) return status;
    }
    if (arguments.stats) tell_stats(engine, completion);
  }
  return {};
}

/// A turn in; the answer goes to standard output, what the model thinks to standard error, calls follow as JSON lines.
Status generate_turn(Engine& engine, const GenerateArguments& arguments) {
  const Result<protocol::SpecialTokens> specials = protocol::SpecialTokens::of(engine.tokenizer());
  if (!specials.ok()) return specials.error();
  Result<std::string> user = prompt_text(arguments);
  if (!user.ok()) return user.error();
  const Result<protocol::Conversation> conversation = chat_conversation(*arguments.chat, *std::move(user));
  if (!conversation.ok()) return conversation.error();
  Request request = arguments.request;
  Result<ChatPrompt> prompt =
      chat_prompt(*conversation, std::exchange(request.stop_strings, {}), engine.tokenizer(), *specials);
  if (!prompt.ok()) return prompt.error();
  request.prompt = std::move(prompt->ids);
  Result<std::optional<grammar::Constraint>> constraint = make_constraint(arguments.constraint);
  if (!constraint.ok()) return constraint.error();
  request.constraint = *std::move(constraint);
  // What the model thinks is free; the answer begins behind it. Without thinking the prompt ends there already.
  if (conversation->thinking) request.constraint_starts_after = *specials->id(protocol::Special::kThinkClose);

  ProgressBar bar("prompt", ProgressBar::Unit::kCount, arguments.log_level >= LogLevel::kInfo);
  TextPrinter printer(request.n_sequences);
  ReasoningPrinter reasoning(arguments.log_level >= LogLevel::kInfo);
  OnChatText on_text;
  if (!arguments.json) {
    on_text = [&](int32_t sequence, protocol::Section section, std::string_view text) {
      bar.clear();
      if (section == protocol::Section::kReasoning) return reasoning.print(text);
      reasoning.end();
      printer.print(sequence, text);
    };
  }
  const Result<ChatAnswers> result = generate_chat(engine, request, prompt->output, *specials, on_text, bar.callback());
  bar.clear();
  if (!result.ok()) return result.error();
  reasoning.end();

  for (size_t i = 0; i < result->completions.size(); ++i) {
    const ChatAnswer& answer = result->answers[i];
    if (arguments.json) {
      const AnswerOptions options{
          .logprobs = request.n_logprobs.has_value(), .stats = arguments.stats, .chat = &answer};
      const Status status = Output::standard().write(completion_line(result->completions[i], options) + "\n");
      if (!status.ok()) return status;
    } else {
      std::string separator = answer.text.empty() ? "" : "\n";
      for (const protocol::ToolCall& call : answer.tool_calls) {
        printer.print(static_cast<int32_t>(i), std::exchange(separator, "\n") + tool_call_json(call));
      }
    }
  }
  if (!arguments.json) printer.finish();
  if (arguments.stats) {
    for (const Completion& completion : result->completions) tell_stats(engine, completion);
  }
  return {};
}

}  // namespace

Status run_generate(const GenerateArguments& arguments) {
  Result<Engine> engine = open_engine(arguments.engine, arguments.log_level);
  if (!engine.ok()) return engine.error();
  return arguments.chat ? generate_turn(*engine, arguments) : generate_text(*engine, arguments);
}

}  // namespace deepinfer::cli
