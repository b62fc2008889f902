// Cases of embed, the three matrix products, the output projection and the head.
#include <algorithm>
#include <cmath>

#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

struct LinearShape {
  int32_t n_rows;
  int64_t n_out;
  int64_t n_in;
  [[nodiscard]] std::string text() const {
    return std::to_string(n_rows) + "x" + std::to_string(n_out) + "x" + std::to_string(n_in);
  }
};

OpCase linear_base(const std::string& op, const LinearShape& s, Fill fill, double weight_bytes, double row_bytes) {
  OpCase c = new_case(op, fill_name(fill) + "_" + s.text(), s.n_rows);
  c.shape = "rows x out x in " + s.text();
  c.flops = 2.0 * s.n_rows * static_cast<double>(s.n_out * s.n_in);
  c.bytes = weight_bytes * static_cast<double>(s.n_out * s.n_in) + row_bytes * s.n_rows;
  c.config.hidden_size = static_cast<int32_t>(s.n_in);
  c.config.vocab_size = static_cast<int32_t>(s.n_out);
  return c;
}

template <typename Rows, typename Matrix>
Tolerance linear_tolerance(const BoundCase& b, const Rows& x_norms, const Matrix& w, int64_t n_in, Fill fill,
                           bool f32) {
  if (!b.with_checks()) return {};
  if (fill == Fill::kExact) return bitwise("sums of small integers are exact");
  return f32 ? fp32_sum(n_in, x_norms, row_norms(w)) : bf16_sum(n_in, x_norms, row_norms(w));
}

OpCase linear_fp8(const LinearShape& s, Fill fill) {
  OpCase c = linear_base("linear_fp8", s, fill, 1.0 + 1.0 / 1024,
                         static_cast<double>(s.n_in) * 33 / 32 + 2.0 * static_cast<double>(s.n_out));
  c.types = "fp8*fp8->bf16";
  c.bind = [s, fill, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const HostQuantizedRows x = quantized(bf16_rows(random, s.n_rows, s.n_in, fill), s.n_in);
    HostFp8Matrix w = fp8_matrix(random, s.n_out, s.n_in, fill);
    Bf16* y = b.output<Bf16>("y", OutputType::kBf16, s.n_rows, s.n_out,
                             linear_tolerance(b, row_norms(x), w, s.n_in, fill, false));
    const ops::LinearFp8Args args{s.n_rows, b.input(x), b.weight(std::move(w)), y};
    b.step = [&b, args](RowRange r) {
      return b.backend().linear_fp8({r.n(), from_row(args.x, r.begin), args.w, args.y + r.begin * args.w.n_out});
    };
  };
  return c;
}

OpCase linear_fp4(const LinearShape& s, Fill fill) {
  OpCase c = linear_base("linear_fp4", s, fill, 0.5 + 1.0 / 32,
                         static_cast<double>(s.n_in) * 33 / 32 + 2.0 * static_cast<double>(s.n_out));
  c.types = "fp8*fp4->bf16";
  c.bind = [s, fill, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const HostQuantizedRows x = quantized(bf16_rows(random, s.n_rows, s.n_in, fill), s.n_in);
    HostFp4Matrix w = fp4_matrix(random, s.n_out, s.n_in, fill);
    Bf16* y = b.output<Bf16>("y", OutputType::kBf16, s.n_rows, s.n_out,
                             linear_tolerance(b, row_norms(x), w, s.n_in, fill, false));
    const ops::LinearFp4Args args{s.n_rows, b.input(x), b.weight(std::move(w)), y};
    b.step = [&b, args](RowRange r) {
      return b.backend().linear_fp4({r.n(), from_row(args.x, r.begin), args.w, args.y + r.begin * args.w.n_out});
    };
  };
  return c;
}

OpCase linear_bf16(const LinearShape& s, Fill fill, bool f32) {
  OpCase c = linear_base("linear_bf16", s, fill, 2,
                         2.0 * static_cast<double>(s.n_in) + (f32 ? 4.0 : 2.0) * static_cast<double>(s.n_out));
  c.types = f32 ? "bf16*bf16->f32" : "bf16*bf16->bf16";
  if (f32) c.name += "_f32";
  c.bind = [s, fill, f32, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    const std::vector<Bf16> x = bf16_rows(random, s.n_rows, s.n_in, fill);
    HostBf16Matrix w = bf16_matrix(random, s.n_out, s.n_in, fill);
    const Tolerance tolerance = linear_tolerance(b, row_norms(x, s.n_in), w, s.n_in, fill, f32);
    ops::LinearBf16Args args{s.n_rows, b.input(x), b.weight(std::move(w))};
    if (f32) {
      args.y_f32 = b.output<float>("y", OutputType::kF32, s.n_rows, s.n_out, tolerance);
    } else {
      args.y = b.output<Bf16>("y", OutputType::kBf16, s.n_rows, s.n_out, tolerance);
    }
    b.step = [&b, args](RowRange r) {
      ops::LinearBf16Args part = args;
      part.n_rows = r.n();
      part.x += r.begin * args.w.n_in;
      if (part.y != nullptr) part.y += r.begin * args.w.n_out;
      if (part.y_f32 != nullptr) part.y_f32 += r.begin * args.w.n_out;
      return b.backend().linear_bf16(part);
    };
  };
  return c;
}

