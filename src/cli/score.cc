// `deepinfer score`: log-probabilities of given texts or token ids, and their logits. The whole input is checked before
// any of it is computed.
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/json_answers.h"
#include "cli/json_requests.h"
#include "cli/line_io.h"
#include "cli/progress.h"
#include "cli/values.h"
#include "deepinfer/tensor_file.h"

namespace deepinfer::cli {

namespace {

struct Input {
  ScoreLine line;
  int64_t line_number = 0;  // from 1, blank lines counted
};

Error bad_line(const ScoreArguments& arguments, int64_t line_number, const std::string& message) {
  return Error{Code::kInvalidArgument,
               "--input " + shown(arguments.input) + " line " + std::to_string(line_number) + ": " + message};
}

/// The tensor's name in a dump.
std::string dump_name(const Input& input) {
  return input.line.name ? *input.line.name : std::to_string(input.line_number - 1);
}

Result<std::vector<Input>> read_inputs(const ScoreArguments& arguments) {
  Result<LineReader> reader = LineReader::open("--input", arguments.input);
  if (!reader.ok()) return reader.error();
  std::vector<Input> inputs;
  std::unordered_map<std::string, int64_t> line_of_name;
  std::string line;
  while (true) {
    const Result<bool> more = reader->next(line);
    if (!more.ok()) return more.error();
    if (!*more) return inputs;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<ScoreLine> parsed = read_score_line(line);
    if (!parsed.ok()) return bad_line(arguments, reader->n_lines(), parsed.error().message);
    Input input{*std::move(parsed), reader->n_lines()};
    if (input.line.name || arguments.dump_logits) {
      const auto [place, is_new] = line_of_name.emplace(dump_name(input), input.line_number);
      if (!is_new) {
        return bad_line(arguments, input.line_number,
                        "name \"" + shown(place->first) + "\" is that of line " + std::to_string(place->second));
      }
    }
    inputs.push_back(std::move(input));
  }
}

/// Texts become ids; ids and lengths are checked.
Status resolve(const ScoreArguments& arguments, const Engine& engine, std::vector<Input>& inputs) {
  for (Input& input : inputs) {
    std::vector<int32_t>& tokens = input.line.tokens;
    if (input.line.text) {
      Result<std::vector<int32_t>> ids = engine.encode_prompt(*input.line.text, arguments.special);
      if (!ids.ok()) return bad_line(arguments, input.line_number, ids.error().message);
      tokens = *std::move(ids);
    }
    if (static_cast<int64_t>(tokens.size()) > engine.n_context()) {
      return bad_line(
          arguments, input.line_number,
          std::to_string(tokens.size()) + " tokens, the context holds " + std::to_string(engine.n_context()));
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < engine.vocab_size()) continue;
      return bad_line(arguments, input.line_number,
                      "tokens[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) + ", must be below " +
                          std::to_string(engine.vocab_size()));
    }
  }
  return {};
}

Result<TensorFileWriter> open_dump(const std::string& path, const Engine& engine, const std::vector<Input>& inputs) {
  std::vector<TensorFileWriter::Matrix> matrices;
  for (const Input& input : inputs) {
    matrices.push_back({dump_name(input), static_cast<int64_t>(input.line.tokens.size()), engine.vocab_size()});
  }
  Result<TensorFileWriter> writer = TensorFileWriter::create(path, matrices);
  if (!writer.ok()) return Error{writer.error().code, "--dump-logits: " + writer.error().message};
  return writer;
}

/// No file is both read and written, or written twice, and a dump replaces nothing but a regular file.
Status check_paths(const ScoreArguments& arguments) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto same = [&](const std::string& a, const std::string& b) {
    return a != "-" && b != "-" &&
           (fs::path(a).lexically_normal() == fs::path(b).lexically_normal() || fs::equivalent(a, b, ignored));
  };
  const auto refuse = [](const std::string& a, const std::string& b, const std::string& path) {
    return Error{Code::kInvalidArgument, a + " and " + b + " are the same file, " + path};
  };
  if (same(arguments.input, arguments.output)) return refuse("--input", "--output", arguments.input);
  if (!arguments.dump_logits) return {};
  const std::string& dump = *arguments.dump_logits;
  if (same(arguments.input, dump)) return refuse("--input", "--dump-logits", dump);
  if (same(arguments.output, dump)) return refuse("--output", "--dump-logits", dump);
  const fs::file_status status = fs::symlink_status(dump, ignored);
  if (dump == "-" || (fs::exists(status) && !fs::is_regular_file(status))) {
    return Error{Code::kInvalidArgument,
                 "--dump-logits " + dump + ": must be the name of a regular file or of none yet"};
  }
  return {};
}

}  // namespace

Status run_score(const ScoreArguments& arguments) {
  if (const Status status = check_paths(arguments); !status.ok()) return status;
  Result<std::vector<Input>> inputs = read_inputs(arguments);
  if (!inputs.ok()) return inputs.error();
  Result<Engine> engine = open_engine(arguments.engine, arguments.log_level);
  if (!engine.ok()) return engine.error();
  if (const Status status = resolve(arguments, *engine, *inputs); !status.ok()) return status;
  std::optional<TensorFileWriter> dump;
  if (arguments.dump_logits) {
    Result<TensorFileWriter> writer = open_dump(*arguments.dump_logits, *engine, *inputs);
    if (!writer.ok()) return writer.error();
    dump = *std::move(writer);
  }
  Result<Output> output = Output::open("--output", arguments.output, Output::Mode::kReplace);
  if (!output.ok()) return output.error();

  int64_t n_tokens = 0;
  for (const Input& input : *inputs) n_tokens += static_cast<int64_t>(input.line.tokens.size());
  ProgressBar bar("tokens", ProgressBar::Unit::kCount, arguments.log_level >= LogLevel::kInfo);
  int64_t n_done = 0;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const ScoreLine& line = (*inputs)[i].line;
    LogitsSink sink;
    if (dump) sink = [&](int64_t first, std::span<const float> rows) { return dump->write_rows(i, first, rows); };
    const Progress progress = [&](int64_t done, int64_t) { bar.show(n_done + done, n_tokens); };
    const Result<Score> score = engine->score(line.tokens, sink, progress);
    if (!score.ok()) return score.error();
    n_done += static_cast<int64_t>(line.tokens.size());
    bar.show(n_done, n_tokens);
    if (const Status status = output->write(score_line(line.name, line.tokens, *score) + "\n"); !status.ok())
      return status;
  }
  bar.clear();
  return dump ? dump->finish() : Status{};
}

}  // namespace deepinfer::cli
