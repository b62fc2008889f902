#include "checkpoint/config_reader.h"

#include <array>
#include <cstdio>
#include <utility>

#include "checkpoint/message.h"

namespace deepinfer {
namespace {

constexpr size_t kShownValueBytesMax = 60;

std::string range_text(int64_t low, int64_t high) {
  return "must be an integer from " + std::to_string(low) + " to " + std::to_string(high);
}

std::string shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace

ConfigReader::ConfigReader(simdjson::dom::object object, std::string path, std::vector<std::string>& problems)
    : path_(std::move(path)), problems_(&problems) {
  for (const simdjson::dom::key_value_pair field : object) {
    if (!fields_.emplace(field.key, Field{field.value}).second) add_problem(field.key, "is there twice");
  }
}

std::string ConfigReader::full_name(std::string_view key) const {
  const std::string name = printable(key);
  return path_.empty() ? name : path_ + "." + name;
}

void ConfigReader::add_problem(std::string_view key, const std::string& rule) {
  problems_->push_back(full_name(key) + " " + rule);
}

void ConfigReader::add_value_problem(std::string_view key, simdjson::dom::element value, const std::string& rule) {
  add_problem(key, "is " + printable(simdjson::minify(value), kShownValueBytesMax) + ": " + rule);
}

std::optional<simdjson::dom::element> ConfigReader::take(std::string_view key) {
  const auto field = fields_.find(key);
  if (field == fields_.end()) {
    add_problem(key, "is missing");
    return std::nullopt;
  }
  field->second.is_known = true;
  if (field->second.value.is_null()) {
    add_problem(key, "is null");
    return std::nullopt;
  }
  return field->second.value;
}

bool ConfigReader::has(std::string_view key) {
  const auto field = fields_.find(key);
  if (field == fields_.end()) return false;
  field->second.is_known = true;
  return !field->second.value.is_null();
}

bool ConfigReader::is_null(std::string_view key) {
  const auto field = fields_.find(key);
  if (field == fields_.end()) return false;
  field->second.is_known = true;
  return field->second.value.is_null();
}

int64_t ConfigReader::integer(std::string_view key, int64_t low, int64_t high) {
  const auto value = take(key);
  if (!value) return 0;
  int64_t number = 0;
  if (!json_get(*value, number) || number < low || number > high) {
    add_value_problem(key, *value, range_text(low, high));
    return 0;
  }
  return number;
}

int32_t ConfigReader::integer32(std::string_view key, int32_t low, int32_t high) {
  return static_cast<int32_t>(integer(key, low, high));
}

double ConfigReader::real(std::string_view key, double low, double high) {
  const auto value = take(key);
  if (!value) return 0;
  double number = 0;
  if (!json_get(*value, number) || !(number > low) || !(number <= high)) {
    add_value_problem(key, *value, "must be a number above " + shown(low) + " and at most " + shown(high));
    return 0;
  }
  return number;
}

bool ConfigReader::boolean(std::string_view key) {
  const auto value = take(key);
  bool flag = false;
  if (value && !json_get(*value, flag)) add_value_problem(key, *value, "must be true or false");
  return flag;
}

std::vector<int64_t> ConfigReader::integers(std::string_view key, int64_t low, int64_t high, size_t n_max) {
  std::vector<int64_t> numbers;
  const auto value = take(key);
  if (!value) return numbers;
  simdjson::dom::array array;
  if (!json_get(*value, array)) {
    add_value_problem(key, *value, "must be a list of integers");
    return numbers;
  }
  for (const simdjson::dom::element item : array) {
    int64_t number = 0;
    if (!json_get(item, number) || number < low || number > high) {
      add_value_problem(key, *value, "each entry " + range_text(low, high));
      return {};
    }
    if (numbers.size() == n_max) {
      add_value_problem(key, *value, "has more than " + std::to_string(n_max) + " entries");
      return {};
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<int32_t> ConfigReader::integers32(std::string_view key, int32_t low, int32_t high, size_t n_max) {
  std::vector<int32_t> numbers;
  for (const int64_t number : integers(key, low, high, n_max)) numbers.push_back(static_cast<int32_t>(number));
  return numbers;
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const auto value = take(key);
  if (!value) return std::nullopt;
  simdjson::dom::object object;
  if (!json_get(*value, object)) {
    add_value_problem(key, *value, "must be an object");
    return std::nullopt;
  }
  return ConfigReader(object, full_name(key), *problems_);
}

void ConfigReader::require_text(std::string_view key, std::string_view supported) {
  const auto value = take(key);
  std::string_view text;
  if (value && (!json_get(*value, text) || text != supported)) {
    add_value_problem(key, *value, "only \"" + std::string(supported) + "\" is implemented");
  }
}

void ConfigReader::require_integer(std::string_view key, int64_t supported) {
  const auto value = take(key);
  int64_t number = 0;
  if (value && (!json_get(*value, number) || number != supported)) {
    add_value_problem(key, *value, "only " + std::to_string(supported) + " is implemented");
  }
}

void ConfigReader::require_false(std::string_view key) {
  const auto value = take(key);
  bool flag = true;
  if (value && (!json_get(*value, flag) || flag)) add_value_problem(key, *value, "only false is implemented");
}

void ConfigReader::require_integers(std::string_view key, const std::vector<int64_t>& supported) {
  const auto value = take(key);
  if (!value) return;
  simdjson::dom::array array;
  bool equal = json_get(*value, array) && array.size() == supported.size();
  if (equal) {
    size_t i = 0;
    for (const simdjson::dom::element item : array) {
      int64_t number = 0;
      equal = equal && json_get(item, number) && number == supported[i];
      ++i;
    }
  }
  if (equal) return;
  std::string text;
  for (const int64_t number : supported) text += (text.empty() ? "" : ", ") + std::to_string(number);
  add_value_problem(key, *value, "only [" + text + "] is implemented");
}

void ConfigReader::require_listed(std::string_view key, std::string_view wanted) {
  const auto value = take(key);
  if (!value) return;
  simdjson::dom::array array;
  if (json_get(*value, array)) {
    for (const simdjson::dom::element item : array) {
      std::string_view text;
      if (json_get(item, text) && text == wanted) return;
    }
  }
  add_value_problem(key, *value, "must list \"" + std::string(wanted) + "\"");
}

void ConfigReader::ignore(std::string_view key) {
  const auto field = fields_.find(key);
  if (field != fields_.end()) field->second.is_known = true;
}

void ConfigReader::append_unknown(std::vector<std::string>& keys) const {
  for (const auto& [key, field] : fields_) {
    if (!field.is_known) keys.push_back(full_name(key));
  }
}

}  // namespace deepinfer