OpCase embed(int32_t n_rows, int64_t vocab, int64_t dim, int32_t n_streams) {
  OpCase c = new_case("embed", "exact_" + LinearShape{n_rows, vocab, dim}.text(), n_rows);
  c.shape = "rows x vocab x dim " + LinearShape{n_rows, vocab, dim}.text() + ", streams " + std::to_string(n_streams);
  c.types = "bf16";
  c.bytes = 2.0 * n_rows * static_cast<double>(dim) * (1 + n_streams);
  c.config.hidden_size = static_cast<int32_t>(dim);
  c.config.vocab_size = static_cast<int32_t>(vocab);
  c.config.hc_mult = n_streams;
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    std::vector<int32_t> token(static_cast<size_t>(n_rows));
    for (int32_t& id : token) id = static_cast<int32_t>(random.below(vocab));
    token.front() = static_cast<int32_t>(vocab - 1);
    token.back() = 0;
    ops::EmbedArgs args{n_rows, b.input(token), b.weight(bf16_matrix(random, vocab, dim, Fill::kWide)), n_streams};
    args.streams = b.output<Bf16>("streams", OutputType::kBf16, n_rows, n_streams * dim, bitwise("copies"));
    b.step = [&b, args](RowRange r) {
      ops::EmbedArgs part = args;
      part.n_rows = r.n();
      part.token += r.begin;
      part.streams += r.begin * args.n_streams * args.table.n_in;
      return b.backend().embed(part);
    };
  };
  return c;
}

struct ProjectionShape {
  int32_t n_rows;
  int32_t n_groups;
  int64_t group_in;
  int64_t group_out;
  int64_t dim;
};

OpCase output_projection(const ProjectionShape& s, Fill fill) {
  const int64_t rank = s.n_groups * s.group_out;
  OpCase c = new_case("output_projection",
                      fill_name(fill) + "_" + std::to_string(s.n_rows) + "x" + std::to_string(s.n_groups) + "x" +
                          std::to_string(s.group_in) + "x" + std::to_string(s.group_out) + "x" + std::to_string(s.dim),
                      s.n_rows);
  c.shape = "rows x groups x in x rank x dim";
  c.types = "bf16*fp8->bf16, fp8*fp8->bf16";
  c.flops = 2.0 * s.n_rows * static_cast<double>(rank * s.group_in + rank * s.dim);
  c.bytes = static_cast<double>(rank * s.group_in + rank * s.dim) +
            2.0 * s.n_rows * static_cast<double>(s.n_groups * s.group_in + s.dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.o_groups = s.n_groups;
  c.config.o_lora_rank = static_cast<int32_t>(s.group_out);
  c.config.n_heads = s.n_groups;
  c.config.head_dim = static_cast<int32_t>(s.group_in);
  c.bind = [s, rank, fill, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::OutputProjectionArgs args;
    args.n_rows = s.n_rows;
    args.n_groups = s.n_groups;
    args.o = b.input(bf16_rows(random, s.n_rows, s.n_groups * s.group_in, fill));
    args.wo_a = b.weight(fp8_matrix(random, rank, s.group_in, fill));
    args.wo_b = b.weight(fp8_matrix(random, s.dim, rank, fill));
    // A flipped low value that crosses an FP8 step (2^-3 of itself) moves outputs by 2^-3 / sqrt(rank) of their size.
    const Tolerance tolerance = fill == Fill::kExact ? bitwise("both sums are exact, so is the quantiser between them")
                                                     : chain(0x1p-5, "bf16 low rank, FP8, bf16");
    args.y = b.output<Bf16>("y", OutputType::kBf16, s.n_rows, s.dim, tolerance);
    b.step = [&b, args](RowRange r) {
      ops::OutputProjectionArgs part = args;
      part.n_rows = r.n();
      part.o += r.begin * args.n_groups * args.wo_a.n_in;
      part.y += r.begin * args.wo_b.n_out;
      return b.backend().output_projection(part);
    };
  };
  return c;
}

struct HeadShape {
  int32_t n_rows;      // logit rows
  int32_t n_streamed;  // rows of streams
  int32_t n_streams;
  int64_t dim;
  int64_t vocab;
};

/// Streams that share out a unit-mean-square row by channel, so that their sum has its mean square again.
std::vector<Bf16> shared_out_streams(Random& random, int32_t n_rows, int32_t n_streams, int64_t dim) {
  const std::vector<Bf16> rows = unit_rms_rows(random, n_rows, dim);
  std::vector<Bf16> streams(static_cast<size_t>(n_rows * n_streams * dim), Bf16{0});
  for (int64_t t = 0; t < n_rows; ++t) {
    for (int64_t c = 0; c < dim; ++c) {
      streams[static_cast<size_t>((t * n_streams + random.below(n_streams)) * dim + c)] =
          rows[static_cast<size_t>(t * dim + c)];
    }
  }
  return streams;
}

OpCase head(const HeadShape& s, Fill fill) {
  OpCase c = new_case("head", fill_name(fill) + "_" + LinearShape{s.n_rows, s.vocab, s.dim}.text(), s.n_rows);
  c.shape = "rows x vocab x dim " + LinearShape{s.n_rows, s.vocab, s.dim}.text();
  c.types = "bf16*bf16->f32";
  c.flops = 2.0 * s.n_rows * static_cast<double>(s.dim * (s.vocab + s.n_streams));
  c.bytes = 2.0 * static_cast<double>(s.vocab * s.dim) +
            s.n_rows * (4.0 * static_cast<double>(s.vocab) + 2.0 * static_cast<double>(s.n_streams * s.dim));
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.vocab_size = static_cast<int32_t>(s.vocab);
  c.config.hc_mult = s.n_streams;
  c.limits.n_rows_max = std::max(s.n_rows, s.n_streamed);
  c.bind = [s, fill, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    std::vector<int32_t> row(static_cast<size_t>(s.n_rows));
    for (int32_t& id : row) id = static_cast<int32_t>(random.below(s.n_streamed));
    row.back() = s.n_streamed - 1;
    std::vector<float> carried(static_cast<size_t>(s.n_streamed * s.n_streams));
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = fill == Fill::kExact ? 0.5f : random.uniform();
    ops::HeadArgs args;
    args.n_out_rows = s.n_rows;
    args.row = b.input(row);
    args.n_streams = s.n_streams;
    args.dim = s.dim;
    args.streams = b.input(fill == Fill::kExact ? shared_out_streams(random, s.n_streamed, s.n_streams, s.dim)
                                                : bf16_rows(random, s.n_streamed * s.n_streams, s.dim, fill));
    args.carried = b.input(carried);
    args.norm_weight = b.weight(norm_weights(random, s.dim, fill));
    args.rms_eps = 1e-20f;
    HostBf16Matrix w = bf16_matrix(random, s.vocab, s.dim, fill);
    Tolerance tolerance;
    if (fill == Fill::kExact) {
      tolerance = bitwise("collapse, norm factor and products are exact");
    } else if (b.with_checks()) {
      // |h| is about sqrt(dim) after the norm. A flip in h (one unit, 2^-8 of one operand) is covered by 2^-8 of the
      // norms over sqrt(dim) per flipped channel; allow a few of them.
      tolerance = fp32_sum(s.dim, {}, row_norms(w));
      tolerance.sum_error = (tolerance.sum_error + 0x1p-6 / std::sqrt(static_cast<double>(s.dim))) *
                            std::sqrt(static_cast<double>(s.dim)) * 2;
      tolerance.why = "error of an fp32 sum plus a few flipped roundings of the normalised row";
    }
    args.logits = b.output<float>("logits", OutputType::kF32, s.n_rows, s.vocab, tolerance);
    args.head = b.weight(std::move(w));
    b.step = [&b, args](RowRange r) {
      ops::HeadArgs part = args;
      part.n_out_rows = r.n();
      part.row += r.begin;
      part.logits += r.begin * args.head.n_out;
      return b.backend().head(part);
    };
  };
  return c;
}

}  // namespace

