// A model directory in Hugging Face layout, opened read-only: config.json, the shards its index names, and where each
// tensor lies. Owns the memory maps. Refuses a directory with the full list of what is wrong with it. Knows the weight
// catalogue, not what weights mean. open() and load() belong to the loading thread; a loaded, const Checkpoint may be
// read from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/catalog.h"
#include "checkpoint/config.h"
#include "checkpoint/safetensors.h"
#include "deepinfer/status.h"
#include "tensor/tensor.h"

namespace deepinfer {

/// Called with bytes done and bytes in all; first with 0, last with done == total. May be empty.
using LoadProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

struct CatalogReport {
  std::vector<std::string> problems;  // missing, wrong dtype, wrong shape
  std::vector<std::string> extras;    // tensors no section of the config has
};

class Checkpoint;
/// Compares an open checkpoint with the catalogue of its config, for exactly these sections. A requested section that
/// the config does not have is a problem.
CatalogReport check_catalog(const Checkpoint& checkpoint, SectionSet sections);

class Checkpoint {
 public:
  /// Opens `dir`: parses config.json, model.safetensors.index.json (or, without one, a single model.safetensors) and
  /// all shard headers, checks file sizes, and compares the tensors with the catalogue. No tensor data is read.
  ///
  /// The index decides which shard a tensor comes from. Shard names are plain file names; a file may be a symbolic link
  /// to anywhere (the hub's cache is made of links). The text section is always checked; the drafter and vision when
  /// `sections` asks for them or when the checkpoint has at least one tensor of theirs, so a half-present drafter is
  /// refused and an absent one that nobody asked for is fine.
  ///
  /// Errors: kBadModelFile with every problem found, on one line, at most 20 of them spelled out. Unneeded tensors and
  /// stray shards are no problems: see warnings().
  static Result<Checkpoint> open(const std::string& dir, SectionSet sections = {Section::kText});

  Checkpoint(Checkpoint&& other) noexcept;
  Checkpoint& operator=(Checkpoint&& other) noexcept;
  ~Checkpoint();

  [[nodiscard]] const std::string& dir() const;
  [[nodiscard]] const ModelConfig& config() const;
  /// expected_tensors(config()), kept because it is large.
  [[nodiscard]] std::span<const ExpectedTensor> catalog() const;
  /// One line each, for the log: unused tensors, stray files, unknown config keys, holes in files.
  [[nodiscard]] const std::vector<std::string>& warnings() const;
  /// True when the config has the section and at least one of its tensors is there; after open() all are.
  [[nodiscard]] bool has(Section section) const;
  /// Sum of the sizes of all tensors the index names (the index's total_size).
  [[nodiscard]] int64_t total_bytes() const;

  [[nodiscard]] bool contains(std::string_view name) const;
  /// Position, size and type of a tensor (offset inside its shard); nullptr when the index does not name it.
  [[nodiscard]] const SafetensorsEntry* entry(std::string_view name) const;
  /// All tensors the index names, by name.
  [[nodiscard]] std::vector<const SafetensorsEntry*> entries() const;

  /// A view into the map (or into an aligned copy that load() made), valid while the Checkpoint lives (moves included).
  /// Reading it before load() pages the data in on demand, and a file cut meanwhile then ends the process (SIGBUS).
  /// Errors: kBadModelFile for an unknown tensor or dtype, or when the file holds the tensor unaligned and load() has
  /// not been asked for it.
  [[nodiscard]] Result<TensorView> find(std::string_view name) const;

  /// Brings the catalogued tensors of `sections` into memory: touches every page without risking a signal, copies those
  /// whose offset is not a multiple of their element size, checks that every value is a finite number and all sizes
  /// again at the end. The Engram tables (random access) are only advised. Absent sections cost nothing.
  /// Errors: kBadModelFile when a file was cut meanwhile, with expected and actual size, or holds a NaN or an infinity;
  /// kIo when it cannot be read.
  Status load(SectionSet sections, const LoadProgress& progress = {});
  /// The same for tensors by name, the Engram tables included when named.
  Status load_tensors(std::span<const std::string> names, const LoadProgress& progress = {});

  /// Every shard still has the size it was mapped with. To be called again by whoever read views after load() and
  /// before trusting what was read (a cut inside the last page reads as zeros without any signal).
  [[nodiscard]] Status verify_sizes() const;

 private:
  friend CatalogReport check_catalog(const Checkpoint& checkpoint, SectionSet sections);
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct CheckpointWriteOptions {
  int64_t shard_bytes_max = 5'000'000'000;  // tensor bytes a file; a larger tensor gets a file of its own
  std::string config_json;                  // written as config.json when not empty
};

/// Writes `dir` (which must exist) in Hugging Face layout: model-0000i-of-0000n.safetensors in the order given and, as
/// the last file, model.safetensors.index.json with metadata.total_size. Every file is written under a temporary name,
/// synced and renamed. With a single shard too: the reader needs no second form.
/// Errors: kInvalidArgument for bad or duplicate names; kIo.
Status write_checkpoint(const std::string& dir, std::span<const NamedTensor> tensors,
                        const CheckpointWriteOptions& options = {});

}  // namespace deepinfer
