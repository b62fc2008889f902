// Small-file reading and all-or-nothing file writing for this layer. Errors carry path and reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "deepinfer/status.h"

namespace deepinfer {

/// Whole text of a regular file of at most `size_bytes_max`. Errors: kBadModelFile (missing, dangling link, directory,
/// too large), kIo.
Result<std::string> read_text_file(const std::string& path, int64_t size_bytes_max);

/// A file that appears under its name complete or not at all: written as a temporary beside it, then synced and renamed
/// by commit(). Move-only; the destructor removes an uncommitted temporary.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write_at(int64_t offset, std::span<const std::byte> bytes);
  /// fsync, rename, fsync of the folder. The object is spent afterwards, whatever the outcome.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int fd);
  void discard();

  std::string path_;
  std::string temporary_path_;
  int fd_ = -1;
};

/// AtomicFile in one call.
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace deepinfer
