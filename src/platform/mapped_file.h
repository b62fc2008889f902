// A whole file mapped read-only, with the care that files of other people need: sizes are checked before and after, and
// pages can be brought in without the risk of SIGBUS. Knows no format. A const MappedFile may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "deepinfer/status.h"

namespace deepinfer {

class MappedFile {
 public:
  /// How prefault() brings pages in. kAuto asks the kernel to populate the map and reads the file where that is not
  /// supported; kRead forces the reading.
  enum class Prefault { kAuto, kRead };

  /// Maps a regular file (or a link to one). Errors: kBadModelFile naming path and reason: missing, a dangling link, a
  /// directory, a pipe or device, empty, unreadable; kIo when mapping fails.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size() const { return size_; }
  /// Reading a page that is not in memory and no longer in the file raises SIGBUS: prefault() first.
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

  /// Reads [offset, offset + size) into memory; the range is checked by DI_CHECK. A file cut before that range gives
  /// kBadModelFile with expected and actual size, never a signal. A cut inside the last page is found by verify_size()
  /// only. Cost: one read of the file at most; nothing when it is cached.
  [[nodiscard]] Status prefault(int64_t offset, int64_t size, Prefault method = Prefault::kAuto) const;

  /// Copies [offset, offset + out.size()) by read(2) instead of through the map: the safe way to look at single spots.
  [[nodiscard]] Status read_at(int64_t offset, std::span<std::byte> out) const;

  /// Tells the kernel that this range is read in small scattered pieces. A hint: failure is ignored.
  void advise_random(int64_t offset, int64_t size) const;

  /// The file still has the size it was mapped with. Error: kBadModelFile with expected and actual size.
  [[nodiscard]] Status verify_size() const;

  /// True when the file system reports unwritten holes: typical of a copy or download that was cut off. Best effort.
  [[nodiscard]] bool has_holes() const;

 private:
  MappedFile(std::string path, int fd, const std::byte* data, int64_t size);
  void close();
  void check_range(int64_t offset, int64_t size) const;

  std::string path_;
  int fd_ = -1;  // kept open: sizes are checked on the file that was mapped, not on what the path names now
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace deepinfer
