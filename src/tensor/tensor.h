// Shapes and views of dense row-major tensors. Views borrow; the owner (a mapped checkpoint, a Buffer) outlives them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace deepinfer {

/// Up to four dimensions, outermost first. For packed FP4 the last dimension counts bytes, as in the file.
class Shape {
 public:
  static constexpr int kRankMax = 4;

  Shape() = default;
  /// Precondition of both: at most kRankMax dimensions, none negative.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  /// Product of the dimensions; 1 for rank 0. Precondition: it fits (readers check before they build a Shape).
  [[nodiscard]] int64_t n_elements() const;
  /// "[2304, 2560]".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<int64_t, kRankMax> dims_{};
  int rank_ = 0;
};

/// A borrowed, dense, row-major tensor in host memory.
struct TensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  [[nodiscard]] int64_t n_bytes() const { return shape.n_elements() * element_bytes(dtype); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data, static_cast<size_t>(n_bytes())}; }
};

}  // namespace deepinfer
