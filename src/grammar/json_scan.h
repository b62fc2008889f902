// Reads a piece of JSON text, in containers that are not known: which bytes some JSON text goes on with. For what a token of a
// vocabulary can be, whatever the schema.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/string_tokens.h"

namespace deepinfer::grammar {

class JsonScan {
 public:
  enum class Start : uint8_t { kBehindString, kBetweenTokens };
  explicit JsonScan(Start start) : place_(start == Start::kBehindString ? Place::kAfterString : Place::kAnywhere) {}

  /// False: no JSON text goes on like that; all that follow, too. True promises nothing (numbers are not read closely).
  bool step(uint8_t byte);
  /// Began behind a string: it was the name of a member, whose value is complete. A number is where something else has
  /// followed.
  [[nodiscard]] bool ended_member() const { return ended_member_; }

 private:
  enum class Place : uint8_t {
    kAnywhere,
    kAfterString,  // a name or a value
    kAfterName,
    kAfterValue,
    kValue,
    kFirstName,  // behind "{"
    kFirstItem,  // behind "["
    kNextName,
    kNext,  // behind a comma: a name or a value
    kInName,
    kInString,  // of a value
    kInEither,
    kNumber,
    kLiteral,
    kNever,
  };
  bool go_to(Place place) {
    place_ = place;
    return place != Place::kNever;
  }
  bool begin_value(uint8_t byte);
  bool begin_string(Place place);
  bool end_value();
  bool close(uint8_t byte);
  bool string(uint8_t byte);
  bool after_value(uint8_t byte);

  Place place_;
  std::vector<uint8_t> open_;  // closing brackets of the containers that began here
  StringScan text_;
  std::string_view rest_;  // of a literal
  bool has_name_ = false;  // a colon came while nothing was open
  bool ended_member_ = false;
};

}  // namespace deepinfer::grammar
