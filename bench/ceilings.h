// What this machine can do at most, measured in this process: the limits that kernels are compared with.
// Blocks for a second or so. One thread calls; the work is spread over threads of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deepinfer::bench {

struct MemoryCeilings {
  double read_gbps = 0;  // reading a buffer several times the last-level cache
  double copy_gbps = 0;  // memcpy of one, counted as bytes read plus bytes written
};

/// Best of several passes. n_threads >= 1.
MemoryCeilings measure_memory(int n_threads);

/// fp32 multiply-adds from registers with the vectors of an instruction set ("generic": the compiler's baseline without
/// fused forms, "avx2", "avx512"), two operations each. 0 for one that this machine does not have.
double measure_fma_gflops(std::string_view isa, int n_threads);

/// Reads a buffer larger than the caches, so that what they held before has to come from memory again.
class CacheEviction {
 public:
  CacheEviction();
  void run();

 private:
  std::vector<char> buffer_;
};

}  // namespace deepinfer::bench
