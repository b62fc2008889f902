#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

/// The small model of spec 16: valid as a whole, so that a backend can size itself from it.
ModelConfig small_config() {
  ModelConfig c;
  c.vocab_size = 512;
  c.hidden_size = 256;
  c.moe_intermediate_size = 128;
  c.n_layers = 12;
  c.n_heads = 8;
  c.head_dim = 64;
  c.rope_dim = 16;
  c.q_lora_rank = 96;
  c.o_lora_rank = 32;
  c.o_groups = 4;
  c.max_position_embeddings = 1 << 20;
  c.swiglu_limit = 10;
  c.rms_norm_eps = 1e-20f;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.n_routed_experts = 16;
  c.n_experts_per_token = 4;
  c.routed_scaling_factor = 1.5f;
  c.sliding_window = 8;
  c.compress_ratios = {0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1};
  c.kv_source_layer_ids = {2, 4, 6};
  c.index_source_layer_ids = {2, 4, 6, 8, 10};
  c.index_n_heads = 4;
  c.index_head_dim = 32;
  c.index_topk = 8;
  c.candidate_source_layer_id = 6;
  c.candidate_topk_blocks = 8;
  c.candidate_block_size = 2;
  c.hc_mult = 4;
  c.hc_sinkhorn_iters = 20;
  c.hc_eps = 1e-6f;
  c.engram_layer_ids = {1, 4};
  c.engram_num_embeddings = {2056, 2208};
  c.engram_max_ngram_size = 3;
  c.engram_vocab_size = 500;
  c.engram_n_heads = 2;
  c.engram_head_dim = 32;
  c.engram_pad_token_id = 2;
  c.engram_compressed_vocab_size = 512;
  return c;
}

std::vector<OpCase> all_cases(bool perf) {
  std::vector<OpCase> cases;
  add_linear_cases(cases, perf);
  add_mhc_cases(cases, perf);
  add_kv_cases(cases, perf);
  add_index_cases(cases, perf);
  add_attention_cases(cases, perf);
  add_moe_cases(cases, perf);
  return cases;
}

}  // namespace

std::vector<OpCase> contract_cases() { return all_cases(false); }
std::vector<OpCase> perf_cases() { return all_cases(true); }

OpCase new_case(const std::string& op, const std::string& variant, int32_t n_rows) {
  OpCase c;
  c.name = op + "/" + variant;
  c.op = op;
  c.n_rows = n_rows;
  c.config = small_config();
  c.limits = {n_rows, n_rows, 4096};
  return c;
}

uint64_t seed_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

std::vector<int32_t> slots_of(const std::vector<SequenceRows>& sequences) {
  std::vector<int32_t> slots;
  for (const SequenceRows& s : sequences) slots.insert(slots.end(), static_cast<size_t>(s.n), s.slot);
  return slots;
}

std::vector<int32_t> positions_of(const std::vector<SequenceRows>& sequences) {
  std::vector<int32_t> positions;
  for (const SequenceRows& s : sequences) {
    for (int32_t i = 0; i < s.n; ++i) positions.push_back(s.first + i);
  }
  return positions;
}

int32_t rows_of(const std::vector<SequenceRows>& sequences) {
  int32_t n = 0;
  for (const SequenceRows& s : sequences) n += s.n;
  return n;
}

int32_t slots_needed(const std::vector<SequenceRows>& sequences) {
  int32_t n = 0;
  for (const SequenceRows& s : sequences) n = std::max(n, s.slot + 1);
  return n;
}

int32_t context_of(const std::vector<SequenceRows>& sequences) {
  int32_t n = 0;
  for (const SequenceRows& s : sequences) n = std::max(n, s.first + s.n);
  return n;
}

std::vector<float> case_frequencies(int32_t rope_dim, Fill fill) {
  if (fill == Fill::kExact) return std::vector<float>(static_cast<size_t>(rope_dim / 2), 0.0f);
  const YarnParams yarn{.factor = 16, .beta_fast = 32, .beta_slow = 1, .original_max_position_embeddings = 65536};
  return rope_frequencies(rope_dim, 160000, &yarn);
}

HostPool::HostPool(Random& random, int32_t ratio, int32_t head_dim, int32_t index_dim, int32_t n_slots,
                   int32_t n_tokens) {
  // The source under test is the second of two, so that its planes do not start at offset 0.
  const kv::BlockLayout layout = kv::make_block_layout({3 - ratio, ratio}, head_dim, index_dim);
  const int32_t blocks_per_slot = (n_tokens + kv::kBlockTokens - 1) / kv::kBlockTokens;
  table.resize(static_cast<size_t>(n_slots) * static_cast<size_t>(blocks_per_slot));
  std::iota(table.begin(), table.end(), 0);
  for (size_t i = table.size(); i > 1; --i)
    std::swap(table[i - 1], table[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  bytes.assign(table.size() * static_cast<size_t>(layout.block_bytes), kPoison);
  view = {bytes.data(), layout.block_bytes, table.data(), blocks_per_slot, layout.sources[1]};
}

kv::GlobalView bind_pool(BoundCase& bound, const HostPool& pool) {
  kv::GlobalView view = pool.view;
  view.pool = bound.state(pool.bytes);
  view.block_table = bound.input(pool.table);
  return view;
}

}  // namespace deepinfer::bench
