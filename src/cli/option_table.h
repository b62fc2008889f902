// A table of options for one subcommand: reads an argument list by it, fills in environment variables for what was not
// given, prints its help. Knows no option by name. Used once at the start, by the main thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer::cli {

/// Takes a value; an error says the rule it breaks ("must be ..."), the table adds option and value.
using ValueSetter = std::function<Status(const std::string& value)>;

/// Value of an environment variable, nothing when it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

struct EnvironmentVariable {
  const char* name;
  ValueSetter set;  // its own words for values are allowed ("nvidia")
};

struct Option {
  std::string name;        // with the dashes
  std::string value_name;  // empty: a flag, `set` gets an empty text
  std::string help;
  ValueSetter set;
  bool is_repeatable = false;
  std::vector<EnvironmentVariable> variables = {};  // read in turn when the option is not given
};

class OptionTable {
 public:
  /// `command` is named in messages ("deepinfer generate"), `usage` is what follows it in the first line of the help.
  OptionTable(std::string command, std::string usage) : command_(std::move(command)), usage_(std::move(usage)) {}

  /// The reference is good until the next call.
  Option& add(Option option) { return options_.emplace_back(std::move(option)); }
  /// An option that this build does not have but users know: answered by name, with `why`.
  void refuse(std::string name, std::string why = "not available in this build");

  /// Both "--name value" and "--name=value" are read; what follows an option with a value is always its value. Stops at
  /// --help or -h.
  /// Errors   kInvalidArgument: unknown, refused or repeated option, missing value, or what a setter says
  Status parse(std::span<const std::string> arguments, const Environment& environment);

  /// After parse(): whether the option stood in the argument list.
  [[nodiscard]] bool given(const std::string& name) const;

  [[nodiscard]] bool wants_help() const { return wants_help_; }
  [[nodiscard]] std::string help() const;

 private:
  struct Refused {
    std::string name;
    std::string why;
  };

  [[nodiscard]] const Option* find(const std::string& name) const;
  [[nodiscard]] Error unknown(const std::string& argument) const;
  Status apply_environment(const Environment& environment) const;

  std::string command_;
  std::string usage_;
  std::vector<Option> options_;
  std::vector<Refused> refused_;
  std::vector<std::string> given_;
  bool wants_help_ = false;
};

}  // namespace deepinfer::cli
