// The one place of this layer that includes simdjson: a parsed document that owns its buffers, and its errors as ours.
// Included by .cc files only. simdjson keeps duplicate keys, so readers that iterate over an object see them.
#pragma once

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "deepinfer/status.h"

namespace deepinfer {

class JsonDocument {
 public:
  /// `what` opens the message ("header", "index"). UTF-8 is validated; nesting is limited to 1024 levels.
  static Result<JsonDocument> parse(std::string_view text, std::string_view what) {
    JsonDocument document;
    // true: copied into a padded buffer of the parser's own, since `text` need not have readable bytes behind it.
    const simdjson::error_code error = document.parser_->parse(text.data(), text.size(), true).get(document.root_);
    if (error != simdjson::SUCCESS) {
      return Error{Code::kBadModelFile, std::string(what) + " is not valid JSON: " + simdjson::error_message(error)};
    }
    return document;
  }

  /// Valid while this document lives; survives moves of it.
  [[nodiscard]] simdjson::dom::element root() const { return root_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();  // elements point into it
  simdjson::dom::element root_;
};

/// True and the value when `element` is a T (object, array, string_view, int64_t, double, bool).
template <typename T>
bool json_get(simdjson::dom::element element, T& value) {
  return element.get<T>().get(value) == simdjson::SUCCESS;
}

}  // namespace deepinfer
