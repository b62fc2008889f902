// `deepinfer grammar check`: whether a constraint is accepted, and which texts it accepts. A refusal is an answer; texts
// are tokenised as the model would see them and every token is looked up in the mask of its place.
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/grammar_input.h"
#include "bench/grammar_replay.h"
#include "cli/commands.h"
#include "cli/constraint_options.h"
#include "cli/grammar_walk.h"
#include "cli/line_io.h"
#include "cli/values.h"

namespace deepinfer::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kInstanceBytesMax = int64_t{64} << 20;

/// What is found out about one constraint.
struct Answer {
  std::optional<std::string> name;
  grammar::Compiled compiled;
  double compile_us = 0;
  std::vector<bench::Replay> results;
  std::vector<std::string> walks, stuck_walks;  // random texts; why there is none
  std::vector<Json> masks;                      // of --masks, per text
  bench::GrammarTimes times;
};

/// A constraint that no text satisfies is not refused here: all that it says is known, and nothing is accepted.
bool is_refused(const Answer& answer) { return answer.compiled.refusal && !answer.compiled.refusal->is_empty; }

Json times_of(const std::vector<float>& times) {
  const bench::Percentiles p = bench::percentiles(times);
  Json histogram = Json::array();
  for (const bench::TimeBucket& bucket : bench::time_histogram(times)) histogram.push_back({bucket.up_to, bucket.n});
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99},          {"p999", p.p999},
          {"max", p.max}, {"n", p.n},     {"histogram", histogram}};
}

std::string line_of(const Json& object) { return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string json_line(const Answer& answer) {
  Json object = Json::object();
  if (answer.name) object["name"] = *answer.name;
  object["accepted"] = !is_refused(answer);
  if (is_refused(answer)) {
    const grammar::Refusal& refusal = *answer.compiled.refusal;
    object["refused"] = {{"pointer", refusal.pointer}, {"keyword", refusal.keyword}, {"reason", refusal.reason}};
  }
  if (!answer.compiled.ignored.empty()) {
    Json ignored = Json::array();
    for (const grammar::Ignored& item : answer.compiled.ignored)
      ignored.push_back({{"pointer", item.pointer}, {"keyword", item.keyword}});
    object["ignored"] = std::move(ignored);
  }
  Json results = Json::array();
  for (const bench::Replay& result : answer.results) results.push_back(result.accepted);
  object["results"] = std::move(results);
  object["compile_us"] = answer.compile_us;
  object["mask_us"] = times_of(answer.times.mask);
  object["descriptor_us"] = times_of(answer.times.descriptor);
  object["advance_us"] = times_of(answer.times.advance);
  if (!answer.masks.empty()) object["masks"] = answer.masks;
  if (!answer.walks.empty()) object["walks"] = answer.walks;
  if (!answer.stuck_walks.empty()) object["stuck_walks"] = answer.stuck_walks;
  return line_of(object);
}

void tell_problems(const bench::Replay& result, const std::string& name, size_t index) {
  const std::string text = "text " + std::to_string(index) + (name.empty() ? "" : " of " + shown(name));
  if (!result.bug.empty()) tell("deepinfer: BUG in the grammar: " + text + ": " + result.bug);
  if (!result.failure.empty())
    tell("deepinfer: " + text + ": nothing may follow byte " + std::to_string(result.n_bytes) + ": " + result.failure);
}

class GrammarCheck {
 public:
  GrammarCheck(const GrammarCheckArguments& arguments, bench::GrammarModel model, grammar::SchemaOptions options)
      : arguments_(arguments), model_(std::move(model)), options_(std::move(options)), random_(arguments.seed) {}

  /// One constraint and the files of --instance.
  Status run_one(const grammar::Constraint& constraint);
  /// The lines of --input; one that cannot be read is answered by an error, the others go on.
  Status run_lines();

 private:
  Result<Answer> answer(std::optional<std::string> name, const grammar::Constraint& constraint,
                        const std::vector<std::string>& texts);
  [[nodiscard]] Json masks_along(const std::shared_ptr<grammar::CompiledGrammar>& compiled,
                                 const std::string& text) const;
  void add_walks(Answer& answer);
  [[nodiscard]] Result<std::string> instance(const std::string& file, bool is_json) const;
  std::string answer_line(const std::string& line, bool* ok);
  [[nodiscard]] std::string plain(const Answer& answer) const;

  const GrammarCheckArguments& arguments_;
  const bench::GrammarModel model_;
  const grammar::SchemaOptions options_;
  std::mt19937_64 random_;
};

Result<Answer> GrammarCheck::answer(std::optional<std::string> name, const grammar::Constraint& constraint,
                                    const std::vector<std::string>& texts) {
  Answer answer{.name = std::move(name)};
  bench::TimedGrammar timed = bench::compile_timed(model_, constraint, answer.times);
  answer.compiled = std::move(timed.compiled);
  answer.compile_us = timed.compile_us;
  for (const std::string& text : texts) {
    if (!answer.compiled.grammar) {
      answer.results.emplace_back();  // what is refused accepts nothing
      continue;
    }
    Result<bench::Replay> result = bench::replay(model_, answer.compiled.grammar, text, answer.times);
    if (!result.ok()) return result.error();
    tell_problems(*result, answer.name.value_or(""), answer.results.size());
    answer.results.push_back(*std::move(result));
    if (arguments_.masks) answer.masks.push_back(masks_along(answer.compiled.grammar, text));
  }
  add_walks(answer);
  return answer;
}

/// The mask in front of each token as far as they are allowed, and behind the last: [[the token, the row], ...].
Json GrammarCheck::masks_along(const std::shared_ptr<grammar::CompiledGrammar>& compiled,
                               const std::string& text) const {
  const Result<std::vector<int32_t>> tokens = model_.tokenizer.encode(text, false);
  Json masks = Json::array();
  grammar::Matcher matcher(compiled);
  std::vector<grammar::MaskWord> row(static_cast<size_t>(model_.vocabulary->n_words()));
  for (size_t i = 0; tokens.ok() && i <= tokens->size(); ++i) {
    matcher.mask().fill(row);
    std::string words;
    for (const grammar::MaskWord word : row) {
      char hex[17];
      std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(word));
      words += hex;
    }
    const int32_t token = i < tokens->size() ? (*tokens)[i] : -1;
    masks.push_back({token, std::move(words)});
    if (token < 0 || !matcher.advance(token)) break;
  }
  return masks;
}

