// Cases of the lightning indexer: scores, candidate blocks, top-k.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "bench/cases.h"

namespace deepinfer::bench {
namespace {

enum class Candidates { kNone, kPublish, kUse };

struct IndexShape {
  std::vector<SequenceRows> sequences;
  int32_t ratio;
  int64_t dim;
  int64_t rank;
  int32_t n_heads;
  int32_t head_dim;
  int32_t rope_dim;
  int32_t topk;
  Candidates candidates = Candidates::kNone;
  int32_t candidate_topk_blocks = 0;
  int32_t candidate_block_size = 0;
  int32_t n_key_prototypes = 0;  // 0: all keys differ; else keys repeat, so scores tie
};

constexpr float kNegInf = -std::numeric_limits<float>::infinity();

/// The k best of the scores above -inf, ties to the lowest, ascending, then -1: the definition once more, on scores.
std::vector<int32_t> best(const std::vector<float>& score, int32_t k) {
  std::vector<int32_t> id;
  for (size_t i = 0; i < score.size(); ++i) {
    if (score[i] != kNegInf) id.push_back(static_cast<int32_t>(i));
  }
  std::sort(id.begin(), id.end(), [&](int32_t a, int32_t b) {
    const float x = score[static_cast<size_t>(a)];
    const float y = score[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;  // -0 == +0
  });
  if (id.size() > static_cast<size_t>(k)) id.resize(static_cast<size_t>(k));
  std::sort(id.begin(), id.end());
  id.resize(static_cast<size_t>(k), -1);
  return id;
}

std::vector<int32_t> best_blocks(const IndexShape& s, const std::vector<float>& visible_scores) {
  std::vector<float> block;
  for (size_t j = 0; j < visible_scores.size(); ++j) {
    if (j % static_cast<size_t>(s.candidate_block_size) == 0) block.push_back(kNegInf);
    block.back() = std::max(block.back(), visible_scores[j]);
  }
  if (!block.empty()) block.back() = std::numeric_limits<float>::infinity();
  return best(block, s.candidate_topk_blocks);
}

/// Candidate lists handed to a `use` case: some visible blocks of each row, ascending, then -1.
std::vector<int32_t> candidate_lists(const IndexShape& s, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> lists;
  for (const int32_t position : positions_of(s.sequences)) {
    const int32_t n_blocks = ((position + 1) / s.ratio + s.candidate_block_size - 1) / s.candidate_block_size;
    std::vector<int32_t> list;
    for (int32_t block = 0; block < n_blocks && static_cast<int32_t>(list.size()) < s.candidate_topk_blocks; ++block) {
      if (!random.one_in(3)) list.push_back(block);
    }
    list.resize(static_cast<size_t>(s.candidate_topk_blocks), -1);
    lists.insert(lists.end(), list.begin(), list.end());
  }
  return lists;
}

std::string differ(const std::string& what, int64_t row, const std::vector<float>& got,
                   const std::vector<int32_t>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] != static_cast<float>(want[i])) {
      return what + "[" + std::to_string(row) + ", " + std::to_string(i) + "] = " + std::to_string(got[i]) +
             ", but its own scores give " + std::to_string(want[i]);
    }
  }
  return {};
}

