#include "cli/arguments.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "cli/grammar_arguments.h"
#include "cli/option_setters.h"
#include "cli/option_table.h"
#include "cli/values.h"

namespace deepinfer::cli {

namespace {

constexpr const char* kVersion = "deepinfer " DI_VERSION "\n";

constexpr const char* kProgramHelp =
    R"(usage: deepinfer COMMAND [options]       deepinfer COMMAND --help shows the options of a command

  generate    text from a prompt
  batch       a file of requests, one JSON object a line; resumable
  score       log-probabilities and perplexity of given texts or token ids; logits
  tokenize    text to token ids and back
  render      request bodies (chat, messages, responses) to prompts
  parse       model output to response bodies and stream events
  grammar     check: JSON Schemas, regexes and grammars, and texts under them
  inspect     config, layer plan, tensors and memory plan of a model directory
  doctor      what this machine can run, what is missing, and whether the shipped model is whole
  bench       kernels | prefill | decode | protocol | grammar: speed, as JSON lines

  --help, --version
)";

std::optional<std::string> environment_value(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// --- options that several commands have
// -------------------------------------------------------------------------------

void add_backend(OptionTable& table, std::string& backend, int32_t& n_threads) {
  const auto words = [](std::initializer_list<const char*> list) {
    std::vector<std::pair<std::string, std::string>> choices;
    for (const char* word : list) choices.emplace_back(word, word);
    return choices;
  };
  auto accelerators = words({"auto", "cpu", "cuda", "ref"});
  accelerators.emplace_back("nvidia", "cuda");
  table
      .add({"--backend", "NAME", "auto, cpu, cuda or ref (auto)",
            set_choice(backend, words({"auto", "cpu", "cuda", "ref"}))})
      .variables = {{"DEEPINFER_ACCELERATOR", set_choice(backend, accelerators)}};
  table.add({"--threads", "N", "worker threads (every processor there is)", set_integer(n_threads, 1, kThreadsMax)});
}

/// What decides how much memory is reserved.
void add_capacity(OptionTable& table, EngineOptions& engine) {
  table.add({"--context", "N", "most tokens of prompt and answer together (the model's limit)",
             set_integer(engine.n_context, 1, kContextMax)});
  table.add({"--kv-bytes", "SIZE", "memory for the global KV, such as 512M or 4G (one full context)",
             [&engine](const std::string& text) -> Status {
               const auto value = parse_size(text);
               if (!value.ok()) return value.error();
               engine.kv_bytes = *value;
               return {};
             }});
  table.add(
      {"--max-batch-tokens", "N", "most rows of a step (512)", set_integer(engine.n_batch_tokens, 1, kBatchTokensMax)});
}

const std::vector<std::pair<std::string, PrefillTail>>& prefill_tails() {
  static const std::vector<std::pair<std::string, PrefillTail>> kTails = {
      {"full", PrefillTail::kFull}, {"exact", PrefillTail::kExact}, {"compact", PrefillTail::kCompact}};
  return kTails;
}

void add_numerics(OptionTable& table, EngineOptions& engine) {
  table
      .add({"--numerics", "MODE", "deterministic, fast or reference (deterministic)",
            set_choice<Numerics>(engine.numerics, {{"deterministic", Numerics::kDeterministic},
                                                   {"fast", Numerics::kFast},
                                                   {"reference", Numerics::kReference}})})
      .variables = {{"DEEPINFER_BATCH_INVARIANT",
                     set_choice<Numerics>(engine.numerics, {{"0", Numerics::kFast}, {"1", Numerics::kDeterministic}})}};
}

void add_prefill_tail(OptionTable& table, EngineOptions& engine) {
  table
      .add({"--prefill-tail", "MODE", "prompt rows the late layers run on: full, exact or compact (full)",
            set_choice(engine.prefill_tail, prefill_tails())})
      .variables = {{"DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE", set_choice(engine.prefill_tail, prefill_tails())}};
  table
      .add({"--compact-rows", "N", "prompt rows that --prefill-tail compact keeps (window + 2 * (draft block + 1))",
            set_integer(engine.n_compact_rows, 1, kBatchTokensMax)})
      .variables = {{"DEEPINFER_YOCO_PREFILL_KEEP_TOKENS", set_integer(engine.n_compact_rows, 1, kBatchTokensMax)}};
}

/// Options whose other values come with later parts of the engine: refused by name, never ignored.
void add_fixed(OptionTable& table) {
  const std::string no_speculation = "this build has no speculation";
  table.add({"--spec", "MODE", "speculation: off", accept_only("off", no_speculation)}).variables = {
      {"DEEPINFER_ENABLE_MTP_VARLEN", accept_only("0", no_speculation)},
      {"DEEPINFER_USE_NEXTN_DECODE", accept_only("0", no_speculation)}};
  table.add({"--prefix-replay", "MODE", "prefix cache: off", accept_only("off", "this build has no prefix cache")});
  table.add({"--max-seqs", "N", "sequences at the same time: 1",
             accept_only("1", "this build runs one sequence after another")});
  table.refuse("--verify");
}

void add_log_level(OptionTable& table, LogLevel& target) {
  table.add({"--log-level", "L", "quiet, error, warning or info (info: progress is shown)",
             set_choice<LogLevel>(target, {{"quiet", LogLevel::kQuiet},
                                           {"error", LogLevel::kError},
                                           {"warning", LogLevel::kWarning},
                                           {"info", LogLevel::kInfo}})});
}

void add_engine(OptionTable& table, EngineOptions& engine, LogLevel& log_level) {
  add_backend(table, engine.backend, engine.n_threads);
  add_numerics(table, engine);
  add_prefill_tail(table, engine);
  add_capacity(table, engine);
  add_fixed(table);
  add_log_level(table, log_level);
}

void add_no_special(OptionTable& table, bool& special) {
  table.add({"--no-special", "", "added tokens in text are ordinary characters", set_flag(special, false)});
}

void add_stop_id(OptionTable& table, std::vector<int32_t>& stop_ids) {
  table
      .add({"--stop-id", "N", "token id that ends an answer besides 1 and 2; may be repeated",
            [&stop_ids](const std::string& text) -> Status {
              const auto id = parse_integer(text, 0, INT32_MAX);
              if (!id.ok()) return id.error();
              stop_ids.push_back(static_cast<int32_t>(*id));
              return {};
            }})
      .is_repeatable = true;
}

// --- commands
// ---------------------------------------------------------------------------------------------------------

using Words = std::span<const std::string>;

void add_sampling(OptionTable& table, Request& request) {
  table.add({"--max-tokens", "N", "most tokens of an answer (256)", set_integer(request.max_tokens, 0, kContextMax)});
  table.add({"--temperature", "T", "0 is greedy (0)", [&request](const std::string& text) -> Status {
               const auto value = parse_float(text, 0);
               if (!value.ok()) return value.error();
               request.sampling.temperature = *value;
               return {};
             }});
  table.add({"--top-k", "K", "draw from the K most probable tokens; 0 or -1: off (0)",
             set_integer(request.sampling.top_k, -1, INT64_MAX)});
  table.add({"--top-p", "P", "draw from the fewest tokens that reach P; 1: off (1)",
             set_unit_interval(request.sampling.top_p)});
  table.add({"--min-p", "P", "draw from tokens of at least P times the best one's probability (0)",
             set_unit_interval(request.sampling.min_p)});
  table.add({"--seed", "S", "of the random numbers (0)", [&request](const std::string& text) -> Status {
               const auto value = parse_seed(text);
               if (!value.ok()) return value.error();
               request.sampling.seed = *value;
               return {};
             }});
  table.add({"--n", "N", "answers to the prompt (1)", set_integer(request.n_sequences, 1, kSequencesPerRequestMax)});
}

Status add_stop_string(Request& request, const std::string& text) {
  if (text.empty() || static_cast<int64_t>(text.size()) > kStopStringBytesMax) {
    return bad_usage("must have between 1 and " + std::to_string(kStopStringBytesMax) + " bytes");
  }
  if (const auto offset = ill_formed_offset(text)) {
    return bad_usage("is not valid UTF-8 at byte " + std::to_string(*offset));
  }
  if (static_cast<int64_t>(request.stop_strings.size()) == kStopStringsMax) {
    return bad_usage("is one too many, the limit is " + std::to_string(kStopStringsMax));
  }
  request.stop_strings.push_back(text);
  return {};
}

/// Where the options of --chat are collected; they count only beside it.
struct ChatOptions {
  bool chat = false;
  ChatArguments arguments;
};

Status set_thinking(ChatArguments& chat, const std::string& text) {
  chat.effort.reset();
  chat.thinking = text != "off";
  if (text == "off" || text == "on") return {};
  const auto effort = parse_integer(text, 1, 100);
  if (!effort.ok()) return bad_usage("must be off, on or an effort between 1 and 100");
  chat.effort = static_cast<int32_t>(*effort);
  return {};
}

void add_chat(OptionTable& table, ChatOptions& chat) {
  table.add({"--chat", "", "the prompt is a user's turn of a conversation", set_flag(chat.chat)});
  table.add({"--system", "TEXT", "system message (with --chat)", [&chat](const std::string& text) -> Status {
               if (const auto offset = ill_formed_offset(text)) {
                 return bad_usage("is not valid UTF-8 at byte " + std::to_string(*offset));
               }
               chat.arguments.system = text;
               return {};
             }});
  table.add({"--thinking", "E", "off, on or an effort of 1 to 100 (on, with --chat)",
             [&chat](const std::string& text) { return set_thinking(chat.arguments, text); }});
  table.add(
      {"--tools", "F", "JSON array of tools the model may call (with --chat)", set_name(chat.arguments.tools_file)});
}

/// What --chat needs and excludes.
Status check_chat(const OptionTable& table, const ChatOptions& chat) {
  if (chat.chat) {
    if (table.given("--tokens")) return bad_usage("--chat and --tokens exclude each other: a turn is text");
    if (table.given("--no-special"))
      return bad_usage("--no-special does not go with --chat, where text is never searched for special tokens");
    return {};
  }
  for (const char* name : {"--system", "--thinking", "--tools"}) {
    if (table.given(name)) return bad_usage(std::string(name) + " needs --chat");
  }
  return {};
}

OptionTable generate_table(GenerateArguments& a, ChatOptions& chat) {
  OptionTable table("deepinfer generate", "[--model DIR] (--prompt TEXT | --prompt-file F | --tokens IDS) [options]");
  add_model(table, a.engine.model_dir);
  table.add(
      {"--prompt", "TEXT", "the prompt; the begin token is put in front", [&a](const std::string& text) -> Status {
         if (text.empty()) return bad_usage("the prompt is empty");
         if (const auto offset = ill_formed_offset(text)) {
           return bad_usage("the prompt is not valid UTF-8 at byte " + std::to_string(*offset));
         }
         a.prompt = text;
         return {};
       }});
  table.add(
      {"--prompt-file", "F", "the prompt is the text of this file; - is standard input", set_name(a.prompt_file)});
  table.add({"--tokens", "1,2,3", "the prompt as token ids, used as they are", [&a](const std::string& text) -> Status {
               auto ids = parse_ids(text, ',');
               if (!ids.ok()) return ids.error();
               a.tokens = *std::move(ids);
               return {};
             }});
  add_chat(table, chat);
  add_no_special(table, a.special);
  add_sampling(table, a.request);
  table
      .add({"--stop", "STR", "text that ends an answer, not part of it; may be repeated",
            [&a](const std::string& text) { return add_stop_string(a.request, text); }})
      .is_repeatable = true;
  add_stop_id(table, a.request.stop_ids);
  table.add({"--logprobs", "N", "log-probabilities of the tokens and the N best ones (with --json)",
             set_integer(a.request.n_logprobs, 0, kLogprobsMax)});
  table.add({"--json", "", "one JSON object an answer and line", set_flag(a.json)});
  table.add({"--stats", "", "times and speed, on standard error and in the JSON", set_flag(a.stats)});
  add_engine(table, a.engine, a.log_level);
  add_constraint(table, a.constraint);
  table.refuse("--image");
  return table;
}

Result<Arguments> parse_generate(Words words) {
  GenerateArguments a;
  ChatOptions chat;
  OptionTable table = generate_table(a, chat);
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  const int n_prompts = int{a.prompt.has_value()} + int{a.prompt_file.has_value()} + int{a.tokens.has_value()};
  if (n_prompts != 1) {
    return bad_usage("exactly one of --prompt, --prompt-file and --tokens is needed, " + std::to_string(n_prompts) +
                     " are given");
  }
  if (const Status status = check_chat(table, chat); !status.ok()) return status.error();
  if (const Status status = check_constraint(table, a.constraint); !status.ok()) return status.error();
  if (a.constraint.given() && table.given("--tools"))
    return bad_usage("--tools does not go with a constraint on the answer, which would let no call through");
  if (chat.chat) a.chat = std::move(chat.arguments);
  if (a.request.n_logprobs && !a.json) {
    return bad_usage("--logprobs " + std::to_string(*a.request.n_logprobs) +
                     ": needs --json, which has a place for them");
  }
  return Arguments(std::move(a));
}

Status need(const std::string& value, const char* option) {
  if (!value.empty()) return {};
  return bad_usage(std::string(option) + " is needed");
}

Result<Arguments> parse_batch(Words words) {
  BatchArguments a;
  OptionTable table("deepinfer batch", "[--model DIR] --input F --output F [options]");
  add_model(table, a.engine.model_dir);
  table.add({"--input", "F", "requests, one JSON object a line; - is standard input", set_name(a.input)});
  table.add({"--output", "F", "answers in the same order; what is there already is kept and not done again",
             set_name(a.output)});
  add_no_special(table, a.special);
  add_stop_id(table, a.stop_ids);
  table.add({"--stats", "", "adds times to the answers", set_flag(a.stats)});
  add_engine(table, a.engine, a.log_level);
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (const Status status = need(a.input, "--input"); !status.ok()) return status.error();
  if (const Status status = need(a.output, "--output"); !status.ok()) return status.error();
  return Arguments(std::move(a));
}

Result<Arguments> parse_score(Words words) {
  ScoreArguments a;
  OptionTable table("deepinfer score", "[--model DIR] --input F [--output F] [options]");
  add_model(table, a.engine.model_dir);
  table.add({"--input", "F", "lines {\"name\"?, \"tokens\":[...]} or {\"name\"?, \"text\"}; - is standard input",
             set_name(a.input)});
  table.add({"--output", "F", "answers, one a line; - is standard output (-)", set_name(a.output)});
  table.add(
      {"--dump-logits", "F", "F32 logits [tokens, vocab] of every input, a safetensors file", set_name(a.dump_logits)});
  add_no_special(table, a.special);
  add_backend(table, a.engine.backend, a.engine.n_threads);
  add_numerics(table, a.engine);
  table.add({"--prefill-tail", "MODE", "full: scoring runs every row", accept_only("full", "score needs every row")});
  add_capacity(table, a.engine);
  add_fixed(table);
  add_log_level(table, a.log_level);
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (const Status status = need(a.input, "--input"); !status.ok()) return status.error();
  return Arguments(std::move(a));
}

Result<Arguments> parse_tokenize(Words words) {
  TokenizeArguments a;
  OptionTable table("deepinfer tokenize", "[--model DIR] [options] <lines >lines");
  add_model(table, a.model_dir);
  table.add({"--decode", "", "lines of ids to text (else lines of text to ids)", set_flag(a.decode)});
  table.add({"--json", "", "a JSON object a line, which says its direction itself", set_flag(a.json)});
  table.add({"--special", "", "added tokens in text are found (default)", set_flag(a.special)});
  add_no_special(table, a.special);
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (table.given("--special") && table.given("--no-special"))
    return bad_usage("--special and --no-special exclude each other");
  if (a.json && !a.special)
    return bad_usage("--no-special does not go with --json, whose lines have \"special\":false for it");
  return Arguments(std::move(a));
}

Result<Arguments> parse_protocol(Words words, bool is_parse) {
  ProtocolArguments a;
  a.is_parse = is_parse;
  OptionTable table(std::string("deepinfer ") + (is_parse ? "parse" : "render"),
                    "[--model DIR] --api NAME <lines >lines");
  add_model(table, a.model_dir);
  table.add({"--api", "NAME", "form of the requests: chat, messages or responses (required)",
             set_choice<protocol::Api>(a.api, {{"chat", protocol::Api::kChat},
                                               {"messages", protocol::Api::kMessages},
                                               {"responses", protocol::Api::kResponses}})});
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (!table.given("--api")) return bad_usage("--api is needed: chat, messages or responses");
  return Arguments(std::move(a));
}

Result<Arguments> parse_inspect(Words words) {
  InspectArguments a;
  OptionTable table("deepinfer inspect", "[--model DIR] [options]");
  add_model(table, a.engine.model_dir);
  table.add({"--json", "", "as one JSON object", set_flag(a.json)});
  add_capacity(table, a.engine);
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  return Arguments(std::move(a));
}

Result<Arguments> parse_doctor(Words words) {
  DoctorArguments a;
  OptionTable table("deepinfer doctor", "[options]");
  table.add({"--json", "", "as one JSON object", set_flag(a.json)});
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  return Arguments(a);
}

// --- bench
// ------------------------------------------------------------------------------------------------------------

Result<Arguments> parse_kernel_bench(Words words) {
  KernelBenchArguments a;
  OptionTable table("deepinfer bench kernels", "[options]");
  add_backend(table, a.backend, a.n_threads);
  table.add({"--filter", "STR", "only cases with this in their name", set_name(a.filter)});
  table.add({"--small", "", "the small shapes of the contract tests", set_flag(a.small)});
  table.add({"--warm", "", "caches are not emptied between runs", set_flag(a.warm)});
  table.add({"--runs", "N", "least number of runs of a case (5)", set_integer(a.n_runs, 5, 1000)});
  table.refuse("--plot");
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  return Arguments(std::move(a));
}

Status parse_lengths(const std::string& text, std::vector<int32_t>& lengths) {
  auto values = parse_ids(text, ',');
  if (!values.ok() || std::ranges::any_of(*values, [](int32_t n) { return n < 1 || n > kContextMax; })) {
    return bad_usage("must be numbers of tokens between 1 and " + std::to_string(kContextMax) +
                     ", with commas between");
  }
  lengths = *std::move(values);
  return {};
}

Result<Arguments> parse_model_bench(Words words, bool is_decode) {
  ModelBenchArguments a;
  a.is_decode = is_decode;
  a.lengths = is_decode ? std::vector<int32_t>{128, 1024} : std::vector<int32_t>{128, 512, 1024};
  OptionTable table(std::string("deepinfer bench ") + (is_decode ? "decode" : "prefill"), "[--model DIR] [options]");
  add_model(table, a.engine.model_dir);
  table.add({"--tokens", "N,N,...",
             is_decode ? "tokens before the first step (128,1024)" : "prompt lengths (128,512,1024)",
             [&a](const std::string& text) { return parse_lengths(text, a.lengths); }});
  if (is_decode) table.add({"--steps", "N", "decode steps of a run (16)", set_integer(a.n_steps, 1, 100'000)});
  table.add({"--runs", "N", "runs of each length, in turns (5)", set_integer(a.n_runs, 5, 1000)});
  add_engine(table, a.engine, a.log_level);
  table.refuse("--plot");
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  return Arguments(std::move(a));
}

Result<Arguments> parse_protocol_bench(Words words) {
  ProtocolBenchArguments a;
  OptionTable table("deepinfer bench protocol", "[options]");
  add_model(table, a.model_dir);
  table.add({"--runs", "N", "runs of each case, in turns (5)", set_integer(a.n_runs, 5, 1000)});
  table.refuse("--plot");
  if (const Status status = table.parse(words, environment_value); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  return Arguments(std::move(a));
}

Result<Arguments> parse_bench(Words words) {
  const std::string what = words.empty() ? "" : words.front();
  if (what == "kernels") return parse_kernel_bench(words.subspan(1));
  if (what == "prefill" || what == "decode") return parse_model_bench(words.subspan(1), what == "decode");
  if (what == "protocol") return parse_protocol_bench(words.subspan(1));
  if (what == "grammar") return parse_grammar_bench(words.subspan(1), environment_value);
  for (const char* later : {"sweep", "serve"}) {
    if (what == later) return bad_usage("bench " + what + ": not available in this build");
  }
  const std::string usage = "usage: deepinfer bench kernels | prefill | decode | protocol | grammar [options]";
  if (what == "--help" || what == "-h") return Arguments(ShowText{usage + "\n"});
  return bad_usage(what.empty() ? usage
                                : "bench " + shown(what) + ": must be kernels, prefill, decode, protocol or grammar");
}

}  // namespace

Result<Arguments> parse_arguments(std::span<const std::string> arguments) {
  if (arguments.empty()) return bad_usage("a command is needed; see deepinfer --help");
  const std::string& command = arguments.front();
  const Words rest = arguments.subspan(1);
  if (command == "--help" || command == "-h" || command == "help") return Arguments(ShowText{kProgramHelp});
  if (command == "--version") return Arguments(ShowText{kVersion});
  if (command == "generate") return parse_generate(rest);
  if (command == "batch") return parse_batch(rest);
  if (command == "score") return parse_score(rest);
  if (command == "tokenize") return parse_tokenize(rest);
  if (command == "render" || command == "parse") return parse_protocol(rest, command == "parse");
  if (command == "inspect") return parse_inspect(rest);
  if (command == "doctor") return parse_doctor(rest);
  if (command == "bench") return parse_bench(rest);
  if (command == "grammar") return parse_grammar(rest, environment_value);
  for (const char* later : {"chat", "serve"}) {
    if (command == later) return bad_usage(command + ": not available in this build");
  }
  return bad_usage("unknown command " + shown(command) + "; see deepinfer --help");
}

}  // namespace deepinfer::cli
