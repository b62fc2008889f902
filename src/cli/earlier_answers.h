// What an earlier run of `batch` left in its output file: which requests need not be done again, and proof that the
// answers belong to these requests. Answers are in the order of requests, one line a sequence or one for an error.
// A line that is cut off, or the lines of a request that is not complete, are dropped from the file. Main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/line_io.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

/// What a request says about its answer before it is computed.
struct ExpectedAnswer {
  int64_t line_number = 0;                   // of the request, from 1, for messages
  std::string id_json;                       // empty: none
  std::optional<std::string> error_message;  // the request itself is bad
  int64_t n_prompt_tokens = 0;
  int32_t n_sequences = 1;
};

class EarlierAnswers {
 public:
  enum class Found { kNothing, kAnswer, kError };

  /// A file that does not exist has no answers.
  static Result<EarlierAnswers> open(const std::string& path);

  /// Takes the next request's answer. After the first kNothing the file ends where that answer belongs.
  /// Errors   kInvalidArgument: the answer there is not this request's; kIo
  Result<Found> take(const ExpectedAnswer& expected);

  /// No answer is left over. Call when all requests were found.
  Status finish();

 private:
  explicit EarlierAnswers(std::string path) : path_(std::move(path)) {}

  Result<bool> next_line(std::string& line);
  Status drop_rest();
  [[nodiscard]] Error mismatch(const ExpectedAnswer& expected, const std::string& what) const;

  std::string path_;
  std::optional<LineReader> reader_;  // nothing: no answers, or all taken
  int64_t kept_bytes_ = 0;
};

}  // namespace deepinfer::cli
