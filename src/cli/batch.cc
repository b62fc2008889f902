// `deepinfer batch`: a file of requests, answered in order, one after another. Every answer is in the output file
// before the next request starts, so that a run that was ended goes on where it stopped.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/earlier_answers.h"
#include "cli/json_answers.h"
#include "cli/json_requests.h"
#include "cli/line_io.h"
#include "cli/progress.h"

namespace deepinfer::cli {

namespace {

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

/// Requests of a file that can be read twice, 0 for standard input.
Result<int64_t> count_requests(const std::string& path) {
  std::error_code ignored;
  if (path == "-" || !std::filesystem::is_regular_file(path, ignored)) return int64_t{0};
  Result<LineReader> reader = LineReader::open("--input", path);
  if (!reader.ok()) return reader.error();
  int64_t n_requests = 0;
  std::string line;
  while (true) {
    const Result<bool> more = reader->next(line);
    if (!more.ok()) return more.error();
    if (!*more) return n_requests;
    if (!is_blank(line)) ++n_requests;
  }
}

class BatchRun {
 public:
  BatchRun(const BatchArguments& arguments, Engine engine, EarlierAnswers earlier)
      : arguments_(arguments),
        engine_(std::move(engine)),
        specials_(protocol::SpecialTokens::of(engine_.tokenizer())),
        earlier_(std::move(earlier)) {}

  Status run_line(const std::string& line, int64_t line_number);
  /// Call at the end of the input.
  Status finish();

 private:
  /// A line's request with its prompt.
  struct Prepared {
    Request request;
    std::optional<protocol::OutputSettings> chat;  // how to read the answer to messages
  };

  Result<Prepared> read(BatchLine& line) const;
  Result<std::string> answer(const Prepared& prepared, const std::string& id_json);
  Status write(const std::string& lines);

  const BatchArguments& arguments_;
  Engine engine_;
  Result<protocol::SpecialTokens> specials_;  // an error where the tokenizer knows no conversations
  EarlierAnswers earlier_;
  std::optional<Output> output_;  // opened when the first new answer is there
  int64_t n_requests_ = 0;
  int64_t n_failed_ = 0;
};

Result<BatchRun::Prepared> BatchRun::read(BatchLine& line) const {
  if (!line.request.ok()) return line.request.error();
  BatchRequest batch = *std::move(line.request);
  Prepared prepared{.request = std::move(batch.request)};
  Request& request = prepared.request;
  request.stop_ids.insert(request.stop_ids.end(), arguments_.stop_ids.begin(), arguments_.stop_ids.end());
  if (batch.text) {
    Result<std::vector<int32_t>> ids = engine_.encode_prompt(*batch.text, batch.special && arguments_.special);
    if (!ids.ok()) return ids.error();
    request.prompt = *std::move(ids);
  }
  if (batch.chat) {
    if (!specials_.ok()) return specials_.error();
    const Result<protocol::Conversation> conversation = chat_conversation(*std::move(batch.chat));
    if (!conversation.ok()) return conversation.error();
    Result<ChatPrompt> prompt =
        chat_prompt(*conversation, std::exchange(request.stop_strings, {}), engine_.tokenizer(), *specials_);
    if (!prompt.ok()) return prompt.error();
    request.prompt = std::move(prompt->ids);
    if (conversation->thinking) request.constraint_starts_after = *specials_->id(protocol::Special::kThinkClose);
    prepared.chat = std::move(prompt->output);
  }
  return prepared;
}

Result<std::string> BatchRun::answer(const Prepared& prepared, const std::string& id_json) {
  const Request& request = prepared.request;
  AnswerOptions options{
      .id_json = id_json, .logprobs = request.n_logprobs.has_value(), .stats = arguments_.stats, .chat = nullptr};
  std::string lines;
  if (prepared.chat) {
    const Result<ChatAnswers> result = generate_chat(engine_, request, *prepared.chat, *specials_, {}, {});
    if (!result.ok()) return result.error();
    for (size_t i = 0; i < result->completions.size(); ++i) {
      options.chat = &result->answers[i];
      lines += completion_line(result->completions[i], options) + "\n";
    }
    return lines;
  }
  const Result<std::vector<Completion>> completions = engine_.generate(request);
  if (!completions.ok()) return completions.error();
  for (const Completion& completion : *completions) lines += completion_line(completion, options) + "\n";
  return lines;
}

Status BatchRun::run_line(const std::string& line, int64_t line_number) {
  ++n_requests_;
  BatchLine parsed = read_batch_line(line);
  const Result<Prepared> prepared = read(parsed);
  ExpectedAnswer expected{.line_number = line_number, .id_json = parsed.id_json};
  if (prepared.ok()) {
    expected.n_prompt_tokens = static_cast<int64_t>(prepared->request.prompt.size());
    expected.n_sequences = prepared->request.n_sequences;
  } else {
    expected.error_message = prepared.error().message;
  }
  const Result<EarlierAnswers::Found> found = earlier_.take(expected);
  if (!found.ok()) return found.error();
  if (*found == EarlierAnswers::Found::kError) ++n_failed_;
  if (*found != EarlierAnswers::Found::kNothing) return {};

  Result<std::string> lines = prepared.ok() ? answer(*prepared, parsed.id_json) : Result<std::string>(prepared.error());
  if (lines.ok()) return write(*lines);
  if (lines.error().code == Code::kDeviceLost) return lines.error();
  ++n_failed_;
  return write(error_line(lines.error(), parsed.id_json) + "\n");
}

Status BatchRun::write(const std::string& lines) {
  if (!output_) {
    Result<Output> output = Output::open("--output", arguments_.output, Output::Mode::kAppend);
    if (!output.ok()) return output.error();
    output_ = *std::move(output);
  }
  return output_->write(lines);
}

Status BatchRun::finish() {
  if (const Status status = earlier_.finish(); !status.ok()) return status;
  if (!output_) {  // nothing new: an empty input still leaves a file
    if (const Status status = write(""); !status.ok()) return status;
  }
  if (n_failed_ == 0) return {};
  return Error{Code::kInvalidArgument, std::to_string(n_failed_) + " of " + std::to_string(n_requests_) +
                                           " requests could not be done; their answers say why"};
}

}  // namespace

Status run_batch(const BatchArguments& arguments) {
  std::error_code ignored;
  if (arguments.input != "-" && arguments.output != "-" &&
      std::filesystem::equivalent(arguments.input, arguments.output, ignored)) {
    return Error{Code::kInvalidArgument, "--input and --output are the same file, " + arguments.input};
  }
  Result<LineReader> input = LineReader::open("--input", arguments.input);
  if (!input.ok()) return input.error();
  const Result<int64_t> n_requests = count_requests(arguments.input);
  if (!n_requests.ok()) return n_requests.error();
  Result<EarlierAnswers> earlier = EarlierAnswers::open(arguments.output);
  if (!earlier.ok()) return earlier.error();
  Result<Engine> engine = open_engine(arguments.engine, arguments.log_level);
  if (!engine.ok()) return engine.error();

  BatchRun run(arguments, *std::move(engine), *std::move(earlier));
  ProgressBar bar("requests", ProgressBar::Unit::kCount, arguments.log_level >= LogLevel::kInfo);
  std::string line;
  for (int64_t n_done = 0;;) {
    const Result<bool> more = input->next(line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (is_blank(line)) continue;
    if (const Status status = run.run_line(line, input->n_lines()); !status.ok()) return status;
    bar.show(++n_done, *n_requests);
  }
  bar.clear();
  return run.finish();
}

}  // namespace deepinfer::cli