/// Selections and candidates are exactly those of the backend's own scores, and do not depend on whether it was asked
/// for a trace.
std::string check_selection(const IndexShape& s, const std::vector<int32_t>& used, const std::vector<Output>& outputs) {
  const Output& scores = find(outputs, "scores");
  const std::vector<int32_t> position = positions_of(s.sequences);
  for (int64_t t = 0; t < scores.n_rows; ++t) {
    std::vector<float> score = decode_row(scores, t);
    const auto visible = static_cast<size_t>((position[static_cast<size_t>(t)] + 1) / s.ratio);
    for (size_t j = visible; j < score.size(); ++j) {
      if (score[j] != kNegInf)
        return "scores[" + std::to_string(t) + ", " + std::to_string(j) + "] is not visible and not -inf";
    }
    score.resize(visible);
    if (s.candidates == Candidates::kPublish) {
      const std::string fault = differ("publish", t, decode_row(find(outputs, "publish"), t), best_blocks(s, score));
      if (!fault.empty()) return fault;
    }
    if (s.candidates == Candidates::kUse) {
      const int32_t* list = used.data() + t * s.candidate_topk_blocks;
      for (size_t j = 0; j < visible; ++j) {
        const auto block = static_cast<int32_t>(j) / s.candidate_block_size;
        if (std::find(list, list + s.candidate_topk_blocks, block) == list + s.candidate_topk_blocks)
          score[j] = kNegInf;
      }
    }
    const std::vector<int32_t> want = best(score, s.topk);
    for (const std::string name : {"selected", "selected without trace"}) {
      const std::string fault = differ(name, t, decode_row(find(outputs, name), t), want);
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

/// Keys of every entry of every slot that has rows.
void write_keys(Random& random, const IndexShape& s, Fill fill, const kv::GlobalView& view) {
  const int64_t n_distinct = s.n_key_prototypes > 0 ? s.n_key_prototypes : (context_of(s.sequences) + 1) / s.ratio + 1;
  for (const SequenceRows& q : s.sequences) {
    const HostPackedRows keys = mxfp4_rows(random, n_distinct, s.head_dim, fill);
    for (int32_t j = 0; j < (q.first + q.n) / s.ratio; ++j) {
      const int64_t from = s.n_key_prototypes > 0 ? random.below(n_distinct) : j;
      const kv::PackedRow row = view.index_key(q.slot, j);
      std::copy_n(keys.values.begin() + from * (s.head_dim / 2), s.head_dim / 2, row.values);
      std::copy_n(keys.scales.begin() + from * (s.head_dim / 32), s.head_dim / 32, row.scales);
    }
  }
}

void bind_outputs(BoundCase& b, const IndexShape& s, Fill fill, int32_t n_rows, int64_t n_entries,
                  ops::IndexSelectArgs& args) {
  const bool exact = fill == Fill::kExact;
  const Tolerance one_answer = bitwise("dot products are exact, the rest is a fixed sequence of roundings");
  const Tolerance by_self_check{.of_row_max = 1e30, .why = "compared with the backend's own scores"};
  args.selected = b.output<int32_t>("selected", OutputType::kI32, n_rows, s.topk, exact ? one_answer : by_self_check);
  if (s.candidates == Candidates::kPublish) {
    args.publish = b.output<int32_t>("publish", OutputType::kI32, n_rows, s.candidate_topk_blocks,
                                     exact ? one_answer : by_self_check);
  }
  if (!b.with_checks()) return;
  const int64_t width = static_cast<int64_t>(s.n_heads) * s.head_dim;
  args.query_out =
      b.output<Bf16>("query", OutputType::kBf16, n_rows, width,
                     exact ? one_answer : chain(0.5, "bf16 linear, rotation, FP4: a step is up to a third"));
  args.scores_stride = n_entries;
  args.scores_out = b.output<float>(
      "scores", OutputType::kF32, n_rows, n_entries,
      exact ? equal_numbers("exact dot products; a zero sum may have either sign")
            : chain(0x1p-3, "a flipped query code moves one head's products by at most one part in eight"));
}

/// The arguments without `rows`, from the row `begin` on.
ops::IndexSelectArgs index_from_row(const ops::IndexSelectArgs& args, int64_t begin) {
  ops::IndexSelectArgs part = args;
  part.low = from_row(args.low, begin);
  part.x += begin * args.weights_proj.n_in;
  part.selected += begin * args.topk;
  if (part.publish != nullptr) part.publish += begin * args.candidate_topk_blocks;
  if (part.use != nullptr) part.use += begin * args.candidate_topk_blocks;
  if (part.query_out != nullptr) part.query_out += begin * args.wq_b.n_out;
  if (part.scores_out != nullptr) part.scores_out += begin * args.scores_stride;
  return part;
}

/// Sizes for the backend's reservation.
void configure(const IndexShape& s, OpCase& c) {
  c.config.hidden_size = static_cast<int32_t>(s.dim);
  c.config.q_lora_rank = static_cast<int32_t>(s.rank);
  c.config.index_n_heads = s.n_heads;
  c.config.index_head_dim = s.head_dim;
  c.config.rope_dim = s.rope_dim;
  c.config.index_topk = s.topk;
  c.limits.n_context_max = context_of(s.sequences);
  if (s.candidates == Candidates::kNone) return;
  c.config.candidate_topk_blocks = s.candidate_topk_blocks;
  c.config.candidate_block_size = s.candidate_block_size;
}

OpCase index_select(const IndexShape& s, Fill fill, const std::string& variant) {
  const int32_t n_rows = rows_of(s.sequences);
  const int32_t n_context = context_of(s.sequences);
  const int64_t n_entries = std::max(1, n_context / s.ratio);
  const int64_t width = static_cast<int64_t>(s.n_heads) * s.head_dim;
  OpCase c =
      new_case("index_select",
               fill_name(fill) + "_" + variant + "_" + std::to_string(n_rows) + "x" + std::to_string(s.n_heads) + "x" +
                   std::to_string(s.head_dim) + "_context" + std::to_string(n_context) + "_r" + std::to_string(s.ratio),
               n_rows);
  double n_scored = 0;
  for (const int32_t position : positions_of(s.sequences)) n_scored += (position + 1) / s.ratio;
  c.shape = "rows x heads x head_dim, " + std::to_string(n_entries) + " entries, top " + std::to_string(s.topk);
  c.types = "fp4*fp4->bf16 scores";
  c.flops = 2.0 * static_cast<double>(width) * (n_scored + n_rows * static_cast<double>(s.rank)) +
            2.0 * n_rows * static_cast<double>(s.dim) * s.n_heads;
  c.bytes =
      static_cast<double>(width * s.rank) +
      static_cast<double>(kv::index_entry_bytes(s.head_dim) * n_entries) * static_cast<double>(s.sequences.size()) +
      n_rows * static_cast<double>(2 * s.dim + s.rank);
  configure(s, c);
  const uint64_t seed = seed_of(c.name);
  c.bind = [=](BoundCase& b) {
    Random random(seed);
    ops::IndexSelectArgs args;
    BoundRows& rows = b.keep(BoundRows(b, slots_of(s.sequences), positions_of(s.sequences)));
    args.low = b.input(quantized(bf16_rows(random, n_rows, s.rank, fill), s.rank));
    args.x = b.input(bf16_rows(random, n_rows, s.dim, fill));
    args.wq_b = b.weight(fp8_matrix(random, width, s.rank, fill));
    args.weights_proj = b.weight(bf16_matrix(random, s.n_heads, s.dim, fill));
    // Powers of two are exact; the scale of other shapes is not, which is what the wide cases are for.
    args.weight_scale =
        fill == Fill::kExact ? 0x1p-6f : static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim) * s.n_heads));
    args.n_heads = s.n_heads;
    args.head_dim = s.head_dim;
    args.rope = {b.weight(case_frequencies(s.rope_dim, fill)), s.rope_dim / 2};
    const HostPool pool(random, s.ratio, 32, s.head_dim, slots_needed(s.sequences), n_context);
    write_keys(random, s, fill, pool.view);
    args.keys = bind_pool(b, pool);
    args.topk = s.topk;
    if (s.candidates != Candidates::kNone) {
      args.candidate_topk_blocks = s.candidate_topk_blocks;
      args.candidate_block_size = s.candidate_block_size;
    }
    if (s.candidates == Candidates::kUse) args.use = b.input(candidate_lists(s, seed));
    bind_outputs(b, s, fill, n_rows, n_entries, args);
    int32_t* untraced = b.with_checks() ? b.output<int32_t>("selected without trace", OutputType::kI32, n_rows, s.topk,
                                                            {.of_row_max = 1e30, .why = "self-check"})
                                        : nullptr;
    b.step = [&b, &rows, args, untraced](RowRange r) -> Status {
      ops::IndexSelectArgs part = index_from_row(args, r.begin);
      DI_ASSIGN_OR_RETURN(part.rows, rows.at(r));
      DI_RETURN_IF_ERROR(b.backend().index_select(part));
      if (untraced == nullptr) return {};
      part.query_out = nullptr;
      part.scores_out = nullptr;
      part.selected = untraced + int64_t{r.begin} * args.topk;
      return b.backend().index_select(part);
    };
  };
  std::vector<int32_t> used;
  if (s.candidates == Candidates::kUse && n_entries < 10000) used = candidate_lists(s, seed);
  c.self_check = [s, used](const std::vector<Output>& outputs) { return check_selection(s, used, outputs); };
  return c;
}

}  // namespace

