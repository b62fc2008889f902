// A case bound to one backend: its memory there, the step that runs the operation on a range of rows, its outputs.
// All memory goes through the Backend interface, so that a device can be driven by the same table. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/inputs.h"
#include "bench/output.h"
#include "deepinfer/status.h"
#include "ops/backend.h"
#include "tensor/tensor.h"

namespace deepinfer::bench {

/// Rows [begin, end) of a case.
struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
  [[nodiscard]] int32_t n() const { return end - begin; }
};

/// Byte that fills memory nobody may read before it is written: a NaN in every floating-point format used.
inline constexpr uint8_t kPoison = 0xff;
/// The same for integer outputs, where all ones would be the legal -1.
inline constexpr uint8_t kIntegerPoison = 0x7f;

class BoundCase {
 public:
  /// with_checks: outputs carry tolerances and operations give what self_check needs; without, for timing.
  explicit BoundCase(ops::Backend& backend, bool with_checks = true) : backend_(backend), with_checks_(with_checks) {}
  BoundCase(const BoundCase&) = delete;
  BoundCase& operator=(const BoundCase&) = delete;

  // For bind functions. Errors stick: after the first one pointers are null and status() says why.

  template <typename T>
  const T* input(const std::vector<T>& host) {
    return static_cast<const T*>(upload_new(host.data(), static_cast<int64_t>(host.size() * sizeof(T))));
  }
  ops::QuantizedRows input(const HostQuantizedRows& host);
  ops::Fp8Matrix weight(HostFp8Matrix host);
  ops::Fp4Matrix weight(HostFp4Matrix host);
  ops::Bf16Matrix weight(HostBf16Matrix host);
  const Bf16* weight(std::vector<Bf16> host);
  const float* weight(std::vector<float> host);

  /// Memory the operation reads and writes; `initial` again after restore().
  template <typename T>
  T* state(const std::vector<T>& initial) {
    return static_cast<T*>(state_bytes(initial.data(), static_cast<int64_t>(initial.size() * sizeof(T))));
  }
  /// An output of n_rows rows, poisoned before every run and followed by a guard.
  template <typename T>
  T* output(std::string name, OutputType type, int64_t n_rows, int64_t width, Tolerance tolerance) {
    return static_cast<T*>(output_bytes(Output{std::move(name), type, n_rows, width, {}, std::move(tolerance)}));
  }
  ops::QuantizedRows quantized_output(const std::string& name, int64_t n_rows, int64_t width, Tolerance tolerance);
  /// Makes memory obtained from state() an output too.
  void watch(const void* state, Output output);
  /// An output computed on the host from states: `fill` gets a reader of backend memory and fills output.bytes.
  using Reader = std::function<std::vector<uint8_t>(const void* state, int64_t n_bytes)>;
  void derive(Output output, std::function<void(const Reader&, Output&)> fill);
  /// Zeroed memory that restore() leaves alone.
  template <typename T>
  T* scratch(int64_t n) {
    return static_cast<T*>(new_buffer(n * static_cast<int64_t>(sizeof(T))));
  }
  /// Host memory that the arguments point into, kept as long as the case.
  template <typename T>
  T& keep(T value) {
    auto owned = std::make_shared<T>(std::move(value));
    kept_.push_back(owned);
    return *owned;
  }

  /// Runs the operation on rows [begin, end). Ranges ascend and cover all rows; state (rings, tails) carries over.
  std::function<Status(RowRange)> step;

  // For those who run a case.

  [[nodiscard]] ops::Backend& backend() { return backend_; }
  [[nodiscard]] bool with_checks() const { return with_checks_; }
  [[nodiscard]] Status status() const;
  /// States to their initial bytes, outputs to poison.
  Status restore();
  /// Everything the last run wrote. kInvalidArgument when a guard was overwritten.
  Result<std::vector<Output>> outputs();

 private:
  struct Saved {
    void* data;
    std::vector<uint8_t> initial;
  };
  struct Produced {
    Output description;
    std::function<void(const Reader&, Output&)> fill;
  };
  struct Guarded {
    std::string name;
    const uint8_t* data;
    int64_t n_bytes;
    uint8_t poison;
  };

  void* new_buffer(int64_t n_bytes);
  void* upload_new(const void* host, int64_t n_bytes);
  void* state_bytes(const void* initial, int64_t n_bytes);
  void* guarded_bytes(const std::string& name, int64_t n_bytes, uint8_t poison);
  void* output_bytes(Output description);
  const void* import(const void* host, DType dtype, Shape shape);
  std::vector<uint8_t> read(const void* data, int64_t n_bytes);
  void note(Status status);

  ops::Backend& backend_;  // outlives the case
  bool with_checks_;
  std::vector<ops::Buffer> buffers_;
  std::vector<Saved> saved_;
  std::vector<Produced> produced_;
  std::vector<Guarded> guarded_;
  std::vector<std::shared_ptr<void>> kept_;
  Status status_;
};

/// The rows of a step on the backend, for any range of a case's rows.
class BoundRows {
 public:
  /// slot and position [n]; copied.
  BoundRows(BoundCase& bound, std::vector<int32_t> slot, std::vector<int32_t> position);

  /// Rows of the range, as a step of their own: `begin` counts from the range's first row.
  Result<ops::Rows> at(RowRange range);
  [[nodiscard]] bool whole(RowRange range) const { return range.n() == static_cast<int32_t>(slot_.size()); }

 private:
  BoundCase* bound_;
  std::vector<int32_t> slot_;
  std::vector<int32_t> begin_host_;
  const int32_t* slot_there_ = nullptr;
  const int32_t* position_there_ = nullptr;
  int32_t* begin_there_ = nullptr;
  RowRange uploaded_{-1, -1};
};

inline ops::QuantizedRows from_row(const ops::QuantizedRows& rows, int64_t row) {
  return {rows.codes + row * rows.width, rows.scales + row * (rows.width / 32), rows.width};
}

}  // namespace deepinfer::bench
