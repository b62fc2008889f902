// Cases of the query path, the window KV and the compressor.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

std::vector<Bf16> path_rows(Random& random, int64_t n_rows, int64_t dim, Fill fill) {
  return fill == Fill::kExact ? sign_rows(random, n_rows, dim) : bf16_rows(random, n_rows, dim, fill);
}

/// First matrix of a path with a norm behind it: exact cases keep rows of one magnitude.
HostFp8Matrix path_matrix(Random& random, int64_t n_out, int64_t n_in, Fill fill) {
  return fill == Fill::kExact ? fp8_selector(random, n_out, n_in) : fp8_matrix(random, n_out, n_in, fill);
}

struct QueryShape {
  std::vector<SequenceRows> sequences;
  int64_t dim;
  int64_t rank;
  int32_t n_heads;
  int32_t head_dim;
  int32_t rope_dim;
};

OpCase query(const QueryShape& s, Fill fill) {
  const int32_t n_rows = rows_of(s.sequences);
  const int64_t n_out = static_cast<int64_t>(s.n_heads) * s.head_dim;
  OpCase c = new_case("query",
                      fill_name(fill) + "_" + std::to_string(n_rows) + "x" + std::to_string(s.dim) + "x" +
                          std::to_string(s.rank) + "x" + std::to_string(s.n_heads) + "x" + std::to_string(s.head_dim),
                      n_rows);
  c.shape = "rows x dim x rank x heads x head_dim";
  c.types = "fp8*fp8->bf16";
  c.flops = 2.0 * n_rows * static_cast<double>(s.rank * (s.dim + n_out));
  c.bytes =
      static_cast<double>(s.rank * (s.dim + n_out)) + n_rows * static_cast<double>(s.dim + 3 * s.rank + 2 * n_out);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.q_lora_rank = static_cast<int32_t>(s.rank);
  c.config.n_heads = s.n_heads;
  c.config.head_dim = s.head_dim;
  c.config.rope_dim = s.rope_dim;
  c.limits.n_context_max = context_of(s.sequences);
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::QueryArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(s.sequences), positions_of(s.sequences)));
    args.x = b.input(quantized(path_rows(random, n_rows, s.dim, fill), s.dim));
    args.wq_a = b.weight(path_matrix(random, s.rank, s.dim, fill));
    args.q_norm = b.weight(norm_weights(random, s.rank, fill));
    args.rms_eps = 1e-20f;
    args.wq_b = b.weight(fp8_matrix(random, n_out, s.rank, fill));
    args.n_heads = s.n_heads;
    args.head_dim = s.head_dim;
    args.rope = {b.weight(case_frequencies(s.rope_dim, fill)), s.rope_dim / 2};
    const bool exact = fill == Fill::kExact;
    const Tolerance one_answer = bitwise("selected signs, exact norm factor, exact sums, no rotation");
    args.low = b.output<Bf16>("low", OutputType::kBf16, n_rows, s.rank,
                              exact ? one_answer : chain(0x1p-7, "bf16 linear, norm, bf16"));
    args.low_quantized = b.quantized_output("low_quantized", n_rows, s.rank,
                                            exact ? one_answer : chain(0x1p-3, "bf16 linear, norm, FP8"));
    args.q = b.output<Bf16>("q", OutputType::kBf16, n_rows, n_out,
                            exact ? one_answer : chain(0x1p-6, "bf16, norm, FP8, bf16, rotation"));
    b.step = [&b, &rows, args](RowRange r) -> Status {
      ops::QueryArgs part = args;
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      part.x = from_row(args.x, r.begin);
      part.low += r.begin * args.wq_a.n_out;
      part.low_quantized = from_row(args.low_quantized, r.begin);
      part.q += r.begin * args.wq_b.n_out;
      return b.backend().query(part);
    };
  };
  return c;
}

struct WindowShape {
  std::vector<SequenceRows> sequences;
  int64_t dim;
  int32_t head_dim;
  int32_t rope_dim;
};

