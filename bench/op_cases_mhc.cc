// Cases of the hyper-connections and of the n-gram memory.
#include <algorithm>
#include <cmath>

#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

struct MhcShape {
  int32_t n_rows;
  int32_t n_streams;
  int64_t dim;
  [[nodiscard]] std::string text() const {
    return std::to_string(n_rows) + "x" + std::to_string(n_streams) + "x" + std::to_string(dim);
  }
};

/// Coefficients of an expand. Exact: multiples of 1/4 in which every stream is handed on once in total (sum over k of
/// comb[j, k] is 1) and the sublayer's output twice.
struct Mix {
  std::vector<float> post;
  std::vector<float> comb;
};

void hand_out(Random& random, float* shares, int64_t n, int n_quarters) {
  for (int i = 0; i < n_quarters; ++i) shares[random.below(n)] += 0.25f;
}

Mix make_mix(Random& random, const MhcShape& s, Fill fill) {
  const int64_t n = s.n_streams;
  Mix mix{std::vector<float>(static_cast<size_t>(s.n_rows * n)),
          std::vector<float>(static_cast<size_t>(s.n_rows * n * n))};
  if (fill == Fill::kWide) {
    for (float& value : mix.post) value = 2 * random.uniform();
    for (float& value : mix.comb) value = random.uniform();
    return mix;
  }
  for (int64_t t = 0; t < s.n_rows; ++t) {
    hand_out(random, mix.post.data() + t * n, n, 8);
    for (int64_t j = 0; j < n; ++j) hand_out(random, mix.comb.data() + (t * n + j) * n, n, 4);
  }
  return mix;
}

/// Exact inputs of an expand: y and the streams share out a row of unit mean square (y holds half its channels' values,
/// since it is added twice in total), so the streams' sum after the expand has that mean square.
struct ExpandRows {
  std::vector<Bf16> y;
  std::vector<Bf16> streams;
};

ExpandRows make_expand_rows(Random& random, const MhcShape& s, Fill fill) {
  if (fill == Fill::kWide) {
    return {bf16_rows(random, s.n_rows, s.dim, fill), bf16_rows(random, s.n_rows * s.n_streams, s.dim, fill)};
  }
  const std::vector<Bf16> rows = unit_rms_rows(random, s.n_rows, s.dim);
  ExpandRows out{std::vector<Bf16>(rows.size(), Bf16{0}),
                 std::vector<Bf16>(rows.size() * static_cast<size_t>(s.n_streams), Bf16{0})};
  for (int64_t t = 0; t < s.n_rows; ++t) {
    for (int64_t c = 0; c < s.dim; ++c) {
      const Bf16 value = rows[static_cast<size_t>(t * s.dim + c)];
      const int64_t owner = random.below(s.n_streams + 1);
      if (owner == s.n_streams) {
        out.y[static_cast<size_t>(t * s.dim + c)] = to_bf16(to_float(value) * 0.5f);
      } else {
        out.streams[static_cast<size_t>((t * s.n_streams + owner) * s.dim + c)] = value;
      }
    }
  }
  return out;
}

constexpr std::string_view kExpandWhy = "fp32 sum of n_streams + 1 terms and one bf16 rounding";

/// |sum| <= (sum of coefficients) * largest value: 2 * rows' maximum covers it; order or fused products move it by
/// ulps.
Tolerance expand_tolerance(Fill fill) {
  if (fill == Fill::kExact) return bitwise("multiples of 1/4 of small integers: exact");
  return Tolerance{.ulps = 1, .of_row_max = 0x1p-20, .equal_min = 0.99, .rows_min = 1, .why = kExpandWhy};
}

OpCase mhc_expand(const MhcShape& s, Fill fill) {
  OpCase c = new_case("mhc_expand", fill_name(fill) + "_" + s.text(), s.n_rows);
  c.shape = "rows x streams x dim " + s.text();
  c.types = "bf16, f32 mix";
  c.flops = 2.0 * s.n_rows * static_cast<double>(s.dim) * s.n_streams * (s.n_streams + 1);
  c.bytes = 2.0 * s.n_rows * static_cast<double>(s.dim) * (1 + 2 * s.n_streams);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.hc_mult = s.n_streams;
  c.bind = [s, fill, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const Mix mix = make_mix(random, s, fill);
    const ExpandRows rows = make_expand_rows(random, s, fill);
    const ops::MhcExpandArgs args{s.n_rows,          s.n_streams,          s.dim, b.input(rows.y), b.input(mix.post),
                                  b.input(mix.comb), b.state(rows.streams)};
    b.watch(args.streams, {"streams", OutputType::kBf16, s.n_rows, s.n_streams * s.dim, {}, expand_tolerance(fill)});
    b.step = [&b, args](RowRange r) {
      ops::MhcExpandArgs part = args;
      part.n_rows = r.n();
      part.y += r.begin * args.dim;
      part.post += r.begin * args.n_streams;
      part.comb += r.begin * args.n_streams * args.n_streams;
      part.streams += r.begin * args.n_streams * args.dim;
      return b.backend().mhc_expand(part);
    };
  };
  return c;
}

