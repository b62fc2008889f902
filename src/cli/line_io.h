// Lines in and bytes out: plain file descriptors, whose errors come as kIo and name the option. "-" is standard input
// or output. One thread an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "deepinfer/status.h"

namespace deepinfer::cli {

/// An open file, closed with its owner. 0, 1 and 2 stay open.
class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

/// Longest line that is read, so that no input takes all memory.
inline constexpr size_t kLineBytesMax = size_t{256} << 20;

/// Reads lines as they arrive (a pipe's writer may wait for an answer to each).
class LineReader {
 public:
  /// `option` is named in errors.
  static Result<LineReader> open(std::string option, const std::string& path);

  /// The next line without its '\n'; false at the end. A last line without '\n' counts.
  Result<bool> next(std::string& line);

  /// Lines returned so far.
  [[nodiscard]] int64_t n_lines() const { return n_lines_; }
  /// Bytes of the input up to the end of the last returned line.
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }
  /// The last returned line ended with '\n'.
  [[nodiscard]] bool was_complete() const { return was_complete_; }

 private:
  LineReader(std::string option, FileHandle file) : option_(std::move(option)), file_(std::move(file)) {}

  std::string option_;
  FileHandle file_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not yet returned, in buffer_
  int64_t n_lines_ = 0;
  int64_t n_bytes_ = 0;
  bool was_complete_ = true;
  bool at_end_ = false;
};

class Output {
 public:
  enum class Mode { kReplace, kAppend };
  static Result<Output> open(std::string option, const std::string& path, Mode mode);
  static Output standard() { return {"standard output", FileHandle(1)}; }

  /// All of `bytes`, at once and unbuffered.
  Status write(std::string_view bytes);

 private:
  Output(std::string name, FileHandle file) : name_(std::move(name)), file_(std::move(file)) {}

  std::string name_;
  FileHandle file_;
};

/// Answers every line of standard input with one line of standard output, in order. `answer` clears `*ok` for a line that
/// could not be done.
/// Errors   kInvalidArgument at the end when there was such a line; kIo
Status answer_lines(const std::function<std::string(const std::string& line, int64_t line_number, bool* ok)>& answer);

/// Whole text of a file, at most `n_bytes_max`.
Result<std::string> read_file(const std::string& option, const std::string& path, int64_t n_bytes_max);

/// One line to standard error; what would break it is replaced.
void tell(std::string_view line);

}  // namespace deepinfer::cli
