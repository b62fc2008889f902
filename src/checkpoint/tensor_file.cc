#include "deepinfer/tensor_file.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "checkpoint/safetensors.h"

namespace deepinfer {

struct TensorFileWriter::State {
  SafetensorsWriter writer;
  std::vector<int64_t> n_columns;  // one a matrix
};

TensorFileWriter::TensorFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TensorFileWriter::TensorFileWriter(TensorFileWriter&&) noexcept = default;
TensorFileWriter& TensorFileWriter::operator=(TensorFileWriter&&) noexcept = default;
TensorFileWriter::~TensorFileWriter() = default;

Result<TensorFileWriter> TensorFileWriter::create(const std::string& path, std::span<const Matrix> matrices) {
  std::vector<TensorSpec> specs;
  std::vector<int64_t> n_columns;
  for (const Matrix& matrix : matrices) {
    specs.push_back({matrix.name, DType::kF32, Shape{matrix.n_rows, matrix.n_columns}});
    n_columns.push_back(matrix.n_columns);
  }
  DI_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::create(path, specs));
  return TensorFileWriter(std::make_unique<State>(State{std::move(writer), std::move(n_columns)}));
}

Status TensorFileWriter::write_rows(size_t matrix_idx, int64_t first_row, std::span<const float> values) {
  DI_CHECK(matrix_idx < state_->n_columns.size());
  const int64_t row_bytes = state_->n_columns[matrix_idx] * static_cast<int64_t>(sizeof(float));
  return state_->writer.write(matrix_idx, first_row * row_bytes, std::as_bytes(values));
}

Status TensorFileWriter::finish() { return state_->writer.finish(); }

}  // namespace deepinfer