OpCase window_kv(const WindowShape& s, Fill fill) {
  const int32_t n_rows = rows_of(s.sequences);
  OpCase c = new_case(
      "window_kv",
      fill_name(fill) + "_" + std::to_string(n_rows) + "x" + std::to_string(s.dim) + "x" + std::to_string(s.head_dim),
      n_rows);
  c.shape = "rows x dim x head_dim";
  c.types = "fp8*fp8->fp8 rows";
  c.flops = 2.0 * n_rows * static_cast<double>(s.dim) * s.head_dim;
  c.bytes = static_cast<double>(s.dim) * s.head_dim + n_rows * static_cast<double>(s.dim + s.head_dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.head_dim = s.head_dim;
  c.config.rope_dim = s.rope_dim;
  c.limits.n_context_max = context_of(s.sequences);
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::WindowKvArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(s.sequences), positions_of(s.sequences)));
    args.x = b.input(quantized(path_rows(random, n_rows, s.dim, fill), s.dim));
    args.wkv = b.weight(path_matrix(random, s.head_dim, s.dim, fill));
    args.kv_norm = b.weight(norm_weights(random, s.head_dim, fill));
    args.rms_eps = 1e-20f;
    args.rope = {b.weight(case_frequencies(s.rope_dim, fill)), s.rope_dim / 2};
    args.out.head_dim = s.head_dim;
    const Tolerance tolerance = fill == Fill::kExact ? bitwise("selected signs, exact norm factor, no rotation")
                                                     : chain(0x1p-3, "bf16 linear, norm, rotation, FP8");
    args.out.base = b.output<uint8_t>("rows", OutputType::kFp8Rows, n_rows, s.head_dim, tolerance);
    b.step = [&b, &rows, args](RowRange r) -> Status {
      ops::WindowKvArgs part = args;
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      part.x = from_row(args.x, r.begin);
      part.out.base = args.out.row(r.begin).values;
      return b.backend().window_kv(part);
    };
  };
  return c;
}

OpCase window_commit(const std::vector<SequenceRows>& sequences, int32_t ring_rows, int32_t head_dim) {
  const int32_t n_rows = rows_of(sequences);
  const int32_t n_slots = slots_needed(sequences);
  OpCase c = new_case(
      "window_commit",
      "exact_" + std::to_string(n_rows) + "x" + std::to_string(ring_rows) + "x" + std::to_string(head_dim), n_rows);
  c.shape = "rows x ring x head_dim";
  c.types = "bytes";
  c.bytes = 2.0 * n_rows * static_cast<double>(kv::window_row_bytes(head_dim));
  c.config.head_dim = head_dim;
  c.limits.n_context_max = context_of(sequences);
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const int64_t bytes = kv::window_row_bytes(head_dim);
    std::vector<uint8_t> step(static_cast<size_t>(n_rows * bytes));
    std::vector<uint8_t> ring(static_cast<size_t>(n_slots * ring_rows * bytes));
    for (uint8_t& byte : step) byte = static_cast<uint8_t>(random.next());
    for (uint8_t& byte : ring) byte = static_cast<uint8_t>(random.next());
    ops::WindowCommitArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(sequences), positions_of(sequences)));
    args.step = {const_cast<uint8_t*>(b.input(step)), head_dim};
    args.ring = {b.state(ring), ring_rows, head_dim};
    b.watch(args.ring.base, {"ring", OutputType::kBytes, n_slots * ring_rows, bytes, {}, bitwise("copies")});
    b.step = [&b, &rows, args](RowRange r) -> Status {
      ops::WindowCommitArgs part = args;
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      part.step.base = args.step.row(r.begin).values;
      return b.backend().window_commit(part);
    };
  };
  return c;
}

struct CompressShape {
  std::vector<SequenceRows> sequences;
  int32_t ratio;
  int64_t dim;
  int32_t head_dim;
  int32_t index_dim;
  int32_t rope_dim;
};

constexpr int32_t kTailRows = 8;
constexpr int64_t kGateColumns = 32;  // exact cases: the last columns of x drive the gate alone
constexpr float kGateWeight = 96;     // two z differ by 192 (or 96 from the tail's 0): one weight is 1, the other 0

