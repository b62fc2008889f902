#include "bench/grammar_replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "bench/quantile.h"
#include "engine/constraints.h"
#include "grammar/compiled_grammar.h"
#include "grammar/vocabulary.h"
#include "text/utf8.h"

namespace deepinfer::bench {

namespace {

using Clock = std::chrono::steady_clock;
using grammar::Mask;
using grammar::Matcher;

constexpr std::string_view kEndOfText = "<｜end▁of▁sentence｜>";

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

/// The matcher's mask, written to `row`.
Mask timed_mask(const Matcher& matcher, std::span<grammar::MaskWord> row, GrammarTimes& times) {
  const auto start = Clock::now();
  const Mask mask = matcher.mask();
  const auto asked = Clock::now();
  mask.fill(row);
  const auto filled = Clock::now();
  times.descriptor.push_back(static_cast<float>(microseconds(asked - start)));
  times.mask.push_back(static_cast<float>(microseconds(filled - start)));
  return mask;
}

bool timed_advance(Matcher& matcher, int32_t token, GrammarTimes& times) {
  const auto start = Clock::now();
  const bool moved = matcher.advance(token);
  times.advance.push_back(static_cast<float>(microseconds(Clock::now() - start)));
  return moved;
}

bool allows(std::span<const grammar::MaskWord> row, int32_t token) {
  const auto i = static_cast<size_t>(token);
  return (row[i / 64] >> (i % 64) & 1) != 0;
}

/// Whether the bytes of `text` lead from `matcher` to where the text may end; nothing where the vocabulary cannot say.
std::optional<bool> accepts_bytes(const GrammarModel& model, Matcher matcher, std::string_view text) {
  for (const char c : text) {
    const int32_t token = model.byte_tokens[static_cast<unsigned char>(c)];
    if (token < 0) return std::nullopt;
    if (!matcher.advance(token)) return false;
  }
  return matcher.complete();
}

std::string disagreement(const GrammarModel& model, int32_t token, size_t at, bool in_mask) {
  return "token " + std::to_string(token) + " (" + quoted_for_message(model.vocabulary->bytes(token)) + ") at byte " +
         std::to_string(at) + " is " + (in_mask ? "in" : "not in") + " the mask, but its bytes are " +
         (in_mask ? "not " : "") + "allowed there";
}

}  // namespace

Result<GrammarModel> GrammarModel::open(const std::string& model_dir) {
  DI_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::open(model_dir));
  const std::array end_ids = {tokenizer.token_to_id(kEndOfText).value_or(1)};
  const auto start = Clock::now();
  Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary =
      grammar_vocabulary(tokenizer, end_ids, tokenizer.vocab_size());
  if (!vocabulary.ok()) return Error{Code::kBadModelFile, vocabulary.error().message};
  GrammarModel model{.tokenizer = std::move(tokenizer), .vocabulary = *std::move(vocabulary)};
  model.vocabulary_seconds = microseconds(Clock::now() - start) * 1e-6;
  model.byte_tokens.fill(-1);
  for (int32_t id = model.tokenizer.vocab_size(); id-- > 0;) {
    const std::string_view bytes = model.vocabulary->bytes(id);
    if (bytes.size() == 1) model.byte_tokens[static_cast<unsigned char>(bytes[0])] = id;
  }
  return model;
}

void GrammarTimes::append(const GrammarTimes& more) {
  mask.insert(mask.end(), more.mask.begin(), more.mask.end());
  descriptor.insert(descriptor.end(), more.descriptor.begin(), more.descriptor.end());
  advance.insert(advance.end(), more.advance.begin(), more.advance.end());
}

TimedGrammar compile_timed(const GrammarModel& model, const grammar::Constraint& constraint, GrammarTimes& times) {
  std::vector<grammar::MaskWord> row(static_cast<size_t>(model.vocabulary->n_words()));
  const auto start = Clock::now();
  TimedGrammar result{.compiled = grammar::compile(model.vocabulary, constraint)};
  if (result.compiled.grammar) timed_mask(Matcher(result.compiled.grammar), row, times);
  result.compile_us = microseconds(Clock::now() - start);
  return result;
}

Result<Replay> replay(const GrammarModel& model, const std::shared_ptr<grammar::CompiledGrammar>& compiled,
                      std::string_view text, GrammarTimes& times) {
  DI_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, model.tokenizer.encode(text, false));
  std::vector<grammar::MaskWord> row(static_cast<size_t>(model.vocabulary->n_words()));
  Matcher matcher(compiled);
  Replay result;
  for (const int32_t token : tokens) {
    timed_mask(matcher, row, times);
    const bool in_mask = allows(row, token);
    const bool moved = timed_advance(matcher, token, times);
    if (in_mask && !moved) result.bug = disagreement(model, token, result.n_bytes, true);
    if (!in_mask) {
      result.failure = matcher.failure();
      if (result.failure.empty() && accepts_bytes(model, Matcher(compiled), text).value_or(false))
        result.bug = disagreement(model, token, result.n_bytes, false);
    }
    if (!in_mask || !moved) return result;
    result.n_bytes += model.vocabulary->bytes(token).size();
  }
  timed_mask(matcher, row, times);
  result.accepted = allows(row, model.vocabulary->end_of_text().front());
  if (result.accepted != matcher.complete()) result.bug = "the end of text and its mask disagree";
  return result;
}

Percentiles percentiles(std::vector<float> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::vector<double> sorted(times.begin(), times.end());
  const auto in_ns = [](double us) { return std::round(us * 1000) / 1000; };  // what the clock can tell
  return {.p50 = in_ns(quantile(sorted, 0.5)),
          .p90 = in_ns(quantile(sorted, 0.9)),
          .p99 = in_ns(quantile(sorted, 0.99)),
          .p999 = in_ns(quantile(sorted, 0.999)),
          .max = in_ns(sorted.back()),
          .n = static_cast<int64_t>(sorted.size())};
}

std::vector<TimeBucket> time_histogram(const std::vector<float>& times) {
  std::map<int, int64_t> counts;  // by the power of 2^(1/4)
  for (const float time : times) ++counts[static_cast<int>(std::ceil(4 * std::log2(std::max(time, 1e-3F))))];
  std::vector<TimeBucket> buckets;
  for (const auto& [power, n] : counts) buckets.push_back({std::exp2(power / 4.0), n});
  return buckets;
}

}  // namespace deepinfer::bench
