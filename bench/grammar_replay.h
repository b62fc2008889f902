// Texts replayed through a constraint, token by token as a model would write them, with the times of each step; what
// `grammar check` and `bench grammar` have in common. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"
#include "deepinfer/tokenizer.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace deepinfer::bench {

/// A model's tokenizer, and its vocabulary as grammars see it.
struct GrammarModel {
  Tokenizer tokenizer;
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  double vocabulary_seconds = 0;           // to build it
  std::array<int32_t, 256> byte_tokens{};  // the token of this byte alone; -1: there is none

  /// Reads tokenizer.json alone: every token counts as a row of the head, <｜end▁of▁sentence｜> (else id 1) ends a text.
  /// Errors   of Tokenizer::open(); kBadModelFile when no token has text
  static Result<GrammarModel> open(const std::string& model_dir);
};

/// Microseconds of single steps.
struct GrammarTimes {
  std::vector<float> mask;        // asking for the mask and writing its whole row
  std::vector<float> descriptor;  // the asking alone
  std::vector<float> advance;

  void append(const GrammarTimes& more);
};

struct TimedGrammar {
  grammar::Compiled compiled;
  double compile_us = 0;  // from the constraint to its first mask, or to the refusal
};

/// The first mask's times are added to `times`.
TimedGrammar compile_timed(const GrammarModel& model, const grammar::Constraint& constraint, GrammarTimes& times);

struct Replay {
  bool accepted = false;
  size_t n_bytes = 0;   // that every token up to here was allowed for; all of them: the text may only not end there
  std::string failure;  // the mask there is empty: why
  std::string bug;      // the mask and the text's bytes disagree: how
};

/// Every token must be in the mask, and after the last one the end of text, too.
/// Errors   kInvalidArgument: the text is not UTF-8
Result<Replay> replay(const GrammarModel& model, const std::shared_ptr<grammar::CompiledGrammar>& compiled,
                      std::string_view text, GrammarTimes& times);

struct Percentiles {
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
  int64_t n = 0;
};
Percentiles percentiles(std::vector<float> times);

/// A bucket of a histogram: times up to this many microseconds that are over the bucket before. Bounds are the powers of
/// 2^(1/4), so buckets of several histograms add up.
struct TimeBucket {
  double up_to;
  int64_t n;
};
/// Without empty buckets, ascending.
std::vector<TimeBucket> time_histogram(const std::vector<float>& times);

}  // namespace deepinfer::bench