/// Exact: signs; the gate columns turn over with the position's parity, so that one token of a pair always wins.
std::vector<Bf16> compress_rows(Random& random, const CompressShape& s, Fill fill) {
  const std::vector<int32_t> position = positions_of(s.sequences);
  const auto n_rows = static_cast<int64_t>(position.size());
  if (fill == Fill::kWide) return bf16_rows(random, n_rows, s.dim, fill);
  std::vector<Bf16> rows = sign_rows(random, n_rows, s.dim, 0, 0);
  const std::vector<Bf16> gate = sign_rows(random, 1, kGateColumns, 0, 0);
  for (int64_t t = 0; t < n_rows; ++t) {
    for (int64_t i = 0; i < kGateColumns; ++i) {
      const float sign = position[static_cast<size_t>(t)] % 2 == 0 ? 1.0f : -1.0f;
      rows[static_cast<size_t>((t + 1) * s.dim - kGateColumns + i)] =
          to_bf16(sign * to_float(gate[static_cast<size_t>(i)]));
    }
  }
  return rows;
}

struct CompressWeights {
  HostBf16Matrix wkv, wgate, wk;
  std::vector<Bf16> norm, k_norm;
};

/// Exact: norm weights are 1 on the half of the channels that the index key is selected from.
CompressWeights compress_weights(Random& random, const CompressShape& s, Fill fill) {
  CompressWeights w;
  w.norm = norm_weights(random, s.head_dim, fill);
  w.k_norm = norm_weights(random, s.index_dim, fill);
  if (fill == Fill::kWide) {
    w.wkv = bf16_matrix(random, s.head_dim, s.dim, fill);
    w.wgate = bf16_matrix(random, s.head_dim, s.dim, fill);
    w.wk = bf16_matrix(random, s.index_dim, s.head_dim, fill);
    return w;
  }
  std::fill_n(w.norm.begin(), s.head_dim / 2, to_bf16(1.0f));
  w.wkv = bf16_selector(random, s.head_dim, s.dim, {0, s.dim - kGateColumns});
  w.wgate = bf16_selector(random, s.head_dim, s.dim, {s.dim - kGateColumns, s.dim}, kGateWeight);
  w.wk = bf16_selector(random, s.index_dim, s.head_dim, {0, s.head_dim / 2});
  return w;
}

struct Entry {
  int32_t slot;
  int32_t index;
};

/// Entries that the step completes, in row order.
std::vector<Entry> completed(const CompressShape& s) {
  std::vector<Entry> entries;
  for (const SequenceRows& q : s.sequences) {
    for (int32_t p = q.first; p < q.first + q.n; ++p) {
      if ((p + 1) % s.ratio == 0) entries.push_back({q.slot, (p + 1) / s.ratio - 1});
    }
  }
  return entries;
}

/// Tail of the token before each sequence's first row; the rest is poison.
std::vector<float> initial_tail(Random& random, const CompressShape& s, Fill fill) {
  const int64_t row = 2 * int64_t{s.head_dim};
  std::vector<float> tail(static_cast<size_t>(slots_needed(s.sequences) * kTailRows * row));
  std::memset(tail.data(), kPoison, tail.size() * sizeof(float));
  const kv::TailView view{tail.data(), kTailRows, s.head_dim};
  for (const SequenceRows& q : s.sequences) {
    if (q.first == 0) continue;
    for (int64_t i = 0; i < s.head_dim; ++i) {
      view.c(q.slot, q.first - 1)[i] = fill == Fill::kExact ? random.sign() : random.normal();
      view.z(q.slot, q.first - 1)[i] = fill == Fill::kExact ? 0.0f : random.normal();
    }
  }
  return tail;
}

/// Tail rows that a later step may need as a partner (even positions still held), [c, z] each.
void watch_tail(BoundCase& b, const CompressShape& s, const kv::TailView& tail, Tolerance tolerance) {
  std::vector<const float*> kept;
  for (const SequenceRows& q : s.sequences) {
    for (int32_t p = std::max(q.first, q.first + q.n - kTailRows); p < q.first + q.n; ++p) {
      if (p % 2 == 0) kept.push_back(tail.c(q.slot, p));
    }
  }
  const int64_t width = 2 * int64_t{s.head_dim};
  b.derive({"tail", OutputType::kF32, static_cast<int64_t>(kept.size()), width, {}, std::move(tolerance)},
           [kept, width](const BoundCase::Reader& read, Output& out) {
             for (const float* row : kept) {
               const std::vector<uint8_t> bytes = read(row, width * int64_t{sizeof(float)});
               out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
             }
           });
}

