#include "checkpoint/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "platform/mapped_file.h"

namespace deepinfer {
namespace {

Error io_error(const std::string& path, const char* what, int error) {
  return Error{Code::kIo, path + ": " + what + ": " + std::generic_category().message(error)};
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, int64_t size_bytes_max) {
  DI_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  if (file.size() > size_bytes_max) {
    return Error{Code::kBadModelFile, path + ": file of " + std::to_string(file.size()) +
                                          " bytes is over the limit of " + std::to_string(size_bytes_max)};
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  DI_RETURN_IF_ERROR(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int fd)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(fd) {}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  std::string temporary_path = path + ".tmp-XXXXXX";
  const int fd = mkostemp(temporary_path.data(), O_CLOEXEC);
  if (fd < 0) return io_error(path, "cannot create", errno);
  AtomicFile file(path, std::move(temporary_path), fd);
  if (fchmod(fd, 0644) != 0) return io_error(path, "cannot set its mode", errno);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    discard();
    path_ = std::move(other.path_);
    temporary_path_ = std::move(other.temporary_path_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_path_.c_str());
}

Status AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  DI_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t n_written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n_written < 0) {
      if (errno == EINTR) continue;
      return io_error(path_, "writing failed", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(n_written));
    offset += n_written;
  }
  return {};
}

Status AtomicFile::commit() {
  DI_CHECK(fd_ >= 0);
  if (fsync(fd_) != 0) {
    const int error = errno;
    discard();
    return io_error(path_, "syncing failed", error);
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    discard();
    return io_error(path_, "renaming into place failed", error);
  }
  if (::close(std::exchange(fd_, -1)) != 0) return io_error(path_, "closing failed", errno);
  // The name itself is durable once the folder is. Some file systems cannot sync a folder; that is no failure.
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  const int folder_fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd >= 0) {
    fsync(folder_fd);
    ::close(folder_fd);
  }
  return {};
}

Status write_text_file(const std::string& path, const std::string& text) {
  DI_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  DI_RETURN_IF_ERROR(file.write_at(0, std::as_bytes(std::span(text))));
  return file.commit();
}

}  // namespace deepinfer
