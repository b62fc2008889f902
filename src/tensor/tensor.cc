#include "tensor/tensor.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  DI_CHECK(dims.size() <= static_cast<size_t>(kRankMax));
  for (const int64_t dim : dims) DI_CHECK(dim >= 0);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::n_elements() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) DI_CHECK(!__builtin_mul_overflow(product, (*this)[i], &product));
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string((*this)[i]);
  }
  return text + "]";
}

}  // namespace deepinfer