ops::MhcSiteArgs site_from_row(const ops::MhcSiteArgs& args, RowRange r) {
  const int64_t n = args.expand.n_streams;
  const int64_t dim = args.expand.dim;
  ops::MhcSiteArgs part = args;
  part.expand.n_rows = r.n();
  part.expand.streams += r.begin * n * dim;
  if (args.expand.y != nullptr) {
    part.expand.y += r.begin * dim;
    part.expand.post += r.begin * n;
    part.expand.comb += r.begin * n * n;
  }
  part.carried += r.begin * n;
  part.pre += r.begin * n;
  part.post += r.begin * n;
  part.comb += r.begin * n * n;
  part.x += r.begin * dim;
  part.x_quantized = from_row(args.x_quantized, r.begin);
  return part;
}

/// Bound of the mix's coefficients c = m * scale + base: m is a sum over the streams times their inverse rms, so its
/// error is sum_error |fn| sqrt(width); sigmoid and the Sinkhorn map do not enlarge errors of c by more than 4.
struct MixBound {
  double coefficient;
  [[nodiscard]] Tolerance logistic() const {
    return Tolerance{.sum_error = coefficient, .ulps = 8, .why = "error of the mix projection, sigmoid in fp32"};
  }
  [[nodiscard]] Tolerance sinkhorn() const {
    return Tolerance{.sum_error = 4 * coefficient + 128 * 0x1p-24,
                     .why = "error of the mix projection, 40 normalisations in fp32"};
  }
};

/// Streams of a site without expand. Exact: every stream of unit mean square, all of one token alike in scale.
std::vector<Bf16> site_streams(Random& random, const MhcShape& s, Fill fill) {
  if (fill == Fill::kWide) return bf16_rows(random, s.n_rows * s.n_streams, s.dim, fill);
  return unit_rms_rows(random, s.n_rows * s.n_streams, s.dim, s.n_streams);
}

/// Wide: any positive mix. Exact: all equal powers of two after an expand, one stream alone without.
std::vector<float> carried_mix(Random& random, const MhcShape& s, Fill fill, bool expand) {
  std::vector<float> carried(static_cast<size_t>(s.n_rows * s.n_streams), 0.0f);
  for (int64_t t = 0; t < s.n_rows; ++t) {
    float* row = carried.data() + t * s.n_streams;
    if (fill == Fill::kExact && !expand) {
      row[random.below(s.n_streams)] = random.power_of_two(-1, 1);
    } else {
      for (int64_t i = 0; i < s.n_streams; ++i) row[i] = fill == Fill::kExact ? 0.5f : random.uniform();
    }
  }
  return carried;
}

