// The contract of ops::Backend, case by case: every backend against ref, and each against itself over row splits and
// thread counts, and that it allocates nothing once reserved.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <tuple>

#include "tests/contract/allocations.h"
#include "tests/contract/runs.h"

namespace deepinfer {
namespace {

using bench::OpCase;
using bench::Output;
using bench::RowRange;

const std::vector<OpCase>& cases() {
  static const std::vector<OpCase> all = bench::contract_cases();
  return all;
}

const std::vector<Output>& ref_outputs(size_t case_idx) {
  static std::map<size_t, std::vector<Output>> known;
  const auto found = known.find(case_idx);
  if (found != known.end()) return found->second;
  const OpCase& c = cases()[case_idx];
  return known[case_idx] = run_case(c, tested_backends().front(), 2, whole(c));
}

/// The splits that a scheduler could make: one row at a time, and uneven chunks.
std::vector<std::vector<RowRange>> splits(const OpCase& c) {
  std::vector<std::vector<RowRange>> all(1);
  for (int32_t t = 0; t < c.n_rows; ++t) all[0].push_back({t, t + 1});
  bench::Random random(bench::Random(static_cast<uint64_t>(c.n_rows)).next());
  for (const int64_t longest : {4, 17}) {
    std::vector<RowRange> split;
    for (int32_t t = 0; t < c.n_rows;) {
      const auto end = static_cast<int32_t>(std::min<int64_t>(c.n_rows, t + random.between(1, longest)));
      split.push_back({t, end});
      t = end;
    }
    all.push_back(split);
  }
  return all;
}

void expect_same_bytes(const std::vector<Output>& got, std::vector<Output> want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    want[i].tolerance = bench::bitwise();
    const std::string fault = bench::compare(got[i], want[i]);
    EXPECT_TRUE(fault.empty()) << fault;
  }
}

class Contract : public testing::TestWithParam<std::tuple<size_t, size_t>> {
 protected:
  [[nodiscard]] const TestedBackend& tested() const { return tested_backends()[std::get<0>(GetParam())]; }
  [[nodiscard]] size_t case_idx() const { return std::get<1>(GetParam()); }
  [[nodiscard]] const OpCase& op_case() const { return cases()[case_idx()]; }
};

TEST_P(Contract, MatchesRef) {
  const std::vector<Output> got = run_case(op_case(), tested(), 1, whole(op_case()));
  const std::vector<Output>& want = ref_outputs(case_idx());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string fault = bench::compare(got[i], want[i]);
    EXPECT_TRUE(fault.empty()) << fault;
  }
  if (op_case().self_check) {
    const std::string fault = op_case().self_check(got);
    EXPECT_TRUE(fault.empty()) << fault;
  }
}

TEST_P(Contract, RowsDoNotDependOnTheirCompany) {
  const std::vector<Output> want = run_case(op_case(), tested(), 1, whole(op_case()));
  for (const std::vector<RowRange>& split : splits(op_case())) {
    SCOPED_TRACE(std::to_string(split.size()) + " steps");
    expect_same_bytes(run_case(op_case(), tested(), 1, split), want);
  }
}

TEST_P(Contract, ResultsDoNotDependOnThreads) {
  const std::vector<Output> want = run_case(op_case(), tested(), 1, whole(op_case()));
  for (const int n_threads : {2, 3}) {
    SCOPED_TRACE(std::to_string(n_threads) + " threads");
    expect_same_bytes(run_case(op_case(), tested(), n_threads, whole(op_case())), want);
  }
}

TEST_P(Contract, AllocatesNothingOnceReserved) {
  if (tested().allocates_in_steps) return;
  const std::unique_ptr<ops::Backend> backend = tested().make(2);
  ASSERT_TRUE(backend->reserve(op_case().config, op_case().limits).ok());
  bench::BoundCase bound(*backend);
  op_case().bind(bound);
  ASSERT_TRUE(bound.status().ok());
  const int64_t before = n_allocations();
  const bool ok = bound.step({0, op_case().n_rows}).ok();
  const int64_t after = n_allocations();
  EXPECT_TRUE(ok);
  EXPECT_EQ(after - before, 0);
}

TEST(Allocations, AreCounted) {
  const int64_t before = n_allocations();
  ::operator delete(::operator new(8));
  EXPECT_EQ(n_allocations() - before, 1);
  void* volatile p = std::aligned_alloc(64, 64);
  std::free(p);
  EXPECT_EQ(n_allocations() - before, 2);
}

std::string test_name(const testing::TestParamInfo<std::tuple<size_t, size_t>>& info) {
  std::string name = tested_backends()[std::get<0>(info.param)].name + "_" + cases()[std::get<1>(info.param)].name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, Contract,
                         testing::Combine(testing::Range<size_t>(0, tested_backends().size()),
                                          testing::Range<size_t>(0, cases().size())),
                         test_name);

}  // namespace
}  // namespace deepinfer
