// `deepinfer tokenize`: lines of standard input, one line of standard output each, in order.
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/line_io.h"
#include "cli/values.h"
#include "deepinfer/tokenize_service.h"
#include "deepinfer/tokenizer.h"

namespace deepinfer::cli {

namespace {

Result<std::string> encode(const Tokenizer& tokenizer, const std::string& line, bool special) {
  const Result<std::vector<int32_t>> ids = tokenizer.encode(line, special);
  if (!ids.ok()) return ids.error();
  std::string text;
  for (const int32_t id : *ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

Result<std::string> decode(const Tokenizer& tokenizer, const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return std::string();
  const Result<std::vector<int32_t>> ids = parse_ids(line, ' ');
  if (!ids.ok()) return ids.error();
  return tokenizer.decode(*ids);
}

/// The answer; a line that cannot be done is told on standard error and answered by an empty line.
std::string answer_plain(const Tokenizer& tokenizer, const TokenizeArguments& arguments, const std::string& line,
                         int64_t line_number, bool* ok) {
  Result<std::string> answer = arguments.decode ? decode(tokenizer, line) : encode(tokenizer, line, arguments.special);
  if (answer.ok()) return *std::move(answer);
  *ok = false;
  tell("deepinfer: line " + std::to_string(line_number) + ": " + answer.error().message);
  return {};
}

}  // namespace

Status run_tokenize(const TokenizeArguments& arguments) {
  const Result<Tokenizer> tokenizer = Tokenizer::open(arguments.model_dir);
  if (!tokenizer.ok()) return tokenizer.error();
  return answer_lines([&](const std::string& line, int64_t line_number, bool* ok) {
    return arguments.json ? answer_line(*tokenizer, line, ok)
                          : answer_plain(*tokenizer, arguments, line, line_number, ok);
  });
}

}  // namespace deepinfer::cli
