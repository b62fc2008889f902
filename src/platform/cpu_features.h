// What this machine offers: instruction sets usable by this process, processors and memory it may use. Reads cpuid,
// /proc and cgroup files; every answer is a snapshot. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

/// True where the processor has it and the operating system saves its registers. All false on other architectures.
/// AMX additionally needs a per-process permission that whoever uses it has to ask the kernel for.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512vnni = false;
  bool avx512bf16 = false;
  bool amx_bf16 = false;
  bool amx_int8 = false;
};

CpuFeatures detect_cpu_features();

/// "avx2 fma f16c", "none" when empty.
std::string to_string(const CpuFeatures& features);

/// "AMD EPYC 9654 96-Core Processor", "unknown" when the system does not say.
std::string cpu_model_name();

/// Processors this process may keep busy: its affinity mask, cut by the cgroup quota (rounded up). At least 1.
int available_cpus();

/// Main memory this process may use: the machine's, cut by the cgroup limit.
uint64_t total_memory_bytes();

/// Processors granted by the text of a cgroup v2 cpu.max file ("150000 100000" is 2); nothing for "max" or nonsense.
std::optional<int> parse_cgroup_cpu_max(std::string_view text);

}  // namespace deepinfer
