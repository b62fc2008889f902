// The safetensors container: header reader (a pure function over bytes) and writer. Owns the format's rules and nothing
// else: no model, no directory, no memory map. Any thread; a SafetensorsWriter belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deepinfer/status.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace deepinfer {

/// The format's own limit on the JSON part.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;

/// One tensor as its header declares it. Offsets were checked against the file size.
struct SafetensorsEntry {
  std::string name;
  std::string dtype_tag;       // as written; may be one this project does not use
  std::optional<DType> dtype;  // nothing for an unknown tag: such a tensor can be listed but not viewed
  Shape shape;
  int64_t offset_bytes = 0;  // from the start of the file
  int64_t size_bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;                      // by offset
  std::vector<std::pair<std::string, std::string>> metadata;  // `__metadata__`, in file order
  int64_t data_offset_bytes = 0;                              // first byte after the JSON part
};

/// Length of the JSON part, from the first 8 bytes of a file of `file_size_bytes`.
/// Errors: kBadModelFile when the file cannot hold it; the message has the expected and the actual size.
Result<int64_t> safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_size_bytes);

/// Parses a header. `bytes` starts at byte 0 of the file and holds at least the 8-byte length and the JSON part (more
/// is allowed, it is not read); `file_size_bytes` is the size of the whole file, in which the declared ranges must lie.
///
/// Enforced: JSON object that starts with '{'; no key twice; every tensor has exactly dtype, shape and data_offsets;
/// rank <= 4; dimensions >= 0 (a zero dimension and a scalar are legal) whose product fits; size == elements * dtype
/// size for the tags this project knows; and, as the format demands, that the ranges tile the data part without holes,
/// overlap or unused tail. A file shorter than that says how many bytes were expected and how many are there.
/// Cost: one pass plus a sort; about ten times the header in temporary memory.
/// Errors: kBadModelFile. The message names the tensor, not the file (the caller knows it).
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> bytes, int64_t file_size_bytes);

/// What a writer has to know about a tensor before any of its bytes.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

struct NamedTensor {
  std::string name;
  TensorView view;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// Writes one file under a temporary name in the same folder; finish() makes it durable (fsync) and gives it its name.
/// Whatever ends a writer earlier (an error, the destructor) removes the temporary file, so that no partial file is
/// ever found under `path`. Tensors are laid out widest element first, each aligned to its element, data from a
/// multiple of 64 bytes on; bytes may arrive in any order, so a tensor need not be in memory whole.
class SafetensorsWriter {
 public:
  /// Errors: kInvalidArgument for a duplicate or empty name, `__metadata__`, invalid UTF-8, or a header over the limit;
  /// kIo when the file cannot be created.
  static Result<SafetensorsWriter> create(const std::string& path, std::span<const TensorSpec> tensors,
                                          const SafetensorsMetadata& metadata = {{"format", "pt"}});

  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&& other) noexcept;
  ~SafetensorsWriter();

  /// Writes `bytes` at `offset_bytes` inside tensor `tensor_idx` (its position in create()). Each byte once.
  /// Errors: kIo (a full disk included); kInvalidArgument when the range leaves the tensor.
  Status write(size_t tensor_idx, int64_t offset_bytes, std::span<const std::byte> bytes);

  /// The writer is spent afterwards, whatever the outcome.
  /// Errors: kInvalidArgument when some tensor has not been written completely; kIo.
  Status finish();

 private:
  struct State;
  explicit SafetensorsWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;  // null after a move or finish()
};

/// All at once.
Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata = {{"format", "pt"}});

}  // namespace deepinfer
