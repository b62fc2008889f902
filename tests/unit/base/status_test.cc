#include "deepinfer/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/check.h"

namespace deepinfer {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{Code::kInvalidArgument, "odd"};
  return x / 2;
}

Result<int> quarter(int x) {
  DI_ASSIGN_OR_RETURN(const int h, half(x));
  return half(h);
}

Status must_be_even(int x) {
  DI_RETURN_IF_ERROR(half(x));
  return {};
}

TEST(Result, PassesErrorsUp) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(must_be_even(2).ok());
  EXPECT_EQ(must_be_even(3).error().code, Code::kInvalidArgument);
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(7);
  ASSERT_TRUE(r.ok());
  std::unique_ptr<int> p = *std::move(r);
  EXPECT_EQ(*p, 7);
}

Result<std::vector<int>> three() { return std::vector<int>{1, 2, 3}; }

TEST(Result, ATemporaryCanBeLoopedOver) {
  int sum = 0;
  for (const int x : *three()) sum += x;
  EXPECT_EQ(sum, 6);
}

TEST(Status, ExitCodesAreTheContract) {
  EXPECT_EQ(exit_code(Code::kInvalidArgument), 2);
  EXPECT_EQ(exit_code(Code::kIo), 2);
  EXPECT_EQ(exit_code(Code::kBadModelFile), 3);
  EXPECT_EQ(exit_code(Code::kOutOfCapacity), 4);
  EXPECT_EQ(exit_code(Code::kDeviceLost), 5);
}

TEST(CheckDeathTest, AbortsWithTheCondition) { EXPECT_DEATH(DI_CHECK(1 == 2), "check failed: 1 == 2"); }

}  // namespace
}  // namespace deepinfer
