#include "cli/option_table.h"

#include <algorithm>

#include "cli/values.h"

namespace deepinfer::cli {

namespace {

constexpr size_t kHelpColumn = 26;

Error bad_usage(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

}  // namespace

void OptionTable::refuse(std::string name, std::string why) { refused_.push_back({std::move(name), std::move(why)}); }

const Option* OptionTable::find(const std::string& name) const {
  const auto found = std::ranges::find(options_, name, &Option::name);
  return found == options_.end() ? nullptr : &*found;
}

bool OptionTable::given(const std::string& name) const { return std::ranges::find(given_, name) != given_.end(); }

Error OptionTable::unknown(const std::string& argument) const {
  const bool is_option = argument.size() > 1 && argument.front() == '-';
  return bad_usage((is_option ? "unknown option " : "unexpected argument ") + shown(argument) + "; see " + command_ +
                   " --help");
}

Status OptionTable::parse(std::span<const std::string> arguments, const Environment& environment) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    wants_help_ = argument == "--help" || argument == "-h";
    if (wants_help_) return {};
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    if (const auto refused = std::ranges::find(refused_, name, &Refused::name); refused != refused_.end()) {
      return bad_usage(name + ": " + refused->why);
    }
    const Option* option = find(name);
    if (option == nullptr) return unknown(argument);
    if (!option->is_repeatable && given(name)) return bad_usage(name + " is given twice");
    given_.push_back(name);
    std::string value;
    if (option->value_name.empty()) {
      if (equals != std::string::npos) return bad_usage(shown(argument) + ": " + name + " takes no value");
    } else if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else {
      if (i + 1 == arguments.size()) return bad_usage(name + " needs a value, " + option->value_name);
      value = arguments[++i];
    }
    if (const Status status = option->set(value); !status.ok()) {
      return bad_usage(name + (option->value_name.empty() ? "" : " " + (value.empty() ? "\"\"" : shown(value))) + ": " +
                       status.error().message);
    }
  }
  return apply_environment(environment);
}

Status OptionTable::apply_environment(const Environment& environment) const {
  for (const Option& option : options_) {
    if (given(option.name)) continue;
    for (const EnvironmentVariable& variable : option.variables) {
      const std::optional<std::string> value = environment(variable.name);
      if (!value) continue;
      if (const Status status = variable.set(*value); !status.ok()) {
        return bad_usage(std::string(variable.name) + "=" + shown(*value) + ": " + status.error().message);
      }
    }
  }
  return {};
}

std::string OptionTable::help() const {
  std::string text = "usage: " + command_ + " " + usage_ + "\n";
  for (const Option& option : options_) {
    std::string line = "  " + option.name + (option.value_name.empty() ? "" : " " + option.value_name);
    line += line.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                          : std::string(kHelpColumn - line.size(), ' ');
    text += line + option.help + "\n";
  }
  return text;
}

}  // namespace deepinfer::cli
