// The command line and the environment variables, parsed and checked once into plain structs. The only place of the
// program that reads the environment (docs/OPTIONS.md lists all of it). Main thread, at the start.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "deepinfer/constraint.h"
#include "deepinfer/options.h"
#include "deepinfer/request.h"
#include "deepinfer/status.h"
#include "protocol/api_error.h"

namespace deepinfer::cli {

/// How much goes to standard error besides what was asked for (--stats) and the one line of a failure.
enum class LogLevel : uint8_t {
  kQuiet,    // nothing
  kError,    // nothing: the level before warnings
  kWarning,  // what the engine found odd in the model directory
  kInfo,     // and progress
};

/// A text to print, and success: --help, --version.
struct ShowText {
  std::string text;
};

/// --chat and what goes with it: the prompt becomes the user's turn of a conversation.
struct ChatArguments {
  std::optional<std::string> system;
  bool thinking = true;
  std::optional<int32_t> effort;          // 1 to 100
  std::optional<std::string> tools_file;  // a JSON array in the form of Chat Completions `tools`
};

/// The constraint on a text and how schemas are read; constraint_options.h makes a grammar::Constraint of it.
struct ConstraintArguments {
  std::optional<std::string> regex;  // at most one of these four
  std::optional<std::string> json_schema_file;
  std::optional<std::string> ebnf_file;
  bool json_object = false;
  grammar::SchemaOptions schema;  // without its remotes, which are:
  struct Remote {
    std::string url, dir;  // every file below `dir` at `url` + its relative path
  };
  std::vector<Remote> remotes;

  [[nodiscard]] bool given() const { return regex || json_schema_file || ebnf_file || json_object; }
};

struct GenerateArguments {
  EngineOptions engine;
  LogLevel log_level = LogLevel::kInfo;
  std::optional<ChatArguments> chat;
  ConstraintArguments constraint;
  Request request;  // without its prompt, which is exactly one of these:
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::vector<int32_t>> tokens;
  bool special = true;
  bool json = false;
  bool stats = false;
};

struct BatchArguments {
  EngineOptions engine;
  LogLevel log_level = LogLevel::kInfo;
  std::string input;
  std::string output;
  std::vector<int32_t> stop_ids;  // added to those of every request
  bool special = true;
  bool stats = false;
};

struct ScoreArguments {
  EngineOptions engine;
  LogLevel log_level = LogLevel::kInfo;
  std::string input;
  std::string output = "-";
  std::optional<std::string> dump_logits;
  bool special = true;
};

struct TokenizeArguments {
  std::string model_dir;
  bool decode = false;
  bool json = false;
  bool special = true;
};

/// render and parse: which of the three wire formats the lines are in.
struct ProtocolArguments {
  std::string model_dir;
  protocol::Api api = protocol::Api::kChat;
  bool is_parse = false;
};

/// grammar check: one constraint, or the schemas of `input`.
struct GrammarCheckArguments {
  std::string model_dir;
  ConstraintArguments constraint;
  std::vector<std::string> instances;  // files
  std::optional<std::string> input;
  bool raw = false;  // instances as they are, not written compact
  bool json = false;
  bool masks = false;   // rows in the answer
  int32_t n_walks = 0;  // random texts to be made
  int32_t n_walk_bytes = 400;
  uint64_t seed = 0;
};

struct InspectArguments {
  EngineOptions engine;
  bool json = false;
};

struct DoctorArguments {
  bool json = false;
};

struct KernelBenchArguments {
  std::string backend = "auto";
  int32_t n_threads = 0;
  std::string filter;
  bool small = false;
  bool warm = false;
  int32_t n_runs = 5;
};

struct ProtocolBenchArguments {
  std::string model_dir;
  int32_t n_runs = 5;
};

struct GrammarBenchArguments {
  std::string model_dir;
  std::string input;
  grammar::SchemaOptions schema;
  int64_t n_schemas_max = 0;  // 0: all
  bool json = false;
};

struct ModelBenchArguments {
  EngineOptions engine;
  LogLevel log_level = LogLevel::kInfo;
  bool is_decode = false;
  std::vector<int32_t> lengths;
  int32_t n_steps = 16;
  int32_t n_runs = 5;
};

using Arguments =
    std::variant<ShowText, GenerateArguments, BatchArguments, ScoreArguments, TokenizeArguments, ProtocolArguments,
                 GrammarCheckArguments, InspectArguments, DoctorArguments, KernelBenchArguments, ModelBenchArguments,
                 ProtocolBenchArguments, GrammarBenchArguments>;

/// `arguments` without the program's name. A model directory stays as it was given, empty when it was not: see
/// resolve_model() in shipped_model.h.
/// Errors   kInvalidArgument names option, value and limit
Result<Arguments> parse_arguments(std::span<const std::string> arguments);

}  // namespace deepinfer::cli
