#include "cli/earlier_answers.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/json_requests.h"

namespace deepinfer::cli {

Result<EarlierAnswers> EarlierAnswers::open(const std::string& path) {
  EarlierAnswers answers(path);
  std::error_code error;
  // Standard output, an absent file, a pipe or a terminal hold no earlier answers.
  if (path == "-" || !std::filesystem::is_regular_file(path, error)) return answers;
  Result<LineReader> reader = LineReader::open("--output", path);
  if (!reader.ok()) return reader.error();
  answers.reader_ = *std::move(reader);
  return answers;
}

Error EarlierAnswers::mismatch(const ExpectedAnswer& expected, const std::string& what) const {
  return Error{Code::kInvalidArgument,
               "--output " + path_ + " line " + std::to_string(reader_->n_lines()) + " " + what + " (line " +
                   std::to_string(expected.line_number) +
                   " of --input): it holds the answers to other requests; give another --output"};
}

Result<bool> EarlierAnswers::next_line(std::string& line) {
  Result<bool> more = reader_->next(line);
  if (!more.ok()) return more;
  return *more && reader_->was_complete();
}

Status EarlierAnswers::drop_rest() {
  reader_.reset();
  std::error_code error;
  std::filesystem::resize_file(path_, static_cast<uintmax_t>(kept_bytes_), error);
  if (error) return Error{Code::kIo, "--output " + path_ + ": " + error.message()};
  return {};
}

Result<EarlierAnswers::Found> EarlierAnswers::take(const ExpectedAnswer& expected) {
  if (!reader_) return Found::kNothing;
  std::string line;
  for (int32_t sequence = 0; sequence < expected.n_sequences; ++sequence) {
    const Result<bool> more = next_line(line);
    if (!more.ok()) return more.error();
    if (!*more) {
      // What is left is an answer cut short, or nothing; anything else is somebody's text.
      if (!line.empty() && !reader_->was_complete() && line.front() != '{') return mismatch(expected, "is no answer");
      if (const Status status = drop_rest(); !status.ok()) return status.error();
      return Found::kNothing;
    }
    const Result<AnswerHead> head = read_answer_head(line);
    if (!head.ok()) return mismatch(expected, "is no answer: " + head.error().message);
    if (head->id_json != expected.id_json) {
      return mismatch(expected, "has id " + (head->id_json.empty() ? "none" : head->id_json) + ", the request has " +
                                    (expected.id_json.empty() ? "none" : expected.id_json));
    }
    if (expected.error_message && head->error_message != expected.error_message) {
      return mismatch(expected, "is not the error that the request gives");
    }
    if (head->error_message && sequence == 0) {
      kept_bytes_ = reader_->n_bytes();
      return Found::kError;
    }
    if (head->n_prompt_tokens != expected.n_prompt_tokens) {
      return mismatch(expected, "answers a prompt of " + std::to_string(head->n_prompt_tokens) +
                                    " tokens, the request has " + std::to_string(expected.n_prompt_tokens));
    }
  }
  kept_bytes_ = reader_->n_bytes();
  return Found::kAnswer;
}

Status EarlierAnswers::finish() {
  if (!reader_) return {};
  std::string line;
  const Result<bool> more = next_line(line);
  if (!more.ok()) return more.error();
  if (*more) {
    return Error{Code::kInvalidArgument,
                 "--output " + path_ + " holds more answers than --input has requests; give another --output"};
  }
  return drop_rest();
}

}  // namespace deepinfer::cli
