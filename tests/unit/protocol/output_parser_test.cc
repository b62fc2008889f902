#include "protocol/output_parser.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/protocol/output_record.h"

namespace deepinfer::protocol {
namespace {

using Call = OutputRecord::Call;
using Markers = OutputParser::Markers;

constexpr std::string_view kCallF =
    "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" string=\"true\">v</｜DSML｜ parameter>\n"
    "<｜DSML｜ parameter name=\"n\" string=\"false\">[1, {\"z\": null}]</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n";
const Call kParsedF{"f", R"({"k": "v", "n": [1, {"z": null}]})", true};

std::string block(std::string_view calls) {
  return "\n\n<｜DSML｜ calls>\n" + std::string(calls) + "</｜DSML｜ calls>";
}

std::string call_with(std::string_view parameter) {
  return block("<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=" + std::string(parameter) +
               "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n");
}

OutputSettings settings_of(OutputStart start, std::vector<std::string> stop = {}) {
  return {.start = start, .tools = true, .json = false, .stop = std::move(stop)};
}

OutputSettings text_only(OutputStart start) { return {.start = start, .tools = false, .json = false, .stop = {}}; }

OutputSettings json_mode(std::vector<std::string> stop = {}) {
  return {.start = OutputStart::kAnswer, .tools = true, .json = true, .stop = std::move(stop)};
}

struct Outcome {
  OutputRecord record;
  Section section = Section::kFinished;
  std::optional<int32_t> stop_index;
  int32_t n_calls = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome parse_cut(const OutputSettings& settings, std::string_view text, const std::vector<size_t>& cuts) {
  Outcome outcome;
  OutputParser parser(settings, Markers::kBySpelling);
  size_t at = 0;
  for (const size_t cut : cuts) {
    parser.push_text(text.substr(at, cut - at), outcome.record);
    at = cut;
  }
  parser.push_text(text.substr(at), outcome.record);
  parser.finish(outcome.record);
  outcome.section = parser.section();
  outcome.stop_index = parser.stop_index();
  outcome.n_calls = parser.n_calls();
  return outcome;
}

/// Parses whole, in single bytes, and cut once at each place; all must be the same.
Outcome parse(const OutputSettings& settings, std::string_view text) {
  const Outcome whole = parse_cut(settings, text, {});
  std::vector<size_t> all;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    all.push_back(cut);
    EXPECT_EQ(parse_cut(settings, text, {cut}), whole) << text << " cut at " << cut;
  }
  EXPECT_EQ(parse_cut(settings, text, all), whole) << text << " in single bytes";
  EXPECT_EQ(whole.n_calls, static_cast<int32_t>(whole.record.calls.size()));
  return whole;
}

struct TextCase {
  OutputSettings settings;
  std::string text;
  std::string reasoning;
  std::string answer;
  std::vector<Call> calls = {};
};

void expect_all(const std::vector<TextCase>& cases) {
  for (const TextCase& it : cases) {
    const Outcome got = parse(it.settings, it.text);
    EXPECT_EQ(got.record.reasoning, it.reasoning) << it.text;
    EXPECT_EQ(got.record.answer, it.answer) << it.text;
    EXPECT_EQ(got.record.calls, it.calls) << it.text;
  }
}

const OutputSettings kReasoning = settings_of(OutputStart::kReasoning);
const OutputSettings kAnswer = settings_of(OutputStart::kAnswer);

TEST(OutputParser, SeparatesReasoningFromAnswer) {
  expect_all({
      {kReasoning, "\n\nLet me see.\n</think>\n\nParis.", "Let me see.", "Paris."},
      {kReasoning, "never closed\n\n", "never closed\n\n", ""},
      {kReasoning, "a</think>b</think>\n\nc", "a", "b\n\nc"},
      {kReasoning, "</think>\n</think>\n\nc", "", "\n\nc"},  // first only after the one that ends reasoning
      {kReasoning, "<think>a</think>b", "<think>a", "b"},
      {kReasoning, "p</</think>q", "p</", "q"},
      {kReasoning, "p</think</think>q", "p</think", "q"},
      {kReasoning, "a\n\n</thin\n</think>b", "a\n\n</thin\n", "b"},  // a newline that breaks a marker begins no run
      {kReasoning, "a\n</thin\n\n</think>b", "a\n</thin\n", "b"},
      {settings_of(OutputStart::kReasoningContinued), "\n\na</think>b", "\n\na", "b"},
      {kAnswer, "\n\na</think>b", "", "ab"},
      {settings_of(OutputStart::kAnswerContinued), "\n\na</think>\nb", "", "\n\na\nb"},
      {kAnswer, "</think>\n\nb", "", "\n\nb"},
      {kAnswer, "", "", ""},
  });
}

TEST(OutputParser, ReadsCalls) {
  const std::vector<Call> both = {{"get_weather", R"({"city": "Par\"is\n", "n": 3})", true}, {"now", "{}", true}};
  const std::string calls = block(
      "<｜DSML｜ invoke name=\"get_weather\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">Par\"is\n"
      "</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"n\" string=\"false\">3</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"now\">\n\n</｜DSML｜ invoke>\n");
  const std::string v4 =
      "x\n<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"k\" string=\"true\">v"
      "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>y";
  expect_all({
      {kAnswer, "I will check.\n\n" + calls, "", "I will check.", both},
      {kReasoning, "need it" + block(kCallF), "need it", "", {kParsedF}},
      {kReasoning, "r</think>" + block(kCallF) + "tail", "r", "", {kParsedF}},
      {kAnswer, block(kCallF) + block(kCallF), "", "", {kParsedF}},  // nothing comes after the first block
      {kAnswer, v4, "", "x", {{"f", R"({"k": "v"})", true}}},
      {settings_of(OutputStart::kCalls), std::string(kCallF), "", "", {kParsedF}},
      {kAnswer, "x" + block(""), "", "x"},
      {text_only(OutputStart::kAnswer), "x" + block(""), "", "x" + block("")},
      {text_only(OutputStart::kReasoning), "x" + block(""), "x" + block(""), ""},
      {kAnswer,
       call_with("\"k\" string=\"true\"><｜DSML｜ </think>"),
       "",
       "",
       {{"f", R"({"k": "<｜DSML｜ </think>"})", true}}},
      {kAnswer, call_with("\"k\" string=\"false\">{bad"), "", "", {{"f", R"({"k": {bad})", true}}},
      {kAnswer,
       call_with("\"k\" string=\"true\">\\\"\n\t\x01/é😀"),
       "",
       "",
       {{"f", R"({"k": "\\\"\n\t\u0001/é😀"})", true}}},
      {kAnswer, call_with("k string=\"true\">v"), "", "", {{"f", "{}", true}}},  // no quote, no parameter
  });
  EXPECT_EQ(parse(kAnswer, block(kCallF)).section, Section::kFinished);
  EXPECT_EQ(parse(kAnswer, block(kCallF)).record.order, "cje");
}

TEST(OutputParser, KeepsKeysAndMakesThemJson) {
  const auto arguments = [](std::string_view key) {
    const Outcome got = parse(kAnswer, call_with("\"" + std::string(key) + "\" string=\"true\">v"));
    return got.record.calls.at(0).arguments;
  };
  EXPECT_EQ(arguments("shipping address"), R"({"shipping address": "v"})");
  EXPECT_EQ(arguments(" string= mode "), R"({" string= mode ": "v"})");
  EXPECT_EQ(arguments(""), R"({"": "v"})");
  EXPECT_EQ(arguments("straße"), R"({"straße": "v"})");
  EXPECT_EQ(arguments("a\\n\\u00e9\\\\b"), R"({"a\n\u00e9\\b": "v"})");  // escapes already: kept
  EXPECT_EQ(arguments("a\nb"), R"({"a\nb": "v"})");                      // a real newline: no JSON as it is
  EXPECT_EQ(arguments("a\\xb"), R"({"a\\xb": "v"})");
  EXPECT_EQ(arguments("a\\u12x"), R"({"a\\u12x": "v"})");
  EXPECT_EQ(arguments("a\\u12\\n"), R"({"a\\u12\n": "v"})");
  EXPECT_EQ(arguments("a\\"), R"({"a\\": "v"})");
}

TEST(OutputParser, GivesWhatACutCallHad) {
  const std::string text = "w" + block(kCallF);
  const std::vector<std::pair<std::string_view, std::string>> cases = {
      {"name=\"f", "none"},
      {"name=\"f\"", ""},
      {"parameter name=", "{"},
      {"parameter name=\"", "{\""},
      {"parameter name=\"k\"", "{\"k\""},
      {"parameter name=\"k\" ", "{\"k\": "},
      {"string=\"true\">", "{\"k\": \""},
      {"string=\"true\">v</｜DS", "{\"k\": \"v</｜DS"},
      {"string=\"true\">v</｜DSML｜", "{\"k\": \"v\""},
      {"{\"z\": ", R"({"k": "v", "n": [1, {"z": )"},
  };
  for (const auto& [last, arguments] : cases) {
    const size_t end = text.find(last) + last.size();
    const Outcome got = parse(kAnswer, std::string_view(text).substr(0, end));
    const std::vector<Call> calls = arguments == "none" ? std::vector<Call>{} : std::vector<Call>{{"f", arguments}};
    EXPECT_EQ(got.record.calls, calls) << last;
    EXPECT_EQ(got.section, Section::kCalls) << last;
  }
}

TEST(OutputParser, StopsInAnswersOnly) {
  expect_all({
      {settings_of(OutputStart::kAnswer, {"END"}), "one END two", "", "one "},
      {settings_of(OutputStart::kAnswer, {"END"}), "one EN", "", "one EN"},
      {settings_of(OutputStart::kReasoning, {"END"}), "END</think>b END c", "END", "b "},
      {settings_of(OutputStart::kAnswer, {"END"}),
       block("<｜DSML｜ invoke name=\"END\"></｜DSML｜ invoke>"),
       "",
       "",
       {{"END", "{}", true}}},
      {settings_of(OutputStart::kAnswer, {"\n"}), "\nab", "", ""},          // before the rule for first newlines
      {settings_of(OutputStart::kAnswer, {"\na"}), "\nab", "", "ab"},       // which eats the beginning of this one
      {settings_of(OutputStart::kAnswer, {"xy"}), "x</think>y", "", "xy"},  // what is not shown joins nothing
      {settings_of(OutputStart::kAnswer, {"</think>"}), "x</think>y", "", "x"},
      {settings_of(OutputStart::kAnswer, {"ababb", "babc"}), "abababc", "", "aba"},
      {settings_of(OutputStart::kAnswer, {"\n\n\n"}), "a\n\n<\n\n\nb", "", "a\n\n<"},
      {settings_of(OutputStart::kAnswer, {"日曜"}), "日日曜", "", "日"},
  });
}

TEST(OutputParser, TellsWhichStopStringItWas) {
  const auto index = [](std::vector<std::string> stop) {
    const Outcome got = parse(settings_of(OutputStart::kAnswer, std::move(stop)), "zabcd");
    EXPECT_EQ(got.section, got.stop_index ? Section::kFinished : Section::kAnswer);
    return got.stop_index;
  };
  EXPECT_EQ(index({"x", "c"}), 1);
  EXPECT_EQ(index({"abcd", "bc"}), 1);      // complete first
  EXPECT_EQ(index({"b", "ab", "zab"}), 0);  // complete together: first in the list
  EXPECT_EQ(index({"zab", "ab", "b"}), 0);  //
  EXPECT_EQ(index({"zabx", "abx", "bx"}), std::nullopt);
  EXPECT_EQ(index({"b", "b"}), 0);
}

TEST(OutputParser, ShowsOnlyTheJsonInJsonMode) {
  expect_all({
      {json_mode(), "Sure:\n```json\n{\"a\": 1}\n```\nDone", "", " {\"a\": 1}"},
      {json_mode(), "````\n{}\n```", "", " {}"},
      {json_mode(), "x [1] y", "", " [1] y"},
      {json_mode(), "no value", "", " "},
      {json_mode(), "x\n```\n{}\n```" + block(kCallF), "", " {}", {kParsedF}},
      {json_mode(), "{}" + block(kCallF), "", "{}" + block(kCallF)},
      {json_mode({"}"}), "}{\"a\": {\"b\": 1}}", "", " {\"a\": {\"b\": 1"},
  });
}

TEST(OutputParser, HoldsBackOnlyWhatCanBecomeAMarker) {
  OutputRecord record;
  OutputParser parser(settings_of(OutputStart::kAnswer, {"STOP"}), Markers::kBySpelling);
  const auto shown = [&](std::string_view text) {
    parser.push_text(text, record);
    return record.answer;
  };
  EXPECT_EQ(shown("a\n\n"), "a");
  EXPECT_EQ(shown("<"), "a");
  EXPECT_EQ(shown("b"), "a\n\n<b");
  EXPECT_EQ(shown("</thi"), "a\n\n<b");
  EXPECT_EQ(shown("x\xE4"), "a\n\n<b</thix");
  EXPECT_EQ(shown("\xB8\xAD"
                  "STO"),
            "a\n\n<b</thix中");
  EXPECT_EQ(shown("ST"), "a\n\n<b</thix中STO");
  parser.finish(record);
  EXPECT_EQ(record.answer, "a\n\n<b</thix中STOST");
}

TEST(OutputParser, ReplacesIllFormedUtf8) {
  expect_all({
      {kAnswer, "a\xFF\xFE\xC3", "", "a\uFFFD\uFFFD\uFFFD"},
      {kReasoning, "\xE4\xB8</think>\xE4\xB8", "\uFFFD", "\uFFFD"},
  });
}

TEST(OutputParser, TakesTokensForMarkersAndTheirSpellingForText) {
  OutputRecord record;
  OutputParser parser(settings_of(OutputStart::kReasoning, {"</think>"}), Markers::kByToken);
  parser.push_text("\na</think>｜DSML｜ \xE4", record);
  parser.push_special(Special::kUser, record);  // no text, but it ends a character
  parser.push_text("b\n", record);
  EXPECT_EQ(parser.section(), Section::kReasoning);
  parser.push_special(Special::kThinkClose, record);
  EXPECT_EQ(record.reasoning, "a</think>｜DSML｜ \uFFFDb");
  parser.push_special(Special::kRefOpen, record);
  parser.push_special(Special::kDsml, record);        // no bracket before it
  parser.push_special(Special::kThinkClose, record);  // a stray one is dropped, and it is no text that could stop
  parser.push_text("\n\n<", record);
  EXPECT_EQ(record.answer, "<｜ref｜>｜DSML｜");
  parser.push_special(Special::kDsml, record);
  EXPECT_EQ(parser.section(), Section::kCalls);
  parser.push_text(" invoke name=\"f\"></", record);
  parser.push_special(Special::kDsml, record);
  parser.push_text(" invoke></", record);
  parser.push_special(Special::kDsml, record);
  parser.push_text(" calls>", record);
  parser.finish(record);
  EXPECT_EQ(record.calls, (std::vector<Call>{{"f", "{}", true}}));
  EXPECT_EQ(parser.section(), Section::kFinished);
}

TEST(OutputParser, StopsAtTheLettersOfTokensThatAreText) {
  OutputRecord record;
  OutputParser parser(settings_of(OutputStart::kAnswer, {"a｜DS", "x"}), Markers::kByToken);
  parser.push_text("ba", record);
  EXPECT_EQ(record.answer, "b");
  parser.push_special(Special::kDsml, record);
  EXPECT_EQ(parser.stop_index(), 0);
  parser.push_special(Special::kRefOpen, record);
  parser.push_text("x", record);
  parser.finish(record);
  EXPECT_EQ(record.answer, "b");
}

TEST(OutputParser, CanBeMovedInTheMiddle) {
  OutputRecord record;
  OutputParser first(kReasoning, Markers::kBySpelling);
  first.push_text("a</thi", record);
  OutputParser second = std::move(first);
  second.push_text("nk>b", record);
  second.finish(record);
  EXPECT_EQ(record.reasoning, "a");
  EXPECT_EQ(record.answer, "b");
}

TEST(OutputParserDeathTest, RefusesTextAfterTheEnd) {
  OutputRecord record;
  OutputParser parser(kAnswer, Markers::kBySpelling);
  parser.finish(record);
  EXPECT_DEATH(parser.push_text("x", record), "is_over_");
}

/// Seconds to parse `text` in single bytes.
double seconds_of(const OutputSettings& settings, std::string_view text) {
  OutputRecord record;
  const auto begin = std::chrono::steady_clock::now();
  OutputParser parser(settings, Markers::kBySpelling);
  for (size_t i = 0; i < text.size(); ++i) parser.push_text(text.substr(i, 1), record);
  parser.finish(record);
  EXPECT_EQ(record.answer.size() + record.reasoning.size(), text.size());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What is quadratic takes minutes here, what is linear some milliseconds.
TEST(OutputParser, StaysLinearOnHostileText) {
  constexpr size_t kBytes = 200'000;
  std::vector<std::string> stops;
  for (int i = 0; i < 60; ++i)
    stops.push_back(std::string(4000 + static_cast<size_t>(i), 'a') + static_cast<char>('!' + i));
  for (const std::string_view unit : {"\n", "<", "</think", "a", "\n</thin", "aaaaaaab"}) {
    std::string text = "x";
    while (text.size() < kBytes) text += unit;
    EXPECT_LT(seconds_of(settings_of(OutputStart::kReasoning), text), 2) << unit;
    EXPECT_LT(seconds_of(settings_of(OutputStart::kAnswer, stops), text), 2) << unit;
    EXPECT_LT(seconds_of(settings_of(OutputStart::kAnswer, {std::string(kBytes, '\n') + "y"}), text), 2) << unit;
  }
}

}  // namespace
}  // namespace deepinfer::protocol
