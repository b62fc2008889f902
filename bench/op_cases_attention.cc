// Cases of sparse attention over the window and the selected compressed entries.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "bench/cases.h"
#include "numerics/block_quant.h"
#include "numerics/e2m1.h"

namespace deepinfer::bench {
namespace {

enum class Sink { kUsual, kDominating };

struct AttentionShape {
  std::vector<SequenceRows> sequences;
  int32_t n_heads;
  int32_t head_dim;
  int32_t rope_dim;
  int32_t window;
  int32_t ring_rows;
  int32_t topk = 0;
  int32_t ratio = 1;
  bool with_floor = false;
  Sink sink = Sink::kUsual;
  int32_t n_selected_max = 1 << 30;  // of a row, for rows with few or no entries
};

// Exact cases. Scores are integers times kExactScale, so probabilities are 1 for the slots that share the maximum and
// exp(-256) = 0 for all others. Queries are zero on the second half of the channels; keys repeat a few patterns on the
// first half, so that several slots share a maximum, and differ on the second half, so that their values do not.
constexpr float kExactScale = 256;
constexpr int64_t kPatterns = 5;

/// n vectors of small integers (exact) or of unit size (wide), for keys = values.
std::vector<Bf16> latents(Random& random, int64_t n, int64_t dim, Fill fill) {
  std::vector<Bf16> rows(static_cast<size_t>(n * dim));
  if (fill == Fill::kWide) {
    for (int64_t i = 0; i < n * dim; ++i) {
      rows[static_cast<size_t>(i)] = to_bf16(random.normal() * (random.one_in(100) ? 4.0f : 1.0f));
    }
    return rows;
  }
  Random pattern_random(97);  // the same patterns for window rows and entries
  std::vector<Bf16> patterns(static_cast<size_t>(kPatterns * dim / 2));
  for (Bf16& value : patterns) value = to_bf16(static_cast<float>(pattern_random.between(-2, 2)));
  for (int64_t r = 0; r < n; ++r) {
    const int64_t pattern = random.below(kPatterns);
    for (int64_t c = 0; c < dim; ++c) {
      rows[static_cast<size_t>(r * dim + c)] = c < dim / 2 ? patterns[static_cast<size_t>(pattern * dim / 2 + c)]
                                                           : to_bf16(static_cast<float>(random.between(-3, 3)));
    }
  }
  return rows;
}

std::vector<Bf16> queries(Random& random, const AttentionShape& s, int64_t n_rows, Fill fill) {
  const int64_t dim = s.head_dim;
  std::vector<Bf16> q(static_cast<size_t>(n_rows * s.n_heads * dim));
  float sharpness = 1;
  for (size_t i = 0; i < q.size(); ++i) {
    const auto c = static_cast<int64_t>(i) % dim;
    if (fill == Fill::kExact) {
      q[i] = to_bf16(c < dim / 2 ? static_cast<float>(random.between(-2, 2)) : 0.0f);
      continue;
    }
    if (c == 0) sharpness = random.power_of_two(-2, 3);  // from nearly uniform to nearly one-hot
    q[i] = to_bf16(random.normal() * sharpness);
  }
  return q;
}

std::vector<uint8_t> packed_window_rows(const std::vector<Bf16>& rows, int64_t dim) {
  const int64_t n = static_cast<int64_t>(rows.size()) / dim;
  std::vector<uint8_t> bytes(static_cast<size_t>(n * kv::window_row_bytes(static_cast<int32_t>(dim))));
  const kv::WindowRows view{bytes.data(), static_cast<int32_t>(dim)};
  for (int64_t r = 0; r < n; ++r)
    quantize_fp8_block32(rows.data() + r * dim, dim, view.row(r).values, view.row(r).scales);
  return bytes;
}

/// Rings with the positions that the step's rows can reach before the step; everything else is poison.
std::vector<uint8_t> rings(Random& random, const AttentionShape& s, const std::vector<int32_t>& floor, Fill fill) {
  const int64_t bytes = kv::window_row_bytes(s.head_dim);
  std::vector<uint8_t> ring(static_cast<size_t>(slots_needed(s.sequences) * s.ring_rows * bytes), kPoison);
  const kv::RingView view{ring.data(), s.ring_rows, s.head_dim};
  size_t row = 0;
  for (const SequenceRows& q : s.sequences) {
    int32_t lowest = floor[row];
    for (int32_t i = 0; i < q.n; ++i) lowest = std::min(lowest, floor[row + static_cast<size_t>(i)]);
    row += static_cast<size_t>(q.n);
    for (int32_t p = std::max(lowest, q.first - s.window + 1); p < q.first; ++p) {
      const std::vector<uint8_t> packed = packed_window_rows(latents(random, 1, s.head_dim, fill), s.head_dim);
      std::copy(packed.begin(), packed.end(), view.row(q.slot, p).values);
    }
  }
  return ring;
}

/// First readable position of each row: 0, or somewhere inside the window, the row's own position at the latest.
std::vector<int32_t> floors(Random& random, const AttentionShape& s) {
  std::vector<int32_t> floor;
  for (const SequenceRows& q : s.sequences) {
    const auto first = static_cast<int32_t>(std::max<int64_t>(0, q.first - random.below(s.window)));
    for (int32_t i = 0; i < q.n; ++i) floor.push_back(s.with_floor ? std::min(first + i / 2, q.first + i) : 0);
  }
  return floor;
}

/// Per row: some of its visible entries, ascending, then -1. Entries that are never selected stay poison.
std::vector<int32_t> selections(Random& random, const AttentionShape& s) {
  std::vector<int32_t> selected;
  for (const int32_t position : positions_of(s.sequences)) {
    const int32_t visible = (position + 1) / s.ratio;
    const int32_t n_max = std::min({s.topk, visible, s.n_selected_max});
    int32_t wanted = random.one_in(3) ? static_cast<int32_t>(random.below(n_max + 1)) : n_max;
    std::vector<int32_t> row;
    for (int32_t j = 0; j < visible && wanted > 0; ++j) {
      if (random.below(visible - j) >= wanted) continue;
      row.push_back(j);
      --wanted;
    }
    row.resize(static_cast<size_t>(s.topk), -1);
    selected.insert(selected.end(), row.begin(), row.end());
  }
  return selected;
}

void write_entries(Random& random, const AttentionShape& s, const std::vector<int32_t>& selected, Fill fill,
                   const kv::GlobalView& view) {
  const std::vector<int32_t> slot = slots_of(s.sequences);
  for (size_t i = 0; i < selected.size(); ++i) {
    if (selected[i] < 0) continue;
    const kv::PackedRow row = view.value(slot[i / static_cast<size_t>(s.topk)], selected[i]);
    if (row.scales[0] != kPoison) continue;  // written for an earlier row
    const std::vector<Bf16> latent = latents(random, 1, s.head_dim, fill);
    if (fill == Fill::kWide) {
      quantize_nvfp4_block16(latent.data(), s.head_dim, row.values, row.scales);
    } else {  // scale 1: the integers themselves
      std::fill_n(row.scales, s.head_dim / 16, uint8_t{0x38});
      for (int64_t c = 0; c < s.head_dim; c += 2) {
        row.values[c / 2] = pack_e2m1(float_to_e2m1(to_float(latent[static_cast<size_t>(c)])),
                                      float_to_e2m1(to_float(latent[static_cast<size_t>(c + 1)])));
      }
    }
  }
}

std::vector<float> sinks(Random& random, const AttentionShape& s, Fill fill) {
  std::vector<float> sink(static_cast<size_t>(s.n_heads));
  for (float& value : sink) {
    if (fill == Fill::kExact) {  // wins, vanishes, or adds exactly 1
      value = s.sink == Sink::kDominating ? 1e30f : kExactScale * static_cast<float>(random.between(-8, 8));
    } else {
      value = s.sink == Sink::kDominating ? 20 + random.normal() : 2 * random.normal();
    }
  }
  return sink;
}

/// Window slots and selected entries over all rows: what the operation must read.
double slots_read(const AttentionShape& s) {
  double n = 0;
  for (const int32_t position : positions_of(s.sequences))
    n += std::min(s.window, position + 1) + std::min(s.topk, (position + 1) / s.ratio);
  return n;
}

void bind_compressed(BoundCase& b, Random& random, const AttentionShape& s, Fill fill, ops::AttentionArgs& args) {
  const std::vector<int32_t> selected = selections(random, s);
  const HostPool pool(random, s.ratio, s.head_dim, 32, slots_needed(s.sequences), context_of(s.sequences));
  write_entries(random, s, selected, fill, pool.view);
  args.topk = s.topk;
  args.selected = b.input(selected);
  args.global = bind_pool(b, pool);
}

OpCase attention(const AttentionShape& s, Fill fill, const std::string& variant) {
  const int32_t n_rows = rows_of(s.sequences);
  const int64_t width = static_cast<int64_t>(s.n_heads) * s.head_dim;
  OpCase c = new_case("attention",
                      fill_name(fill) + "_" + variant + "_" + std::to_string(n_rows) + "x" + std::to_string(s.n_heads) +
                          "x" + std::to_string(s.head_dim) + "_w" + std::to_string(s.window) + "_k" +
                          std::to_string(s.topk) + "_context" + std::to_string(context_of(s.sequences)),
                      n_rows);
  c.shape = "rows x heads x head_dim, window " + std::to_string(s.window) + ", selected " + std::to_string(s.topk);
  c.types = "bf16*(fp8|fp4)->bf16";
  c.flops = 4.0 * static_cast<double>(width) * slots_read(s);
  c.bytes = 4.0 * n_rows * static_cast<double>(width) +
            slots_read(s) * static_cast<double>(s.head_dim) * (s.topk > 0 ? 0.65 : 1.03);
  c.config.n_heads = s.n_heads;
  c.config.head_dim = s.head_dim;
  c.config.rope_dim = s.rope_dim;
  c.config.sliding_window = s.window;
  c.config.index_topk = std::max(s.topk, 1);
  c.limits.n_context_max = context_of(s.sequences);
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::AttentionArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(s.sequences), positions_of(s.sequences)));
    const std::vector<int32_t> floor = floors(random, s);
    if (s.with_floor) args.window_floor = b.input(floor);
    args.q = b.input(queries(random, s, n_rows, fill));
    args.n_heads = s.n_heads;
    args.head_dim = s.head_dim;
    args.softmax_scale =
        fill == Fill::kExact ? kExactScale : static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)));
    args.window = s.window;
    args.ring = {b.state(rings(random, s, floor, fill)), s.ring_rows, s.head_dim};
    args.step = {
        const_cast<uint8_t*>(b.input(packed_window_rows(latents(random, n_rows, s.head_dim, fill), s.head_dim))),
        s.head_dim};
    if (s.topk > 0) bind_compressed(b, random, s, fill, args);
    args.sink = b.weight(sinks(random, s, fill));
    args.rope = {b.weight(case_frequencies(s.rope_dim, fill)), s.rope_dim / 2};
    // One output row a head. A score's error (1e-6 of its size, about 30 at most) moves a probability by 3e-5 of itself
    // and flips its bf16 rounding for one slot in a hundred; a flip is worth 2^-9 of that slot's weight, half a unit of
    // the output at the very most. No quantiser follows, so a flip stays in its own head.
    Tolerance tolerance = bitwise("probabilities are 0 or 1, sums of integers, one division");
    if (fill == Fill::kWide) {
      tolerance = chain(0x1p-6, "fp32 scores, bf16 probabilities, bf16 output, rotation");
      tolerance.equal_min = 0.97;
      tolerance.rows_min = 0.9;
    }
    args.out = b.output<Bf16>("out", OutputType::kBf16, int64_t{n_rows} * s.n_heads, s.head_dim, tolerance);
    b.step = [&b, &rows, args, width](RowRange r) -> Status {
      ops::AttentionArgs part = args;
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      if (part.window_floor != nullptr) part.window_floor += r.begin;
      part.q += r.begin * width;
      part.step.base = args.step.row(r.begin).values;
      if (part.selected != nullptr) part.selected += int64_t{r.begin} * args.topk;
      part.out += r.begin * width;
      DI_RETURN_IF_ERROR(b.backend().attention(part));
      if (rows.whole(r)) return {};
      return b.backend().window_commit({part.rows, part.step, part.ring});  // for the rows of the next range
    };
  };
  return c;
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t context : {4096, 32768}) {
      for (const int32_t n : {1, 8, 64}) {
        cases.push_back(attention({{{0, context - n, n}}, 64, 512, 64, 128, 136, 512}, Fill::kWide, "sparse"));
      }
    }
    cases.push_back(attention({{{0, 4096, 64}}, 64, 512, 64, 128, 136}, Fill::kWide, "window"));
    return;
  }
  const std::vector<SequenceRows> mixed = {{1, 0, 5}, {0, 20, 6}, {3, 7, 1}, {2, 254, 11}};
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    AttentionShape s{mixed, 3, 64, 16, 8, 12};
    cases.push_back(attention(s, fill, "window"));
    s.with_floor = true;
    cases.push_back(attention(s, fill, "floor"));
    s.ring_rows = 8;  // the smallest ring, wrapped
    cases.push_back(attention(s, fill, "ring_full"));
    s.with_floor = false;
    s.topk = 16;
    cases.push_back(attention(s, fill, "sparse"));
    s.sink = Sink::kDominating;
    cases.push_back(attention(s, fill, "sink"));
    s.sink = Sink::kUsual;
    s.ratio = 2;
    s.with_floor = true;
    s.topk = 150;  // slots 8..157: three blocks, the last ones masked for short rows
    cases.push_back(attention(s, fill, "blocks"));
    s.n_selected_max = 0;  // whole blocks masked
    cases.push_back(attention(s, fill, "masked_blocks"));
    cases.push_back(attention({{{0, 2, 30}, {1, 95, 7}}, 5, 96, 32, 70, 80, 40}, fill, "long_step"));
    cases.push_back(attention({{{0, 699, 2}, {1, 3, 1}}, 64, 512, 64, 128, 133, 512}, fill, "released"));
  }
}

}  // namespace deepinfer::bench
