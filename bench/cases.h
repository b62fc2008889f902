// Inside the case table: what the files of the operation families share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/op_case.h"
#include "kv/layout.h"
#include "numerics/rope.h"

namespace deepinfer::bench {

/// Consecutive rows of one sequence in a step.
struct SequenceRows {
  int32_t slot = 0;
  int32_t first = 0;  // position of its first row
  int32_t n = 0;
};

std::vector<int32_t> slots_of(const std::vector<SequenceRows>& sequences);
std::vector<int32_t> positions_of(const std::vector<SequenceRows>& sequences);
int32_t rows_of(const std::vector<SequenceRows>& sequences);
int32_t slots_needed(const std::vector<SequenceRows>& sequences);
int32_t context_of(const std::vector<SequenceRows>& sequences);  // largest position + 1

/// A case with a valid small config and limits for n_rows rows, to be completed.
OpCase new_case(const std::string& op, const std::string& variant, int32_t n_rows);

/// A different seed for every case name.
uint64_t seed_of(const std::string& name);

inline std::string fill_name(Fill fill) { return fill == Fill::kExact ? "exact" : "wide"; }

/// Frequencies of the released model's compressed layers; all zero (the identity) for exact cases, where every
/// position then has one right answer.
std::vector<float> case_frequencies(int32_t rope_dim, Fill fill);

/// Global KV of one source: a pool of shuffled blocks on the host, poisoned, to be filled through its view.
struct HostPool {
  HostPool(Random& random, int32_t ratio, int32_t head_dim, int32_t index_dim, int32_t n_slots, int32_t n_tokens);
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  std::vector<uint8_t> bytes;
  std::vector<int32_t> table;
  kv::GlobalView view;  // of this host memory
};

/// The same pool on the backend, as memory the operation may change.
kv::GlobalView bind_pool(BoundCase& bound, const HostPool& pool);

void add_linear_cases(std::vector<OpCase>& cases, bool perf);     // embed, linear_*, output_projection, head
void add_mhc_cases(std::vector<OpCase>& cases, bool perf);        // mhc_expand, mhc_site, engram
void add_kv_cases(std::vector<OpCase>& cases, bool perf);         // query, window_kv, window_commit, compress
void add_index_cases(std::vector<OpCase>& cases, bool perf);      // index_select
void add_attention_cases(std::vector<OpCase>& cases, bool perf);  // attention
void add_moe_cases(std::vector<OpCase>& cases, bool perf);        // router, moe

}  // namespace deepinfer::bench
