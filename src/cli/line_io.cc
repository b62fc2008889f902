#include "cli/line_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace deepinfer::cli {

namespace {

constexpr size_t kReadBytes = size_t{1} << 16;

Error io_error(const std::string& what, int error) {
  return Error{Code::kIo, what + ": " + std::generic_category().message(error)};
}

Result<FileHandle> open_file(const std::string& option, const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return io_error(option + " " + path, errno);
  return FileHandle(fd);
}

/// Appends up to one read; false at the end of the file.
Result<bool> read_some(int fd, std::string& buffer, const std::string& name) {
  std::array<char, kReadBytes> bytes;
  while (true) {
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    if (n > 0) {
      buffer.append(bytes.data(), static_cast<size_t>(n));
      return true;
    }
    if (n == 0) return false;
    if (errno != EINTR) return io_error(name, errno);
  }
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ > 2) ::close(fd_);
}

Result<LineReader> LineReader::open(std::string option, const std::string& path) {
  if (path == "-") return LineReader(std::move(option), FileHandle(0));
  Result<FileHandle> file = open_file(option, path, O_RDONLY);
  if (!file.ok()) return file.error();
  return LineReader(option + " " + path, *std::move(file));
}

Result<bool> LineReader::next(std::string& line) {
  size_t searched = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      was_complete_ = end != std::string::npos;
      const size_t n_bytes = (was_complete_ ? end : buffer_.size()) - begin_;
      line.assign(buffer_, begin_, n_bytes);
      begin_ += n_bytes + (was_complete_ ? 1 : 0);
      n_bytes_ += static_cast<int64_t>(n_bytes) + (was_complete_ ? 1 : 0);
      ++n_lines_;
      return true;
    }
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (searched > kLineBytesMax) {
      return Error{Code::kInvalidArgument, option_ + ": line " + std::to_string(n_lines_ + 1) +
                                               " is longer than the limit of " + std::to_string(kLineBytesMax) +
                                               " bytes"};
    }
    const Result<bool> more = read_some(file_.fd(), buffer_, option_);
    if (!more.ok()) return more.error();
    at_end_ = !*more;
  }
}

Result<Output> Output::open(std::string option, const std::string& path, Mode mode) {
  if (path == "-") return standard();
  Result<FileHandle> file = open_file(option, path, O_WRONLY | O_CREAT | (mode == Mode::kAppend ? O_APPEND : O_TRUNC));
  if (!file.ok()) return file.error();
  return Output(option + " " + path, *std::move(file));
}

Status Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_.fd(), bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      return io_error(name_, errno);
    }
  }
  return {};
}

Status answer_lines(const std::function<std::string(const std::string& line, int64_t line_number, bool* ok)>& answer) {
  Result<LineReader> input = LineReader::open("standard input", "-");
  if (!input.ok()) return input.error();
  Output output = Output::standard();
  int64_t n_failed = 0;
  std::string line;
  while (true) {
    const Result<bool> more = input->next(line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    bool ok = true;
    const std::string text = answer(line, input->n_lines(), &ok) + "\n";
    if (!ok) ++n_failed;
    if (const Status status = output.write(text); !status.ok()) return status;
  }
  if (n_failed == 0) return {};
  return Error{Code::kInvalidArgument,
               std::to_string(n_failed) + " of " + std::to_string(input->n_lines()) + " lines could not be done"};
}

Result<std::string> read_file(const std::string& option, const std::string& path, int64_t n_bytes_max) {
  FileHandle file(0);
  if (path != "-") {
    Result<FileHandle> opened = open_file(option, path, O_RDONLY);
    if (!opened.ok()) return opened.error();
    file = *std::move(opened);
  }
  std::string text;
  while (true) {
    const Result<bool> more = read_some(file.fd(), text, option + " " + path);
    if (!more.ok()) return more.error();
    if (!*more) return text;
    if (static_cast<int64_t>(text.size()) > n_bytes_max) {
      return Error{Code::kInvalidArgument,
                   option + " " + path + ": the file is over the limit of " + std::to_string(n_bytes_max) + " bytes"};
    }
  }
}

void tell(std::string_view line) {
  std::string text(line);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  text += '\n';
  // Nobody is left to tell when this fails.
  [[maybe_unused]] const ssize_t n = ::write(2, text.data(), text.size());
}

}  // namespace deepinfer::cli
