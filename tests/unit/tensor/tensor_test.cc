#include "tensor/tensor.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(Shape, ScalarHasOneElement) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.n_elements(), 1);
  EXPECT_EQ(shape.to_string(), "[]");
}

TEST(Shape, MultipliesAndPrints) {
  const Shape shape = {2304, 2560};
  EXPECT_EQ(shape.rank(), 2);
  EXPECT_EQ(shape[1], 2560);
  EXPECT_EQ(shape.n_elements(), 5898240);
  EXPECT_EQ(shape.to_string(), "[2304, 2560]");
}

TEST(Shape, CountsIn64Bits) { EXPECT_EQ((Shape{384016682, 256}).n_elements(), 98308270592); }

TEST(Shape, ZeroDimensionMakesItEmpty) { EXPECT_EQ((Shape{4, 0, 7}).n_elements(), 0); }

TEST(Shape, EqualityIncludesRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
}

TEST(ShapeDeathTest, FiveDimensionsAreABug) { EXPECT_DEATH((Shape{1, 1, 1, 1, 1}), "check failed"); }

TEST(ShapeDeathTest, NegativeDimensionIsABug) { EXPECT_DEATH((Shape{1, -1}), "check failed"); }

TEST(ShapeDeathTest, OverflowingCountIsABug) {
  const Shape shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_DEATH((void)shape.n_elements(), "check failed");
}

TEST(TensorView, BytesFollowTheType) {
  const std::byte data[24] = {};
  const TensorView view = {data, DType::kF32, {2, 3}};
  EXPECT_EQ(view.n_bytes(), 24);
  EXPECT_EQ(view.bytes().size(), 24U);
  EXPECT_EQ((TensorView{data, DType::kPackedFp4, {2, 3}}).n_bytes(), 6);
}

}  // namespace
}  // namespace deepinfer
