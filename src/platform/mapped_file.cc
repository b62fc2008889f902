#include "platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"

#ifndef MADV_POPULATE_READ  // Linux 5.14; older C libraries lack the name
#define MADV_POPULATE_READ 22
#endif

namespace deepinfer {
namespace {

constexpr int64_t kReadPieceBytes = 1 << 20;

std::string errno_text(int error) { return std::generic_category().message(error); }

Error open_error(const std::string& path, int error) {
  struct stat info {};
  if (error == ENOENT && lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return Error{Code::kBadModelFile, path + ": link to a file that does not exist"};
  }
  return Error{Code::kBadModelFile, path + ": " + errno_text(error)};
}

Error size_error(const std::string& path, int64_t expected, int64_t actual) {
  return Error{Code::kBadModelFile, path + ": file changed size while in use: expected " + std::to_string(expected) +
                                        " bytes, found " + std::to_string(actual)};
}

}  // namespace

MappedFile::MappedFile(std::string path, int fd, const std::byte* data, int64_t size)
    : path_(std::move(path)), fd_(fd), data_(data), size_(size) {}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. It has no effect on regular files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return open_error(path, errno);
  MappedFile file(path, fd, nullptr, 0);  // closes fd on the way out

  struct stat info {};
  if (fstat(fd, &info) != 0) return Error{Code::kIo, path + ": " + errno_text(errno)};
  if (S_ISDIR(info.st_mode)) return Error{Code::kBadModelFile, path + ": is a directory, not a file"};
  if (!S_ISREG(info.st_mode)) return Error{Code::kBadModelFile, path + ": not a regular file"};
  if (info.st_size == 0) return Error{Code::kBadModelFile, path + ": file is empty (0 bytes)"};

  void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    const Code code = errno == ENOMEM ? Code::kOutOfCapacity : Code::kIo;
    return Error{code, path + ": cannot map " + std::to_string(info.st_size) + " bytes: " + errno_text(errno)};
  }
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = info.st_size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    close();
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
  if (fd_ >= 0) ::close(fd_);
}

void MappedFile::check_range(int64_t offset, int64_t size) const {
  DI_CHECK(offset >= 0);
  DI_CHECK(size >= 0);
  DI_CHECK(offset <= size_);
  DI_CHECK(size <= size_ - offset);
}

Status MappedFile::prefault(int64_t offset, int64_t size, Prefault method) const {
  check_range(offset, size);
  if (size == 0) return {};
  if (method == Prefault::kAuto) {
    const int64_t page_bytes = sysconf(_SC_PAGESIZE);
    const int64_t begin = offset / page_bytes * page_bytes;
    std::byte* start = const_cast<std::byte*>(data_) + begin;
    int result = 0;
    do {
      result = madvise(start, static_cast<size_t>(offset + size - begin), MADV_POPULATE_READ);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return {};
    if (errno == EFAULT) {  // a page that reading would answer with SIGBUS: cut off, or the disk failed
      DI_RETURN_IF_ERROR(verify_size());
      return Error{Code::kIo, path_ + ": reading " + std::to_string(size) + " bytes at offset " +
                                  std::to_string(offset) + " failed"};
    }
    // Anything else (EINVAL: the kernel does not know it): read instead.
  }
  std::vector<std::byte> scratch(static_cast<size_t>(std::min(size, kReadPieceBytes)));
  for (int64_t done = 0; done < size;) {
    const int64_t piece = std::min(size - done, kReadPieceBytes);
    DI_RETURN_IF_ERROR(read_at(offset + done, std::span(scratch).first(static_cast<size_t>(piece))));
    done += piece;
  }
  return {};
}

Status MappedFile::read_at(int64_t offset, std::span<std::byte> out) const {
  check_range(offset, static_cast<int64_t>(out.size()));
  while (!out.empty()) {
    const ssize_t n_read = pread(fd_, out.data(), out.size(), offset);
    if (n_read < 0) {
      if (errno == EINTR) continue;
      return Error{Code::kIo, path_ + ": reading at offset " + std::to_string(offset) + ": " + errno_text(errno)};
    }
    if (n_read == 0) {  // end of file inside a range that was there when mapped
      DI_RETURN_IF_ERROR(verify_size());
      return Error{Code::kIo, path_ + ": unexpected end of file at offset " + std::to_string(offset)};
    }
    out = out.subspan(static_cast<size_t>(n_read));
    offset += n_read;
  }
  return {};
}

void MappedFile::advise_random(int64_t offset, int64_t size) const {
  check_range(offset, size);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const int64_t begin = offset / page_bytes * page_bytes;
  if (size > 0) madvise(const_cast<std::byte*>(data_) + begin, static_cast<size_t>(offset + size - begin), MADV_RANDOM);
}

Status MappedFile::verify_size() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Error{Code::kIo, path_ + ": " + errno_text(errno)};
  if (info.st_size != size_) return size_error(path_, size_, info.st_size);
  return {};
}

bool MappedFile::has_holes() const {
  const off_t hole = lseek(fd_, 0, SEEK_HOLE);
  return hole >= 0 && hole < size_;
}

}  // namespace deepinfer
