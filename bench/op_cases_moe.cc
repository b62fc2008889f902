// Cases of the router and of the mixture of experts.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

enum class Logits { kUsual, kTies, kExtreme };

struct RouterShape {
  int32_t n_rows;
  int64_t dim;
  int32_t n_experts;
  int32_t n_active;
  bool with_images = false;
  bool normalize = true;
  Logits logits = Logits::kUsual;
};

/// Exact: integer gates scaled so that logits lie within a few units. Ties: experts repeat a few rows.
HostBf16Matrix router_gate(Random& random, const RouterShape& s, Fill fill) {
  HostBf16Matrix gate = bf16_matrix(random, s.n_experts, s.dim, fill);
  const int shift = fill == Fill::kExact ? -5 : 0;
  const int extreme = s.logits == Logits::kExtreme ? 5 : 0;
  for (Bf16& value : gate.values) value = to_bf16(std::ldexp(to_float(value), shift + extreme));
  if (s.logits == Logits::kTies) {
    for (int64_t e = 3; e < s.n_experts; ++e)
      std::copy_n(gate.values.begin() + e % 3 * s.dim, s.dim, gate.values.begin() + e * s.dim);
  }
  return gate;
}

OpCase router(const RouterShape& s, Fill fill, const std::string& variant) {
  OpCase c =
      new_case("router",
               fill_name(fill) + "_" + variant + "_" + std::to_string(s.n_rows) + "x" + std::to_string(s.n_experts) +
                   "x" + std::to_string(s.dim) + "_top" + std::to_string(s.n_active),
               s.n_rows);
  c.shape = "rows x experts x dim";
  c.types = "bf16*bf16->f32";
  c.flops = 2.0 * s.n_rows * static_cast<double>(s.n_experts * s.dim);
  c.bytes = 2.0 * static_cast<double>(s.n_experts * s.dim) + 2.0 * s.n_rows * static_cast<double>(s.dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.n_routed_experts = s.n_experts;
  c.config.n_experts_per_token = s.n_active;
  c.bind = [=, seed = seed_of(c.name)](BoundCase& b) {
    Random random(seed);
    ops::RouterArgs args;
    args.n_rows = s.n_rows;
    args.x = b.input(bf16_rows(random, s.n_rows, s.dim, fill));
    args.gate = b.weight(router_gate(random, s, fill));
    std::vector<float> bias(static_cast<size_t>(s.n_experts));
    std::vector<float> bias_image(bias.size());
    for (size_t e = 0; e < bias.size(); ++e) {
      bias[e] = s.logits == Logits::kTies ? 0.25f * static_cast<float>(random.below(2)) : 0.2f * random.normal();
      bias_image[e] = 0.5f * random.normal();
    }
    args.bias = b.weight(bias);
    if (s.with_images) {
      std::vector<uint8_t> is_image(static_cast<size_t>(s.n_rows));
      for (uint8_t& flag : is_image) flag = random.one_in(2) ? 1 : 0;
      args.bias_image = b.weight(bias_image);
      args.is_image = b.input(is_image);
    }
    args.n_active = s.n_active;
    args.normalize = s.normalize;
    args.scaling = 1.5f;
    // Ids: with exact logits equal scores tie exactly. Else two scores within 1e-6 may swap, in few rows if any.
    Tolerance ids = bitwise("exact logits, ties to the lowest id");
    if (fill == Fill::kWide)
      ids = {.of_row_max = 1e30, .equal_min = 1, .rows_min = 0.95, .why = "near-ties swap in few rows"};
    args.expert = b.output<int32_t>("expert", OutputType::kI32, s.n_rows, s.n_active, ids);
    // Weights: relative error of the score plus a division and a product; scores are square roots, which halve it.
    Tolerance weights{.ulps = 8, .why = "a few fp32 roundings from exact logits"};
    if (fill == Fill::kWide)
      weights = {.of_row_max = 1e-4, .rows_min = 0, .why = "relative error of a logit's sum, sqrt(K) 2^-24 of |x||w|"};
    args.weight = b.output<float>("weight", OutputType::kF32, s.n_rows, s.n_active, weights);
    b.step = [&b, args](RowRange r) {
      ops::RouterArgs part = args;
      part.n_rows = r.n();
      part.x += r.begin * args.gate.n_in;
      if (part.is_image != nullptr) part.is_image += r.begin;
      part.expert += r.begin * args.n_active;
      part.weight += r.begin * args.n_active;
      return b.backend().router(part);
    };
  };
  return c;
}

enum class Assignment { kSpread, kOneExpert, kSomeUnused };

struct MoeShape {
  int32_t n_rows;
  int64_t dim;
  int64_t inner;
  int32_t n_experts;
  int32_t n_active;
  Assignment assignment = Assignment::kSpread;
  float limit = 10;
};

/// n_active different experts a row, in any order.
std::vector<int32_t> assigned_experts(Random& random, const MoeShape& s) {
  std::vector<int32_t> chosen;
  std::vector<int32_t> id(static_cast<size_t>(s.n_experts));
  const int64_t n_used = s.assignment == Assignment::kSomeUnused ? s.n_experts / 2 : s.n_experts;
  for (int32_t t = 0; t < s.n_rows; ++t) {
    std::iota(id.begin(), id.end(), 0);
    for (int32_t i = 0; i < s.n_active; ++i) {
      // Unused experts are the even ones: first, last and between.
      const int64_t j = random.between(i, n_used - 1);
      std::swap(id[static_cast<size_t>(i)], id[static_cast<size_t>(j)]);
      int32_t e = id[static_cast<size_t>(i)];
      if (s.assignment == Assignment::kSomeUnused) e = 2 * e + 1;
      if (s.assignment == Assignment::kOneExpert) e = s.n_experts - 1 - i;
      chosen.push_back(e);
    }
  }
  return chosen;
}

// Exact: w1 selects +-64 times one sign, and silu(min(64, 48)) = 48 and silu(-64) = 0 to within every rounding.
constexpr float kGateMagnitude = 64;
constexpr float kExactLimit = 48;

ops::RoutedExpert routed_expert(BoundCase& b, Random& random, const MoeShape& s, Fill fill) {
  const bool exact = fill == Fill::kExact;
  ops::RoutedExpert expert;
  expert.w1 =
      b.weight(exact ? fp4_selector(random, s.inner, s.dim, kGateMagnitude) : fp4_matrix(random, s.inner, s.dim, fill));
  expert.w3 = b.weight(fp4_matrix(random, s.inner, s.dim, fill));
  expert.w2 = b.weight(fp4_matrix(random, s.dim, s.inner, fill));
  return expert;
}

ops::SharedExpert shared_expert(BoundCase& b, Random& random, const MoeShape& s, Fill fill) {
  const bool exact = fill == Fill::kExact;
  ops::SharedExpert expert;
  expert.w1 =
      b.weight(exact ? fp8_selector(random, s.inner, s.dim, kGateMagnitude) : fp8_matrix(random, s.inner, s.dim, fill));
  expert.w3 = b.weight(fp8_matrix(random, s.inner, s.dim, fill));
  expert.w2 = b.weight(fp8_matrix(random, s.dim, s.inner, fill));
  return expert;
}

/// Bytes of the distinct experts the rows chose, and the shared one.
double moe_weight_bytes(const MoeShape& s, const std::vector<int32_t>& chosen) {
  std::vector<int32_t> distinct = chosen;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const double elements = 3.0 * static_cast<double>(s.dim * s.inner);
  return elements * (static_cast<double>(distinct.size()) * (0.5 + 1.0 / 32) + 1);
}

OpCase moe(const MoeShape& s, Fill fill, const std::string& variant) {
  OpCase c =
      new_case("moe",
               fill_name(fill) + "_" + variant + "_" + std::to_string(s.n_rows) + "x" + std::to_string(s.dim) + "x" +
                   std::to_string(s.inner) + "_" + std::to_string(s.n_active) + "of" + std::to_string(s.n_experts),
               s.n_rows);
  const uint64_t seed = seed_of(c.name);
  Random assignment_random(seed + 1);
  const std::vector<int32_t> chosen = assigned_experts(assignment_random, s);
  c.shape = "rows x dim x inner";
  c.types = "fp8*(fp4|fp8)->bf16";
  c.flops = 6.0 * s.n_rows * static_cast<double>(s.dim * s.inner) * (s.n_active + 1);
  c.bytes = moe_weight_bytes(s, chosen) + 3.0 * s.n_rows * static_cast<double>(s.dim);
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.moe_intermediate_size = static_cast<int32_t>(s.inner);
  c.config.n_routed_experts = s.n_experts;
  c.config.n_experts_per_token = s.n_active;
  c.bind = [=](BoundCase& b) {
    Random random(seed);
    const bool exact = fill == Fill::kExact;
    ops::MoeArgs args;
    args.n_rows = s.n_rows;
    args.x = b.input(
        quantized(exact ? sign_rows(random, s.n_rows, s.dim, 0, 0) : bf16_rows(random, s.n_rows, s.dim, fill), s.dim));
    args.n_active = s.n_active;
    args.expert = b.input(chosen);
    std::vector<float> weight(chosen.size());
    for (float& w : weight) w = exact ? random.power_of_two(-1, 1) : 0.05f + random.uniform();
    args.weight = b.input(weight);
    std::vector<ops::RoutedExpert>& experts = b.keep(std::vector<ops::RoutedExpert>());
    for (int32_t e = 0; e < s.n_experts; ++e) experts.push_back(routed_expert(b, random, s, fill));
    args.experts = experts.data();
    args.n_experts = s.n_experts;
    args.shared = shared_expert(b, random, s, fill);
    args.swiglu_limit = exact ? kExactLimit : s.limit;
    const Tolerance tolerance = exact ? bitwise("gates saturate, sums are exact, experts are added in order of id")
                                      : chain(0x1p-5, "bf16 gate and up, SwiGLU, FP8, bf16 outputs and their sum");
    args.y = b.output<Bf16>("y", OutputType::kBf16, s.n_rows, s.dim, tolerance);
    b.step = [&b, args](RowRange r) {
      ops::MoeArgs part = args;
      part.n_rows = r.n();
      part.x = from_row(args.x, r.begin);
      part.expert += r.begin * args.n_active;
      part.weight += r.begin * args.n_active;
      part.y += r.begin * args.x.width;
      return b.backend().moe(part);
    };
  };
  return c;
}

}  // namespace