void GrammarCheck::add_walks(Answer& answer) {
  for (int32_t i = 0; i < arguments_.n_walks && answer.compiled.grammar; ++i) {
    Result<std::string> text =
        random_text(*model_.vocabulary, answer.compiled.grammar, arguments_.n_walk_bytes, random_);
    if (!text.ok()) {
      answer.stuck_walks.push_back(text.error().message);
      continue;
    }
    answer.walks.push_back(*std::move(text));
  }
}

Result<std::string> GrammarCheck::instance(const std::string& file, bool is_json) const {
  Result<std::string> text = read_file("--instance", file, kInstanceBytesMax);
  if (!text.ok() || !is_json || arguments_.raw) return text;
  Result<std::string> compact = bench::compact_json(*text);
  if (!compact.ok()) return Error{Code::kInvalidArgument, "--instance " + shown(file) + ": " + compact.error().message};
  return compact;
}

std::string GrammarCheck::plain(const Answer& answer) const {
  std::string text;
  if (is_refused(answer)) {
    const grammar::Refusal& refusal = *answer.compiled.refusal;
    text += "refused: ";
    for (const std::string& part : {refusal.pointer, refusal.keyword}) text += part.empty() ? "" : part + ": ";
    text += refusal.reason + "\n";
  } else {
    text += answer.compiled.refusal ? "accepted, but " + answer.compiled.refusal->reason + "\n" : "accepted\n";
  }
  for (const grammar::Ignored& item : answer.compiled.ignored)
    text += "ignored: " + item.pointer + ": " + item.keyword + "\n";
  for (size_t i = 0; i < answer.results.size(); ++i) {
    const bench::Replay& result = answer.results[i];
    text += arguments_.instances[i] + (result.accepted ? ": accepted" : ": not accepted");
    if (!result.accepted && answer.compiled.grammar)
      text += ", from byte " + std::to_string(result.n_bytes) + (arguments_.raw ? "" : " of the compact text");
    text += "\n";
  }
  for (const std::string& stuck : answer.stuck_walks) text += "no random text: " + stuck + "\n";
  for (const std::string& walk : answer.walks)
    text += Json(walk).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const bench::Percentiles mask = bench::percentiles(answer.times.mask);
  char times[160];
  if (answer.compiled.refusal) {
    std::snprintf(times, sizeof times, "answered in %.0f us\n", answer.compile_us);
  } else {
    std::snprintf(times, sizeof times, "compiled in %.0f us; %lld masks, us: p50 %.2f, p99 %.2f, max %.2f\n",
                  answer.compile_us, static_cast<long long>(mask.n), mask.p50, mask.p99, mask.max);
  }
  return text + times;
}