OpCase mhc_site(const MhcShape& s, Fill fill, bool expand) {
  OpCase c = new_case("mhc_site", fill_name(fill) + (expand ? "_expand_" : "_first_") + s.text(), s.n_rows);
  const int64_t n = s.n_streams;
  const int64_t n_mix = (2 + n) * n;
  c.shape = "rows x streams x dim " + s.text();
  c.types = "bf16, f32 mix -> bf16, fp8";
  c.flops = 2.0 * s.n_rows * static_cast<double>(s.dim * n * (n_mix + 2) + (expand ? s.dim * n * (n + 1) : 0));
  c.bytes =
      4.0 * static_cast<double>(n_mix * n * s.dim) +
      s.n_rows * static_cast<double>(s.dim) * (2.0 * static_cast<double>(n) * (expand ? 2 : 1) + (expand ? 2 : 0) + 3);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.hc_mult = s.n_streams;
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const int64_t width = n * s.dim;
    ops::MhcSiteArgs args;
    args.expand = {s.n_rows, s.n_streams, s.dim};
    const Mix mix = make_mix(random, s, fill);
    const ExpandRows rows = make_expand_rows(random, s, fill);
    if (expand) {
      args.expand.y = b.input(rows.y);
      args.expand.post = b.input(mix.post);
      args.expand.comb = b.input(mix.comb);
      args.expand.streams = b.state(rows.streams);
    } else {
      args.expand.streams = b.state(site_streams(random, s, fill));
    }
    b.watch(args.expand.streams, {"streams", OutputType::kBf16, s.n_rows, width, {}, expand_tolerance(fill)});

    // Exact: integers over a power of two, or no dependence on the streams where their mean square is arbitrary.
    std::vector<float> fn(static_cast<size_t>(n_mix * width));
    const float deviation = fill == Fill::kWide ? 1 / std::sqrt(static_cast<float>(width)) : (expand ? 0.0f : 0x1p-6f);
    for (float& value : fn)
      value = deviation * (fill == Fill::kWide ? random.normal() : static_cast<float>(random.between(-2, 2)));
    std::vector<float> base(static_cast<size_t>(n_mix));
    for (float& value : base) value = 0.25f * static_cast<float>(random.between(-6, 6));
    const double fn_norm = fill == Fill::kWide ? 1.1 : 0;
    const MixBound bound{sum_error_bound(width) * fn_norm * std::sqrt(static_cast<double>(width)) +
                         (fill == Fill::kWide ? 0x1p-21 : 0)};
    args.fn = b.weight(std::move(fn));
    args.base = b.weight(std::move(base));
    args.scale =
        b.weight(fill == Fill::kWide ? std::vector<float>{0.7f, 1.0f, 0.9f} : std::vector<float>{0.5f, 1.0f, 0.25f});
    args.sinkhorn_iters = 20;
    args.hc_eps = fill == Fill::kWide ? 1e-6f : 1e-3f;  // the large one shows where it belongs
    args.rms_eps = 1e-20f;
    args.carried = b.input(carried_mix(random, s, fill, expand));
    args.pre = b.output<float>("pre", OutputType::kF32, s.n_rows, n, bound.logistic());
    args.post = b.output<float>("post", OutputType::kF32, s.n_rows, n, bound.logistic());
    args.comb = b.output<float>("comb", OutputType::kF32, s.n_rows, n * n, bound.sinkhorn());
    args.norm_weight = b.weight(norm_weights(random, s.dim, fill));
    const Tolerance x_tolerance = fill == Fill::kExact ? bitwise("collapse and norm factor are exact")
                                                       : chain(0x1p-7, "bf16 collapse, norm, bf16");
    args.x = b.output<Bf16>("x", OutputType::kBf16, s.n_rows, s.dim, x_tolerance);
    args.x_quantized = b.quantized_output(
        "x_quantized", s.n_rows, s.dim, fill == Fill::kExact ? x_tolerance : chain(0x1p-3, "bf16 collapse, norm, FP8"));
    b.step = [&b, args](RowRange r) { return b.backend().mhc_site(site_from_row(args, r)); };
  };
  return c;
}

struct EngramShape {
  int32_t n_rows;
  int32_t n_columns;
  int32_t head_dim;
  int32_t n_streams;
  int64_t dim;
  int64_t n_table_rows;
};

/// Table: any codes when wide; +-1, +-2 times small powers of two when exact.
HostFp8Matrix engram_table(Random& random, const EngramShape& s, Fill fill) {
  HostFp8Matrix table = fp8_matrix(random, s.n_table_rows, s.head_dim, fill);
  table.scales.assign(static_cast<size_t>(s.n_table_rows * (s.head_dim / 32)), 127);  // per row, unlike a weight
  for (uint8_t& code : table.scales)
    code = static_cast<uint8_t>(code - (fill == Fill::kWide ? 5 : 0) + random.between(-1, 1));
  return table;
}