void add_moe_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t n : {1, 8, 64, 512}) cases.push_back(router({n, 5120, 384, 6}, Fill::kWide, "usual"));
    for (const int32_t n : {1, 8, 64}) cases.push_back(moe({n, 5120, 2304, 16, 6}, Fill::kWide, "spread"));
    return;
  }
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    cases.push_back(router({37, 96, 16, 4}, fill, "usual"));
    cases.push_back(router({21, 160, 45, 6, true}, fill, "images"));
    cases.push_back(router({9, 96, 7, 7, false, false}, fill, "all_raw"));
    cases.push_back(router({20, 96, 61, 6, false, true, Logits::kExtreme}, fill, "extreme"));
    cases.push_back(router({3, 1280, 384, 6}, fill, "released"));
    cases.push_back(moe({13, 96, 160, 6, 3}, fill, "spread"));
    cases.push_back(moe({70, 96, 32, 5, 2}, fill, "many_rows"));
    cases.push_back(moe({11, 160, 96, 8, 2, Assignment::kSomeUnused}, fill, "some_unused"));
    cases.push_back(moe({17, 160, 96, 4, 1, Assignment::kOneExpert}, fill, "one_expert"));
    cases.push_back(moe({9, 96, 96, 4, 4, Assignment::kSpread, 0.5f}, fill, "clamped"));
    cases.push_back(moe({2, 1280, 288, 7, 6}, fill, "released"));
  }
  // Ties only where the sums are exact: elsewhere equal gates may give unequal logits on another backend.
  cases.push_back(router({20, 96, 24, 6, true, true, Logits::kTies}, Fill::kExact, "ties"));
}

}  // namespace deepinfer::bench
