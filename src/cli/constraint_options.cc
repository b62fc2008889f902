#include "cli/constraint_options.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "cli/line_io.h"
#include "cli/values.h"
#include "text/json.h"

namespace deepinfer::cli {

namespace {

namespace fs = std::filesystem;

// Above what a compilation takes, so that it is the one that refuses.
constexpr int64_t kSourceBytesMax = int64_t{64} << 20;
constexpr size_t kRemotesMax = 10'000;
constexpr int64_t kRemotesBytesMax = int64_t{256} << 20;

Error bad(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

/// Adds every file below the folder.
Status read_remotes(const ConstraintArguments::Remote& remote, grammar::Remotes& remotes, int64_t& n_bytes_left) {
  const std::string what = "--remotes " + shown(remote.dir);
  std::string base = remote.url;
  while (!base.empty() && base.back() == '/') base.pop_back();
  std::error_code error;
  fs::recursive_directory_iterator files(remote.dir, error);
  for (; !error && files != fs::end(files); files.increment(error)) {
    if (!files->is_regular_file()) continue;
    if (remotes.size() == kRemotesMax) return bad(what + ": more than " + std::to_string(kRemotesMax) + " files");
    Result<std::string> text = read_file("--remotes", files->path().string(), n_bytes_left);
    if (!text.ok()) return text.error();
    n_bytes_left -= static_cast<int64_t>(text->size());
    remotes[base + "/" + files->path().lexically_relative(remote.dir).generic_string()] = *std::move(text);
  }
  if (error) return Error{Code::kIo, what + ": " + error.message()};
  return {};
}

Status check_json(const std::string& file, const std::string& text) {
  // Deeper than what any schema may be: that is refused by its reader.
  const Result<json::Value> value = json::parse(text, {.depth_max = 10'100});
  return value.ok() ? Status() : bad("--json-schema " + shown(file) + ": " + value.error().message);
}

}  // namespace

Result<grammar::SchemaOptions> make_schema_options(const ConstraintArguments& arguments) {
  grammar::SchemaOptions options = arguments.schema;
  if (arguments.remotes.empty()) return options;
  auto remotes = std::make_shared<grammar::Remotes>();
  int64_t n_bytes_left = kRemotesBytesMax;
  for (const ConstraintArguments::Remote& remote : arguments.remotes) {
    if (const Status status = read_remotes(remote, *remotes, n_bytes_left); !status.ok()) return status.error();
  }
  options.remotes = std::move(remotes);
  return options;
}

Result<std::optional<grammar::Constraint>> make_constraint(const ConstraintArguments& arguments) {
  using Kind = grammar::Constraint::Kind;
  if (!arguments.given()) return std::optional<grammar::Constraint>();
  Result<grammar::SchemaOptions> options = make_schema_options(arguments);
  if (!options.ok()) return options.error();
  grammar::Constraint constraint{.schema = *std::move(options)};
  if (arguments.regex) {
    constraint.kind = Kind::kRegex;
    constraint.source = *arguments.regex;
  } else if (arguments.json_object) {
    constraint.kind = Kind::kJsonObject;
  } else {
    const bool is_schema = arguments.json_schema_file.has_value();
    const std::string& file = is_schema ? *arguments.json_schema_file : *arguments.ebnf_file;
    Result<std::string> text = read_file(is_schema ? "--json-schema" : "--ebnf", file, kSourceBytesMax);
    if (!text.ok()) return text.error();
    constraint.kind = is_schema ? Kind::kJsonSchema : Kind::kEbnf;
    constraint.source = *std::move(text);
    if (is_schema) {
      if (const Status status = check_json(file, constraint.source); !status.ok()) return status.error();
    } else if (const auto offset = ill_formed_offset(constraint.source)) {
      return bad("--ebnf " + shown(file) + ": not valid UTF-8 at byte " + std::to_string(*offset));
    }
  }
  return std::optional(std::move(constraint));
}

}  // namespace deepinfer::cli