/// The completed entries and keys, and everything else in the pool, which must stay as it was.
void watch_pool(BoundCase& b, const CompressShape& s, const HostPool& host, const kv::GlobalView& pool, Fill fill) {
  const std::vector<Entry> entries = completed(s);
  const auto n_entries = static_cast<int64_t>(entries.size());
  const auto n_bytes = static_cast<int64_t>(host.bytes.size());
  // Host view over a copy of the pool, through the same addressing helper.
  const auto view_of = [&host](std::vector<uint8_t>& bytes) {
    kv::GlobalView view = host.view;
    view.pool = bytes.data();
    return view;
  };
  const bool exact = fill == Fill::kExact;
  const Tolerance one_answer = bitwise("one token of a pair wins outright, exact norm factors, no rotation");
  const auto append = [](Output& out, const kv::PackedRow& row, int64_t n_values, int64_t n_scales) {
    out.bytes.insert(out.bytes.end(), row.values, row.values + n_values);
    out.bytes.insert(out.bytes.end(), row.scales, row.scales + n_scales);
  };
  b.derive({"entries",
            OutputType::kNvfp4Rows,
            n_entries,
            s.head_dim,
            {},
            exact ? one_answer : chain(0.5, "latent in bf16, rotation, FP4 with E4M3 scale: a step is up to a third")},
           [=](const BoundCase::Reader& read, Output& out) {
             std::vector<uint8_t> bytes = read(pool.pool, n_bytes);
             for (const Entry& e : entries)
               append(out, view_of(bytes).value(e.slot, e.index), s.head_dim / 2, s.head_dim / 16);
           });
  b.derive(
      {"keys",
       OutputType::kMxfp4Rows,
       n_entries,
       s.index_dim,
       {},
       exact ? one_answer : chain(0.5, "latent, key linear, norm, rotation in bf16, FP4: a step is up to a third")},
      [=](const BoundCase::Reader& read, Output& out) {
        std::vector<uint8_t> bytes = read(pool.pool, n_bytes);
        for (const Entry& e : entries)
          append(out, view_of(bytes).index_key(e.slot, e.index), s.index_dim / 2, s.index_dim / 32);
      });
  b.derive({"rest of the pool", OutputType::kBytes, 1, n_bytes, {}, bitwise("not this step's")},
           [=](const BoundCase::Reader& read, Output& out) {
             out.bytes = read(pool.pool, n_bytes);
             const kv::GlobalView view = view_of(out.bytes);
             for (const Entry& e : entries) {
               const kv::PackedRow value = view.value(e.slot, e.index);
               std::fill_n(value.values, s.head_dim / 2, uint8_t{0});
               std::fill_n(value.scales, s.head_dim / 16, uint8_t{0});
               const kv::PackedRow key = view.index_key(e.slot, e.index);
               std::fill_n(key.values, s.index_dim / 2, uint8_t{0});
               std::fill_n(key.scales, s.index_dim / 32, uint8_t{0});
             }
           });
}