void add_linear_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t n : {1, 8, 64, 512}) {
      cases.push_back(linear_fp8({n, 4096, 4096}, Fill::kWide));
      cases.push_back(linear_fp4({n, 4096, 4096}, Fill::kWide));
      cases.push_back(linear_bf16({n, 4096, 4096}, Fill::kWide, false));
    }
    for (const int32_t n : {1, 8, 64}) {
      cases.push_back(output_projection({n, 8, 4096, 1024, 5120}, Fill::kWide));
      cases.push_back(head({n, n, 4, 5120, 16384}, Fill::kWide));
    }
    cases.push_back(embed(512, 4096, 5120, 4));
    return;
  }
  cases.push_back(embed(37, 509, 96, 3));
  cases.push_back(embed(3, 600, 5120, 4));
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    for (const LinearShape& s : {LinearShape{37, 160, 96}, LinearShape{1, 97, 160}, LinearShape{5, 31, 32},
                                 LinearShape{66, 96, 1280}, LinearShape{3, 512, 5120}}) {
      cases.push_back(linear_fp8(s, fill));
      cases.push_back(linear_fp4(s, fill));
      cases.push_back(linear_bf16(s, fill, s.n_rows % 2 == 0));
    }
    cases.push_back(linear_bf16({7, 45, 352}, fill, true));
    cases.push_back(linear_bf16({5, 37, 61}, fill, false));  // bf16 rows of any width
    cases.push_back(linear_bf16({3, 18, 5}, fill, true));
    cases.push_back(output_projection({7, 4, 128, 32, 160}, fill));
    cases.push_back(output_projection({5, 3, 96, 64, 96}, fill));
    cases.push_back(output_projection({2, 8, 4096, 32, 512}, fill));
    cases.push_back(head({5, 9, 3, 96, 509}, fill));
    cases.push_back(head({2, 2, 4, 5120, 301}, fill));
  }
}

}  // namespace deepinfer::bench
