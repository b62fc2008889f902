#include "platform/cpu_features.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace deepinfer {
namespace {

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// The number at the start of text, after blanks; moves text past it.
std::optional<uint64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  if (!text) return std::nullopt;
  std::string_view view = *text;
  return take_number(view);
}

/// Directories of this process's cgroup v2 and its ancestors, innermost first. A container's own view has only the
/// root.
std::vector<std::string> cgroup_v2_directories() {
  std::vector<std::string> directories;
  const std::string text = read_text("/proc/self/cgroup").value_or("");
  size_t begin = text.rfind("0::", 0) == 0 ? 0 : text.find("\n0::");
  if (begin != std::string::npos) {
    begin = text.find("0::", begin) + 3;
    std::string path = text.substr(begin, text.find('\n', begin) - begin);
    while (path.size() > 1) {
      directories.push_back("/sys/fs/cgroup" + path);
      path.erase(path.rfind('/'));
    }
  }
  directories.emplace_back("/sys/fs/cgroup");
  return directories;
}

int ceil_div_clamped(uint64_t quota, uint64_t period) {
  const uint64_t cpus = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::clamp<uint64_t>(cpus, 1, std::numeric_limits<int>::max()));
}

int affinity_cpus() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  // The kernel refuses a mask smaller than its own, so grow until it fits.
  for (int n_cpus_max = 1024; n_cpus_max <= 1 << 16; n_cpus_max *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(n_cpus_max));
    if (mask == nullptr) break;
    const size_t mask_bytes = CPU_ALLOC_SIZE(static_cast<size_t>(n_cpus_max));
    const bool fits = sched_getaffinity(0, mask_bytes, mask) == 0;
    const int count = fits ? CPU_COUNT_S(mask_bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return count;
  }
  return static_cast<int>(std::max(online, 1L));
}

#if defined(__x86_64__)
uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}
#endif

}  // namespace

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
#if defined(__x86_64__)
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
  const auto bit = [](uint32_t word, int i) { return ((word >> i) & 1u) != 0; };
  if (!bit(c, 27)) return features;  // OSXSAVE: xgetbv would fault
  const uint64_t xcr0 = read_xcr0();
  const bool os_avx = (xcr0 & 0x6) == 0x6;                 // xmm, ymm
  const bool os_avx512 = os_avx && (xcr0 & 0xe0) == 0xe0;  // masks, upper zmm
  const bool os_amx = (xcr0 & 0x60000) == 0x60000;         // tile configuration, tiles
  features.fma = os_avx && bit(c, 12);
  features.f16c = os_avx && bit(c, 29);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
  const uint32_t n_subleaves = a;
  features.avx2 = os_avx && bit(b, 5);
  features.avx512f = os_avx512 && bit(b, 16);
  features.avx512bw = os_avx512 && bit(b, 30);
  features.avx512vl = os_avx512 && bit(b, 31);
  features.avx512vnni = os_avx512 && bit(c, 11);
  features.amx_bf16 = os_amx && bit(d, 24) && bit(d, 22);
  features.amx_int8 = os_amx && bit(d, 24) && bit(d, 25);
  if (n_subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) features.avx512bf16 = os_avx512 && bit(a, 5);
#endif
  return features;
}

std::string to_string(const CpuFeatures& features) {
  std::string text;
  const auto add = [&text](bool present, const char* name) {
    if (!present) return;
    if (!text.empty()) text += ' ';
    text += name;
  };
  add(features.avx2, "avx2");
  add(features.fma, "fma");
  add(features.f16c, "f16c");
  add(features.avx512f, "avx512f");
  add(features.avx512bw, "avx512bw");
  add(features.avx512vl, "avx512vl");
  add(features.avx512vnni, "avx512vnni");
  add(features.avx512bf16, "avx512bf16");
  add(features.amx_bf16, "amx_bf16");
  add(features.amx_int8, "amx_int8");
  return text.empty() ? "none" : text;
}

std::string cpu_model_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "unknown";
}

std::optional<int> parse_cgroup_cpu_max(std::string_view text) {
  const std::optional<uint64_t> quota = take_number(text);  // "max" is no number
  if (!quota) return std::nullopt;
  const std::optional<uint64_t> period = take_number(text);
  if (!period || *period == 0) return std::nullopt;
  return ceil_div_clamped(*quota, *period);
}

int available_cpus() {
  int cpus = affinity_cpus();
  for (const std::string& directory : cgroup_v2_directories()) {
    const std::optional<int> granted = parse_cgroup_cpu_max(read_text(directory + "/cpu.max").value_or(""));
    if (granted) cpus = std::min(cpus, *granted);
  }
  // cgroup v1: a quota of -1 is no number, hence no limit.
  const auto quota = read_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto period = read_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota && period && *period != 0) cpus = std::min(cpus, ceil_div_clamped(*quota, *period));
  return std::max(cpus, 1);
}

uint64_t total_memory_bytes() {
  uint64_t bytes = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) *
                   static_cast<uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
  for (const std::string& directory : cgroup_v2_directories()) {
    bytes = std::min(bytes, read_number(directory + "/memory.max").value_or(bytes));
  }
  return std::min(bytes, read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes").value_or(bytes));
}

}  // namespace deepinfer
