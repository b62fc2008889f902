#include "platform/cpu_features.h"

#include <gtest/gtest.h>

#include <thread>

namespace deepinfer {
namespace {

TEST(CpuFeatures, AgreesWithTheCompilersRuntime) {
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  EXPECT_EQ(features.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(features.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(features.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(features.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(features.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(features.avx512vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(features.avx512bf16, __builtin_cpu_supports("avx512bf16") != 0);
#endif
}

TEST(CpuFeatures, Names) {
  EXPECT_EQ(to_string(CpuFeatures{}), "none");
  EXPECT_EQ(to_string(CpuFeatures{.avx2 = true, .avx512bf16 = true}), "avx2 avx512bf16");
}

TEST(CpuFeatures, CgroupQuotaRoundsUp) {
  EXPECT_EQ(parse_cgroup_cpu_max("150000 100000\n"), 2);
  EXPECT_EQ(parse_cgroup_cpu_max("100000 100000\n"), 1);
  EXPECT_EQ(parse_cgroup_cpu_max("1000 100000\n"), 1);
  EXPECT_EQ(parse_cgroup_cpu_max("6400000 100000"), 64);
  for (const char* none : {"max 100000\n", "", "100000", "100000 0", "x y", "-1 100000"}) {
    EXPECT_EQ(parse_cgroup_cpu_max(none), std::nullopt) << none;
  }
}

TEST(CpuFeatures, MachineFactsArePlausible) {
  EXPECT_GE(available_cpus(), 1);
  EXPECT_LE(available_cpus(), static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(total_memory_bytes(), uint64_t{1} << 26);
  EXPECT_FALSE(cpu_model_name().empty());
}

}  // namespace
}  // namespace deepinfer
