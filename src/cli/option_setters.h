// Setters of options (option_table.h): each turns a value's text into one field, by values.h. They keep references into the
// struct being filled, which outlives its table.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/option_table.h"
#include "cli/values.h"

namespace deepinfer::cli {

inline Error bad_usage(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

inline ValueSetter set_flag(bool& target, bool to = true) {
  return [&target, to](const std::string&) -> Status {
    target = to;
    return {};
  };
}

template <typename T>
inline ValueSetter set_integer(T& target, int64_t min, int64_t max) {
  return [&target, min, max](const std::string& text) -> Status {
    const auto value = parse_integer(text, min, max);
    if (!value.ok()) return value.error();
    target = static_cast<T>(*value);
    return {};
  };
}

inline ValueSetter set_unit_interval(float& target) {
  return [&target](const std::string& text) -> Status {
    const auto value = parse_float(text, 0, 1);
    if (!value.ok()) return value.error();
    target = *value;
    return {};
  };
}

/// A text that names something: a file, a directory.
template <typename T>
inline ValueSetter set_name(T& target) {
  return [&target](const std::string& text) -> Status {
    if (text.empty()) return bad_usage("must not be empty");
    target = text;
    return {};
  };
}

template <typename T>
inline ValueSetter set_choice(T& target, std::vector<std::pair<std::string, T>> choices) {
  return [&target, choices = std::move(choices)](const std::string& text) -> Status {
    std::string known;
    for (const auto& [word, value] : choices) {
      if (word == text) {
        target = value;
        return {};
      }
      known += (known.empty() ? "" : ", ") + word;
    }
    return bad_usage("must be one of " + known);
  };
}

/// An option of which this build offers one value.
inline ValueSetter accept_only(std::string only, std::string why) {
  return [only = std::move(only), why = std::move(why)](const std::string& text) -> Status {
    if (text == only) return {};
    return bad_usage("must be " + only + ": " + why);
  };
}

inline void add_model(OptionTable& table, std::string& target) {
  table.add({"--model", "DIR", "model directory; mini is the shipped model (mini)", set_name(target)}).variables = {
      {"DEEPINFER_HF_MODEL_DIR", set_name(target)}};
}

}  // namespace deepinfer::cli
