// Speed of the output parser on one core: what it costs the thread that answers a client.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace deepinfer::bench {

struct OutputParserRow {
  std::string_view text;  // lives for ever: prose, prose_stops, lines, calls, json
  int64_t chunk_bytes = 0;
  int64_t n_bytes = 0;        // of one run
  double median_seconds = 0;  // of one run
  double min_seconds = 0;
  double p90_seconds = 0;
  double mb_per_second = 0;      // 10^6 bytes, at the median
  double pushes_per_second = 0;  // same
};

struct OutputParserBenchOptions {
  int64_t n_bytes = 8'000'000;  // of each text; one-byte chunks take an eighth of it
  int32_t n_runs = 7;           // after one to warm up
};

/// Each text in chunks of 64 KiB, of 16 bytes (a few tokens) and of one byte. The parser is made anew in each run, and
/// that is part of its time.
std::vector<OutputParserRow> run_output_parser_bench(const OutputParserBenchOptions& options);

}  // namespace deepinfer::bench
