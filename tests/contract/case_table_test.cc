// The case table and its comparison: that a wrong result is refused, that nothing is compared with itself by accident.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "numerics/bf16.h"
#include "tests/contract/runs.h"

namespace deepinfer {
namespace {

using bench::Output;
using bench::OutputType;

Output bf16_output(const std::vector<float>& values, int64_t width, bench::Tolerance tolerance) {
  Output out{"y", OutputType::kBf16, static_cast<int64_t>(values.size()) / width, width, {}, std::move(tolerance)};
  for (const float value : values) {
    const Bf16 b = to_bf16(value);
    out.bytes.push_back(static_cast<uint8_t>(b.bits & 0xffu));
    out.bytes.push_back(static_cast<uint8_t>(b.bits >> 8));
  }
  return out;
}

TEST(Compare, BitwiseRefusesOneBit) {
  const Output want = bf16_output({1, 2, 3, 0}, 2, bench::bitwise());
  EXPECT_EQ(bench::compare(want, want), "");
  Output got = want;
  got.bytes[5] ^= 1u;
  EXPECT_NE(bench::compare(got, want), "");
  EXPECT_NE(bench::compare(bf16_output({1, 2, 3, -0.0f}, 2, {}), want), "");
}

TEST(Compare, EqualNumbersAcceptsZerosOfEitherSignAndNothingElse) {
  const Output want = bf16_output({1, 0, NAN, INFINITY}, 2, bench::equal_numbers(""));
  EXPECT_EQ(bench::compare(bf16_output({1, -0.0f, NAN, INFINITY}, 2, {}), want), "");
  EXPECT_NE(bench::compare(bf16_output({1, 0, 1, INFINITY}, 2, {}), want), "");
  EXPECT_NE(bench::compare(bf16_output({1, 0, NAN, NAN}, 2, {}), want), "");
  EXPECT_NE(bench::compare(bf16_output({1.0078125f, 0, NAN, INFINITY}, 2, {}), want), "");
}

TEST(Compare, Bf16SumAcceptsOneUnitInFewElementsOnly) {
  std::vector<float> values(200, 1.0f);
  const Output want = bf16_output(values, 100, bench::bf16_sum(64, {}, {}));
  values[3] = 1.0078125f;  // one unit
  EXPECT_EQ(bench::compare(bf16_output(values, 100, {}), want), "");
  values[3] = 1.015625f;  // two
  EXPECT_NE(bench::compare(bf16_output(values, 100, {}), want), "");
  for (int i = 0; i < 5; ++i) values[static_cast<size_t>(i)] = 1.0078125f;
  EXPECT_NE(bench::compare(bf16_output(values, 100, {}), want), "");
}

TEST(Compare, ChainRefusesManySmallOrOneLargeDeviation) {
  std::vector<float> values(400, 1.0f);
  const Output want = bf16_output(values, 100, bench::chain(0x1p-5, ""));
  std::vector<float> got = values;
  for (size_t i = 0; i < 200; ++i) got[i] = 1.0078125f;  // two of four rows
  EXPECT_EQ(bench::compare(bf16_output(got, 100, {}), want), "");
  for (size_t i = 200; i < 203; ++i) got[i] = 1.0078125f;  // and a third
  EXPECT_NE(bench::compare(bf16_output(got, 100, {}), want), "");
  got = values;
  got[7] = 1.25f;
  EXPECT_NE(bench::compare(bf16_output(got, 100, {}), want), "");
  got[7] = NAN;
  EXPECT_NE(bench::compare(bf16_output(got, 100, {}), want), "");
}

/// Every tolerance must refuse a value that is plainly wrong, and an output that nobody wrote.
TEST(CaseTable, RefusesDamagedOutputs) {
  for (const bench::OpCase& c : bench::contract_cases()) {
    const std::vector<Output> want = run_case(c, tested_backends().front(), 2, whole(c));
    for (const Output& output : want) {
      if (output.bytes.empty() || output.tolerance.of_row_max > 1e20) continue;  // the latter: by self-check
      Output damaged = output;
      // One row of zero bits, unless the row is that already: a sublayer that was skipped.
      const int64_t n_bytes = bench::row_bytes(output.type, output.width);
      std::vector<uint8_t> zeros(static_cast<size_t>(n_bytes), uint8_t{0});
      bool changed = false;
      for (int64_t r = 0; r < output.n_rows && !changed; ++r) {
        changed = std::memcmp(damaged.bytes.data() + r * n_bytes, zeros.data(), zeros.size()) != 0;
        std::memcpy(damaged.bytes.data() + r * n_bytes, zeros.data(), zeros.size());
      }
      if (changed) {
        EXPECT_NE(bench::compare(damaged, output), "") << c.name << " " << output.name << " zeroed";
      }
      damaged = output;
      std::fill(damaged.bytes.begin(), damaged.bytes.end(), bench::kPoison);
      if (damaged.bytes != output.bytes) {
        EXPECT_NE(bench::compare(damaged, output), "") << c.name << " " << output.name << " not written";
      }
    }
  }
}

/// Results of exact cases are numbers, not the NaN that poison would give.
TEST(CaseTable, ReadsNoPoison) {
  for (const bench::OpCase& c : bench::contract_cases()) {
    for (const Output& output : run_case(c, tested_backends().front(), 2, whole(c))) {
      if (output.type == OutputType::kBytes) continue;
      for (int64_t r = 0; r < output.n_rows; ++r) {
        for (const float value : bench::decode_row(output, r)) {
          ASSERT_FALSE(std::isnan(value)) << c.name << " " << output.name << " row " << r;
        }
      }
    }
  }
}

TEST(CaseTable, NamesAreUniqueAndEveryOperationHasAnExactCase) {
  std::set<std::string> names;
  std::set<std::string> exact;
  std::set<std::string> ops;
  for (const bench::OpCase& c : bench::contract_cases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    ops.insert(c.op);
    if (c.name.find("/exact_") != std::string::npos) exact.insert(c.op);
  }
  EXPECT_EQ(ops.size(), 17u);
  EXPECT_EQ(exact, ops);
}

}  // namespace
}  // namespace deepinfer