OpCase engram(const EngramShape& s, Fill fill) {
  OpCase c = new_case("engram",
                      fill_name(fill) + "_" + std::to_string(s.n_rows) + "x" + std::to_string(s.n_columns) + "x" +
                          std::to_string(s.head_dim) + "x" + std::to_string(s.dim),
                      s.n_rows);
  const int64_t width = static_cast<int64_t>(s.n_columns) * s.head_dim;
  const int64_t n_out = (s.n_streams + 1) * s.dim;
  c.shape = "rows x columns x head_dim x dim";
  c.types = "fp8*fp8->bf16, f32 gate";
  c.flops = 2.0 * s.n_rows * static_cast<double>(n_out * width);
  c.bytes = static_cast<double>(n_out * width) + s.n_rows * static_cast<double>(width + 4 * s.n_streams * s.dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.hc_mult = s.n_streams;
  c.config.engram_max_ngram_size = 2;
  c.config.engram_n_heads = s.n_columns;
  c.config.engram_head_dim = s.head_dim;
  c.config.engram_num_embeddings = {s.n_table_rows, s.n_table_rows};
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::EngramArgs args;
    args.n_rows = s.n_rows;
    args.n_columns = s.n_columns;
    args.head_dim = s.head_dim;
    std::vector<int64_t> row_id(static_cast<size_t>(s.n_rows * s.n_columns));
    for (int64_t& id : row_id) id = random.below(s.n_table_rows);
    row_id.back() = s.n_table_rows - 1;
    std::vector<uint8_t> dead(static_cast<size_t>(s.n_rows));
    for (uint8_t& flag : dead) flag = random.one_in(4) ? 1 : 0;
    args.row_id = b.input(row_id);
    args.dead = b.input(dead);
    const HostFp8Matrix table = engram_table(random, s, fill);
    args.table_codes = b.input(table.codes);
    args.table_scales = b.input(table.scales);
    args.wkv = b.weight(fp8_matrix(random, n_out, width, fill));
    // Exact: weights so large that every gate is 0 or 1.
    const Bf16 large = to_bf16(0x1p14f);
    args.q_weight = b.weight(fill == Fill::kExact ? std::vector<Bf16>(static_cast<size_t>(s.n_streams * s.dim), large)
                                                  : norm_weights(random, s.n_streams * s.dim, fill));
    args.k_weight = b.weight(fill == Fill::kExact ? std::vector<Bf16>(static_cast<size_t>(s.n_streams * s.dim), large)
                                                  : norm_weights(random, s.n_streams * s.dim, fill));
    args.rms_eps = 1e-20f;
    args.n_streams = s.n_streams;
    args.dim = s.dim;
    std::vector<Bf16> streams = bf16_rows(random, s.n_rows * s.n_streams, s.dim, fill);
    if (fill == Fill::kExact) {
      for (Bf16& x : streams)
        x = to_bf16(random.sign() * static_cast<float>(random.between(1, 3)));  // 0 + tiny is not 0
    }
    args.streams = b.state(streams);
    const Tolerance tolerance = fill == Fill::kExact ? bitwise("sums are exact and gates saturate")
                                                     : chain(0x1p-6, "bf16 keys and value, fp32 gate, bf16 update");
    b.watch(args.streams, {"streams", OutputType::kBf16, s.n_rows, s.n_streams * s.dim, {}, tolerance});
    b.step = [&b, args](RowRange r) {
      ops::EngramArgs part = args;
      part.n_rows = r.n();
      part.row_id += r.begin * args.n_columns;
      part.dead += r.begin;
      part.streams += r.begin * args.n_streams * args.dim;
      return b.backend().engram(part);
    };
  };
  return c;
}

}  // namespace

void add_mhc_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t n : {1, 64, 512}) {
      cases.push_back(mhc_expand({n, 4, 5120}, Fill::kWide));
      cases.push_back(mhc_site({n, 4, 5120}, Fill::kWide, true));
    }
    for (const int32_t n : {1, 8, 64}) cases.push_back(engram({n, 24, 256, 4, 5120, 65536}, Fill::kWide));
    return;
  }
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    for (const MhcShape& s : {MhcShape{37, 4, 96}, MhcShape{5, 3, 160}, MhcShape{1, 2, 32}}) {
      cases.push_back(mhc_expand(s, fill));
      cases.push_back(mhc_site(s, fill, true));
      cases.push_back(mhc_site(s, fill, false));
    }
    cases.push_back(mhc_expand({3, 4, 5120}, fill));
    // 5120 channels make integer sums too long for 24 bits only in theory; the mean square is exact all the same.
    cases.push_back(mhc_site({3, 4, 5120}, fill, true));
    cases.push_back(mhc_site({3, 4, 5120}, fill, false));
    cases.push_back(engram({11, 4, 32, 3, 96, 509}, fill));
    cases.push_back(engram({5, 6, 64, 4, 160, 77}, fill));
    cases.push_back(engram({3, 24, 256, 4, 512, 300}, fill));
  }
}

}  // namespace deepinfer::bench