OpCase compress(const CompressShape& s, Fill fill, const std::string& variant) {
  const int32_t n_rows = rows_of(s.sequences);
  OpCase c = new_case("compress",
                      fill_name(fill) + "_r" + std::to_string(s.ratio) + "_" + variant + "_" + std::to_string(n_rows) +
                          "x" + std::to_string(s.dim) + "x" + std::to_string(s.head_dim),
                      n_rows);
  c.shape = "rows x dim x head_dim";
  c.types = "bf16*bf16->f32, fp4 rows";
  c.flops =
      2.0 * n_rows * static_cast<double>(s.head_dim) * (static_cast<double>(s.dim) * s.ratio + s.index_dim / s.ratio);
  c.bytes =
      2.0 * s.head_dim * static_cast<double>(s.dim * s.ratio + s.index_dim) + 2.0 * n_rows * static_cast<double>(s.dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.head_dim = s.head_dim;
  c.config.index_head_dim = s.index_dim;
  c.config.rope_dim = s.rope_dim;
  c.limits.n_context_max = context_of(s.sequences);
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::CompressArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(s.sequences), positions_of(s.sequences)));
    const std::vector<Bf16> x = compress_rows(random, s, fill);
    CompressWeights w = compress_weights(random, s, fill);
    Tolerance tail_tolerance = bitwise("sums with one term");
    if (fill == Fill::kWide && b.with_checks()) {
      tail_tolerance = fp32_sum(s.dim, {}, {});
      float x_max = 0;
      for (const float norm : row_norms(x, s.dim)) x_max = std::max(x_max, norm);
      float w_max = 0;
      for (const float norm : row_norms(w.wkv)) w_max = std::max(w_max, norm);
      for (const float norm : row_norms(w.wgate)) w_max = std::max(w_max, norm);
      tail_tolerance.sum_error *= static_cast<double>(x_max) * static_cast<double>(w_max);
    }
    args.x = b.input(x);
    args.wkv = b.weight(std::move(w.wkv));
    if (s.ratio == 2) args.wgate = b.weight(std::move(w.wgate));
    args.norm = b.weight(std::move(w.norm));
    args.wk = b.weight(std::move(w.wk));
    args.k_norm = b.weight(std::move(w.k_norm));
    args.rms_eps = 1e-20f;
    args.rope = {b.weight(case_frequencies(s.rope_dim, fill)), s.rope_dim / 2};
    if (s.ratio == 2) {
      args.tail = {b.state(initial_tail(random, s, fill)), kTailRows, s.head_dim};
      watch_tail(b, s, args.tail, tail_tolerance);
    }
    const auto host = std::make_shared<HostPool>(random, s.ratio, s.head_dim, s.index_dim, slots_needed(s.sequences),
                                                 context_of(s.sequences));
    b.keep(host);
    args.out = bind_pool(b, *host);
    if (b.with_checks()) watch_pool(b, s, *host, args.out, fill);
    b.step = [&b, &rows, args](RowRange r) -> Status {
      ops::CompressArgs part = args;
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      part.x += r.begin * args.wkv.n_in;
      return b.backend().compress(part);
    };
  };
  return c;
}

}  // namespace

void add_kv_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t n : {1, 8, 64}) cases.push_back(query({{{0, 4096, n}}, 5120, 1280, 64, 512, 64}, Fill::kWide));
    for (const int32_t n : {1, 64, 512}) {
      cases.push_back(window_kv({{{0, 4096, n}}, 5120, 512, 64}, Fill::kWide));
      cases.push_back(compress({{{0, 4095, n}}, 2, 5120, 512, 128, 64}, Fill::kWide, "prefill"));
    }
    cases.push_back(compress({{{0, 4096, 64}}, 1, 5120, 512, 128, 64}, Fill::kWide, "prefill"));
    cases.push_back(window_commit({{0, 4096, 512}}, 128, 512));
    return;
  }
  const std::vector<SequenceRows> mixed = {{1, 0, 5}, {0, 1000003, 4}, {3, 17, 1}, {2, 255, 9}};
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    cases.push_back(query({mixed, 96, 160, 3, 32, 16}, fill));
    cases.push_back(query({{{0, 7, 1}, {1, 99, 6}}, 160, 96, 5, 64, 32}, fill));
    cases.push_back(query({{{0, 70000, 2}}, 512, 1280, 4, 512, 64}, fill));
    cases.push_back(window_kv({mixed, 96, 64, 16}, fill));
    cases.push_back(window_kv({{{0, 7, 3}}, 160, 96, 32}, fill));
    cases.push_back(window_kv({{{0, 70000, 3}}, 5120, 512, 64}, fill));
    // Odd and even starts and ends; a block boundary inside; several sequences; one row alone, open or closing.
    for (const int32_t ratio : {1, 2}) {
      cases.push_back(compress({{{2, 0, 6}, {0, 3, 4}, {1, 250, 13}, {3, 8, 1}, {4, 9, 1}}, ratio, 160, 64, 32, 16},
                               fill, "mixed"));
      cases.push_back(compress({{{0, 509, 23}}, ratio, 96, 96, 64, 32}, fill, "long"));
      cases.push_back(compress({{{0, 511, 2}, {1, 1022, 3}}, ratio, 512, 512, 128, 64}, fill, "released"));
    }
  }
  cases.push_back(window_commit({{1, 0, 5}, {0, 6, 4}, {2, 40, 1}}, 8, 64));
  cases.push_back(window_commit({{1, 3, 29}, {0, 7, 8}}, 8, 96));  // more rows than the ring
  cases.push_back(window_commit({{0, 120, 20}}, 128, 512));
}

}  // namespace deepinfer::bench