void add_index_cases(std::vector<OpCase>& cases, bool perf) {
  if (perf) {
    for (const int32_t context : {4096, 32768}) {
      for (const int32_t n : {1, 8, 64}) {
        if (n == 64 && context > 4096) continue;  // 17 GFLOP a run
        cases.push_back(index_select({{{0, context - n, n}}, 1, 5120, 1280, 32, 128, 64, 512}, Fill::kWide, "plain"));
      }
      cases.push_back(
          index_select({{{0, context - 8, 8}}, 1, 5120, 1280, 32, 128, 64, 512, Candidates::kPublish, 2048, 8},
                       Fill::kWide, "publish"));
    }
    return;
  }
  for (const Fill fill : {Fill::kExact, Fill::kWide}) {
    // Visible counts from 0 up; fewer entries than topk; block boundary; several sequences.
    const std::vector<SequenceRows> mixed = {{1, 0, 4}, {0, 40, 5}, {3, 5, 1}, {2, 250, 12}};
    for (const int32_t ratio : {1, 2}) {
      IndexShape s{mixed, ratio, 96, 160, 3, 32, 16, 8};
      cases.push_back(index_select(s, fill, "plain"));
      s.n_key_prototypes = 3;
      cases.push_back(index_select(s, fill, "ties"));
      s.candidates = Candidates::kPublish;
      s.candidate_topk_blocks = 5;
      s.candidate_block_size = 2;
      cases.push_back(index_select(s, fill, "ties_publish"));
      s.n_key_prototypes = 0;
      s.candidate_block_size = 8;
      cases.push_back(index_select(s, fill, "publish"));
      s.candidates = Candidates::kUse;
      cases.push_back(index_select(s, fill, "use"));
      s.n_key_prototypes = 2;
      s.candidate_topk_blocks = 2;  // fewer candidates than topk
      s.candidate_block_size = 3;
      cases.push_back(index_select(s, fill, "ties_use"));
    }
    cases.push_back(index_select({{{0, 699, 2}}, 1, 256, 160, 32, 128, 64, 512}, fill, "released"));
    cases.push_back(
        index_select({{{0, 698, 2}, {1, 1300, 1}}, 1, 256, 160, 32, 128, 64, 512, Candidates::kPublish, 64, 8}, fill,
                     "released_publish"));
    cases.push_back(index_select({{{0, 698, 2}, {1, 1300, 1}}, 1, 256, 160, 32, 128, 64, 512, Candidates::kUse, 100, 8},
                                 fill, "released_use"));
  }
}

}  // namespace deepinfer::bench
