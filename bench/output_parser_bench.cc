#include "bench/output_parser_bench.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"
#include "protocol/output_parser.h"

namespace deepinfer::bench {

namespace {

using protocol::OutputParser;
using protocol::OutputSettings;
using protocol::OutputStart;

/// Counts, so that nothing can be left out as unused.
class Counter : public protocol::OutputEvents {
 public:
  void on_reasoning(std::string_view text) override { n_bytes_ += text.size(); }
  void on_answer(std::string_view text) override { n_bytes_ += text.size(); }
  void on_call_begin(std::string_view name) override { n_bytes_ += name.size() + 1; }
  void on_call_arguments(std::string_view json) override { n_bytes_ += json.size(); }
  void on_call_end() override { ++n_bytes_; }
  [[nodiscard]] size_t n_bytes() const { return n_bytes_; }

 private:
  size_t n_bytes_ = 0;
};

struct Workload {
  std::string_view name;
  OutputSettings settings;
  std::string_view opening;  // once
  std::string_view unit;     // again and again
};

std::vector<Workload> workloads() {
  constexpr std::string_view kProse =
      "The valve opened slowly; nobody in the control room spoke. \"Three more degrees,\" she said, and wrote it down. "
      "Später, gegen Abend, kam der Regen. 夜になると港は静かだった。\n\n";
  constexpr std::string_view kLines = "<p>\n<b>\nif (a < b && c << 2) {\n\n}\n</b></p>\n\n<!-- x -->\n";
  constexpr std::string_view kCall =
      "<｜DSML｜ invoke name=\"write_file\">\n<｜DSML｜ parameter name=\"path\" "
      "string=\"true\">src/\"main\".cc</｜DSML｜ "
      "parameter>\n<｜DSML｜ parameter name=\"text\" string=\"true\">int main() {\n\treturn a < b;\n}\n</｜DSML｜ "
      "parameter>\n"
      "<｜DSML｜ parameter name=\"mode\" string=\"false\">{\"bits\": [6, 4, 4]}</｜DSML｜ parameter>\n</｜DSML｜ "
      "invoke>\n";
  constexpr std::string_view kJson = "{\"id\": 1017, \"tags\": [\"a\", \"<b>\"],\n \"text\": \"one\\ntwo ```\"},\n";
  std::vector<std::string> stops = {"</answer>",   "\n\nUser:",  "\n\nHuman:",   "###",
                                    "END OF TEXT", "<|im_end|>", "Observation:", "```\n\n\n",
                                    "[DONE]",      "\n---\n",    "Q:",           "the end of the story",
                                    "STOP",        "=====",      "さようなら",   "|||"};
  return {
      {"prose", {.start = OutputStart::kAnswer, .tools = true, .json = false, .stop = {}}, "", kProse},
      {"prose_stops", {.start = OutputStart::kAnswer, .tools = true, .json = false, .stop = stops}, "", kProse},
      {"lines", {.start = OutputStart::kReasoning, .tools = true, .json = false, .stop = {}}, "", kLines},
      {"calls", {.start = OutputStart::kCalls, .tools = true, .json = false, .stop = {}}, "", kCall},
      {"json", {.start = OutputStart::kAnswer, .tools = false, .json = true, .stop = {}}, "Here:\n```json\n[", kJson},
  };
}

std::string text_of(const Workload& workload, size_t n_bytes) {
  std::string text(workload.opening);
  while (text.size() < n_bytes) text += workload.unit;
  return text;
}

double run_once(const Workload& workload, std::string_view text, size_t chunk_bytes) {
  const auto begin = std::chrono::steady_clock::now();
  Counter counter;
  OutputParser parser(workload.settings, OutputParser::Markers::kBySpelling);
  for (size_t at = 0; at < text.size(); at += chunk_bytes) parser.push_text(text.substr(at, chunk_bytes), counter);
  parser.finish(counter);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  DI_CHECK(counter.n_bytes() > text.size() / 4);  // it did read to the end
  return seconds.count();
}

OutputParserRow measure(const Workload& workload, std::string_view text, size_t chunk_bytes, int32_t n_runs) {
  std::vector<double> seconds;
  run_once(workload, text, chunk_bytes);
  for (int32_t i = 0; i < n_runs; ++i) seconds.push_back(run_once(workload, text, chunk_bytes));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto n_bytes = static_cast<double>(text.size());
  return {.text = workload.name,
          .chunk_bytes = static_cast<int64_t>(chunk_bytes),
          .n_bytes = static_cast<int64_t>(text.size()),
          .median_seconds = median,
          .min_seconds = seconds.front(),
          .p90_seconds = seconds[(seconds.size() * 9 - 1) / 10],
          .mb_per_second = n_bytes / median * 1e-6,
          .pushes_per_second = n_bytes / static_cast<double>(chunk_bytes) / median};
}

}  // namespace

std::vector<OutputParserRow> run_output_parser_bench(const OutputParserBenchOptions& options) {
  DI_CHECK(options.n_bytes >= 8 && options.n_runs > 0);
  std::vector<OutputParserRow> rows;
  for (const Workload& workload : workloads()) {
    const std::string text = text_of(workload, static_cast<size_t>(options.n_bytes));
    const std::string_view short_text = std::string_view(text).substr(0, text.size() / 8);
    rows.push_back(measure(workload, text, 65536, options.n_runs));
    rows.push_back(measure(workload, text, 16, options.n_runs));
    rows.push_back(measure(workload, short_text, 1, options.n_runs));
  }
  return rows;
}

}  // namespace deepinfer::bench
