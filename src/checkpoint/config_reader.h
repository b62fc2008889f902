// Reads typed values out of one JSON object of config.json and remembers what was wrong and which keys nobody asked
// for. Knows no key of the model. Used by config.cc only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/json_dom.h"

namespace deepinfer {

class ConfigReader {
 public:
  /// `path` is how the object is called in messages ("text_config"; empty for the top). Problems go to `problems`.
  ConfigReader(simdjson::dom::object object, std::string path, std::vector<std::string>& problems);

  /// Present and not null. Counts as asked for.
  [[nodiscard]] bool has(std::string_view key);
  /// Present and null. Counts as asked for.
  [[nodiscard]] bool is_null(std::string_view key);

  /// The value, or 0 with a problem when the key is missing, of another type or outside [low, high].
  int64_t integer(std::string_view key, int64_t low, int64_t high);
  int32_t integer32(std::string_view key, int32_t low, int32_t high);
  /// Any finite JSON number above `low` and at most `high`.
  double real(std::string_view key, double low, double high);
  bool boolean(std::string_view key);
  /// At most `n_max` integers, each inside [low, high].
  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high, size_t n_max);
  std::vector<int32_t> integers32(std::string_view key, int32_t low, int32_t high, size_t n_max);
  /// The object under `key`; a missing one or another type is a problem and gives nothing.
  std::optional<ConfigReader> object(std::string_view key);

  /// The key must be there with exactly this value, the only one implemented.
  void require_text(std::string_view key, std::string_view supported);
  void require_integer(std::string_view key, int64_t supported);
  void require_false(std::string_view key);
  void require_integers(std::string_view key, const std::vector<int64_t>& supported);
  /// A list of strings that contains `wanted`.
  void require_listed(std::string_view key, std::string_view wanted);
  /// Known and without effect on inference, whatever its value.
  void ignore(std::string_view key);

  /// Keys of this object that none of the calls above named, with their path.
  void append_unknown(std::vector<std::string>& keys) const;

 private:
  struct Field {
    simdjson::dom::element value;
    bool is_known = false;
  };

  [[nodiscard]] std::string full_name(std::string_view key) const;
  void add_problem(std::string_view key, const std::string& rule);
  /// "text_config.hidden_act is "gelu": rule".
  void add_value_problem(std::string_view key, simdjson::dom::element value, const std::string& rule);
  /// Marks the key as known. A missing or null one is a problem and gives nothing.
  std::optional<simdjson::dom::element> take(std::string_view key);

  std::string path_;
  std::map<std::string, Field, std::less<>> fields_;
  std::vector<std::string>* problems_;  // borrowed for the parse
};

}  // namespace deepinfer