Status GrammarCheck::run_one(const grammar::Constraint& constraint) {
  const bool is_json = constraint.kind == grammar::Constraint::Kind::kJsonSchema ||
                       constraint.kind == grammar::Constraint::Kind::kJsonObject;
  std::vector<std::string> texts;
  for (const std::string& file : arguments_.instances) {
    Result<std::string> text = instance(file, is_json);
    if (!text.ok()) return text.error();
    texts.push_back(*std::move(text));
  }
  const Result<Answer> found = answer(arguments_.constraint.json_schema_file, constraint, texts);
  if (!found.ok()) return found.error();
  return Output::standard().write(arguments_.json ? json_line(*found) : plain(*found));
}

std::string GrammarCheck::answer_line(const std::string& line, bool* ok) {
  bench::GrammarLine read = bench::read_grammar_line(line);
  Error error;
  if (read.found.ok()) {
    std::vector<std::string> texts;
    for (bench::GrammarCase::Test& test : read.found->tests) texts.push_back(std::move(test.data));
    const Result<Answer> found = answer(
        read.name,
        {.kind = grammar::Constraint::Kind::kJsonSchema, .source = std::move(read.found->schema), .schema = options_},
        texts);
    if (found.ok()) return json_line(*found);
    error = found.error();
  } else {
    error = read.found.error();
  }
  *ok = false;
  Json object = Json::object();
  if (read.name) object["name"] = *read.name;
  object["error"] = {{"kind", code_name(error.code)}, {"message", error.message}};
  return line_of(object);
}

Status GrammarCheck::run_lines() {
  Result<LineReader> input = LineReader::open("--input", *arguments_.input);
  if (!input.ok()) return input.error();
  Output output = Output::standard();
  int64_t n_failed = 0;
  std::string line;
  while (true) {
    const Result<bool> more = input->next(line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    bool ok = true;
    const std::string text = answer_line(line, &ok);
    if (!ok) ++n_failed;
    if (const Status status = output.write(text); !status.ok()) return status;
  }
  if (n_failed == 0) return {};
  return Error{Code::kInvalidArgument,
               std::to_string(n_failed) + " of " + std::to_string(input->n_lines()) + " lines could not be done"};
}

}  // namespace

Status run_grammar_check(const GrammarCheckArguments& arguments) {
  Result<bench::GrammarModel> model = bench::GrammarModel::open(arguments.model_dir);
  if (!model.ok()) return model.error();
  Result<grammar::SchemaOptions> options = make_schema_options(arguments.constraint);
  if (!options.ok()) return options.error();
  if (arguments.input) return GrammarCheck(arguments, *std::move(model), *std::move(options)).run_lines();
  const Result<std::optional<grammar::Constraint>> constraint = make_constraint(arguments.constraint);
  if (!constraint.ok()) return constraint.error();
  return GrammarCheck(arguments, *std::move(model), *std::move(options)).run_one(**constraint);
}

}  // namespace deepinfer::cli
