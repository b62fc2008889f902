// Writes matrices of floats into one .safetensors file, row by row, so that none has to be in memory whole.
// Knows nothing of models; a TensorFileWriter belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "deepinfer/status.h"

namespace deepinfer {

/// The file appears under its name at finish(), complete, or not at all. Move-only.
class TensorFileWriter {
 public:
  struct Matrix {
    std::string name;
    int64_t n_rows = 0;
    int64_t n_columns = 0;
  };

  /// F32 tensors [n_rows, n_columns], in any number.
  /// Errors   kInvalidArgument: a name that is empty, there twice or not UTF-8; kIo: the file cannot be created
  static Result<TensorFileWriter> create(const std::string& path, std::span<const Matrix> matrices);

  TensorFileWriter(TensorFileWriter&&) noexcept;
  TensorFileWriter& operator=(TensorFileWriter&&) noexcept;
  ~TensorFileWriter();

  /// Whole rows of matrix `matrix_idx` (its position in create()), the first being `first_row`. Each row once, any
  /// order. Errors   kInvalidArgument: rows outside the matrix; kIo (a full disk included)
  Status write_rows(size_t matrix_idx, int64_t first_row, std::span<const float> values);

  /// The writer is spent afterwards, whatever the outcome.
  /// Errors   kInvalidArgument: some row was not written; kIo
  Status finish();

 private:
  struct State;
  explicit TensorFileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace deepinfer
