#include "cli/grammar_arguments.h"

#include <cstdint>
#include <utility>

#include "cli/option_setters.h"

namespace deepinfer::cli {

namespace {

using grammar::Dialect;
using grammar::Escapes;
using grammar::FormatPolicy;
using grammar::PropertyOrder;

constexpr int32_t kBlanksMax = 1000;
constexpr int32_t kWalksMax = 1'000'000;

Status set_whitespace(grammar::SchemaOptions& schema, const std::string& text) {
  const size_t comma = text.find(',');
  if (comma == std::string::npos) return bad_usage("must be two numbers with a comma between, such as 2,40");
  const auto line_ends = parse_integer(std::string_view(text).substr(0, comma), 0, kBlanksMax);
  if (!line_ends.ok()) return bad_usage("line ends: " + line_ends.error().message);
  const auto blanks = parse_integer(std::string_view(text).substr(comma + 1), 0, kBlanksMax);
  if (!blanks.ok()) return bad_usage("blanks: " + blanks.error().message);
  schema.line_ends_max = static_cast<int32_t>(*line_ends);
  schema.blanks_max = static_cast<int32_t>(*blanks);
  return {};
}

Status add_remote(std::vector<ConstraintArguments::Remote>& remotes, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return bad_usage("must be URL=DIR, such as http://localhost:1234=remotes");
  remotes.push_back({text.substr(0, equals), text.substr(equals + 1)});
  return {};
}

/// How schemas are read; without remotes.
void add_schema(OptionTable& table, grammar::SchemaOptions& schema) {
  const bool is_any = schema.order == PropertyOrder::kAny;
  table.add(
      {"--property-order", "ORDER",
       std::string("any, or schema: declared members in the schema's order (") + (is_any ? "any)" : "schema)"),
       set_choice<PropertyOrder>(schema.order, {{"any", PropertyOrder::kAny}, {"schema", PropertyOrder::kSchema}})});
  const bool any_escapes = schema.escapes == Escapes::kAny;
  table.add({"--escapes", "E",
             std::string("needed, or any: escapes in names and in strings that are not of any text (") +
                 (any_escapes ? "any)" : "needed)"),
             set_choice<Escapes>(schema.escapes, {{"needed", Escapes::kNeeded}, {"any", Escapes::kAny}})});
  table.add({"--dialect", "D", "of schemas without $schema: draft-04, draft-06, draft-07, 2019-09 or 2020-12 (2020-12)",
             set_choice<Dialect>(schema.dialect, {{"draft-04", Dialect::kDraft4},
                                                  {"draft-06", Dialect::kDraft6},
                                                  {"draft-07", Dialect::kDraft7},
                                                  {"2019-09", Dialect::kDraft2019},
                                                  {"2020-12", Dialect::kDraft2020}})});
  table.add({"--format", "P", "assert or annotate: whether formats of strings are enforced (assert)",
             set_choice<FormatPolicy>(schema.formats,
                                      {{"assert", FormatPolicy::kAssert}, {"annotate", FormatPolicy::kAnnotate}})});
  table.add({"--whitespace", "L,B", "most line ends and most other blanks in a row between JSON tokens (2,40)",
             [&schema](const std::string& text) { return set_whitespace(schema, text); }});
}

Result<Arguments> parse_check(std::span<const std::string> words, const Environment& environment) {
  GrammarCheckArguments a;
  a.constraint.schema.order = PropertyOrder::kAny;
  a.constraint.schema.escapes = Escapes::kAny;
  OptionTable table("deepinfer grammar check",
                    "[--model DIR] (--json-schema F | --regex R | --ebnf F | --json-object | --input F) [options]");
  add_model(table, a.model_dir);
  add_constraint(table, a.constraint);
  table
      .add({"--instance", "F", "a text to try; JSON is written compact first, for schemas; may be repeated",
            [&a](const std::string& text) -> Status {
              if (text.empty()) return bad_usage("must not be empty");
              a.instances.push_back(text);
              return {};
            }})
      .is_repeatable = true;
  table.add({"--raw", "", "instances are tried byte by byte as they are", set_flag(a.raw)});
  table.add({"--input", "F", "lines {\"name\",\"schema\",\"tests\":[{\"valid\",\"data\"}]}; - is standard input",
             set_name(a.input)});
  table.add({"--json", "", "the answer as a JSON object (always so with --input)", set_flag(a.json)});
  table.add({"--masks", "",
             "with --json or --input: the rows of masks along each text, as hexadecimal words of 64 tokens",
             set_flag(a.masks)});
  table.add({"--walk", "N", "make N random texts under each constraint (0)", set_integer(a.n_walks, 0, kWalksMax)});
  table.add({"--walk-bytes", "N", "from this length on a random text is brought to its end (400)",
             set_integer(a.n_walk_bytes, 0, 1'000'000)});
  table.add({"--seed", "S", "of the random texts (0)", [&a](const std::string& text) -> Status {
               const auto value = parse_seed(text);
               if (!value.ok()) return value.error();
               a.seed = *value;
               return {};
             }});
  if (const Status status = table.parse(words, environment); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (a.constraint.given() == a.input.has_value())
    return bad_usage("exactly one of --json-schema, --regex, --ebnf, --json-object and --input is needed");
  if (a.input && !a.instances.empty())
    return bad_usage("--instance does not go with --input, whose lines have \"tests\"");
  if (a.masks && !a.json && !a.input) return bad_usage("--masks needs --json or --input");
  if (a.raw && a.instances.empty()) return bad_usage("--raw needs --instance");
  if (const Status status = check_constraint(table, a.constraint, a.input.has_value()); !status.ok())
    return status.error();
  return Arguments(std::move(a));
}

}  // namespace

void add_constraint(OptionTable& table, ConstraintArguments& constraint) {
  table.add(
      {"--regex", "R", "the text matches this pattern as a whole", [&constraint](const std::string& text) -> Status {
         if (const auto offset = ill_formed_offset(text))
           return bad_usage("is not valid UTF-8 at byte " + std::to_string(*offset));
         constraint.regex = text;
         return {};
       }});
  table.add({"--json-schema", "F", "the text is JSON that is valid under the schema in this file",
             set_name(constraint.json_schema_file)});
  table.add({"--json-object", "", "the text is a JSON object", set_flag(constraint.json_object)});
  table.add({"--ebnf", "F", "the text follows the grammar in this file", set_name(constraint.ebnf_file)});
  add_schema(table, constraint.schema);
  table
      .add({"--remotes", "URL=DIR",
            "schemas for $ref: each file below DIR at URL and its relative path; may be repeated",
            [&constraint](const std::string& text) { return add_remote(constraint.remotes, text); }})
      .is_repeatable = true;
}

Status check_constraint(const OptionTable& table, const ConstraintArguments& constraint, bool has_input) {
  const int n_given = int{constraint.regex.has_value()} + int{constraint.json_schema_file.has_value()} +
                      int{constraint.ebnf_file.has_value()} + int{constraint.json_object};
  if (n_given > 1) return bad_usage("--regex, --json-schema, --json-object and --ebnf exclude each other");
  const bool has_schema = has_input || constraint.json_schema_file;
  for (const char* name : {"--property-order", "--escapes", "--dialect", "--format", "--remotes"}) {
    if (!has_schema && table.given(name)) return bad_usage(std::string(name) + " goes with a JSON schema");
  }
  if (!has_schema && !constraint.json_object && table.given("--whitespace"))
    return bad_usage("--whitespace goes with a JSON schema or --json-object");
  return {};
}

Result<Arguments> parse_grammar(std::span<const std::string> words, const Environment& environment) {
  const std::string what = words.empty() ? "" : words.front();
  const std::string usage = "usage: deepinfer grammar check [options]";
  if (what == "check") return parse_check(words.subspan(1), environment);
  if (what == "--help" || what == "-h") return Arguments(ShowText{usage + "\n"});
  return bad_usage(what.empty() ? usage : "grammar " + shown(what) + ": must be check");
}

Result<Arguments> parse_grammar_bench(std::span<const std::string> words, const Environment& environment) {
  GrammarBenchArguments a;
  a.schema.order = PropertyOrder::kAny;
  a.schema.escapes = Escapes::kAny;
  OptionTable table("deepinfer bench grammar", "[--model DIR] --input F [options]");
  add_model(table, a.model_dir);
  table.add({"--input", "F", "lines {\"name\",\"schema\",\"tests\":[{\"valid\",\"data\"}]}; - is standard input",
             set_name(a.input)});
  table.add({"--limit", "N", "only the first N lines (all)", set_integer(a.n_schemas_max, 1, INT64_MAX)});
  add_schema(table, a.schema);
  table.add({"--json", "", "one JSON object instead of a table", set_flag(a.json)});
  if (const Status status = table.parse(words, environment); !status.ok()) return status.error();
  if (table.wants_help()) return Arguments(ShowText{table.help()});
  if (a.input.empty()) return bad_usage("--input is needed: a file of schemas and instances, one a line");
  return Arguments(std::move(a));
}

}  // namespace deepinfer::cli
