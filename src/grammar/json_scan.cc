#include "grammar/json_scan.h"

namespace deepinfer::grammar {
namespace {

bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }
bool is_of_number(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' || byte == 'E';
}

}  // namespace

bool JsonScan::step(uint8_t byte) {
  switch (place_) {
    case Place::kNever:
      return false;
    case Place::kInName:
    case Place::kInString:
    case Place::kInEither:
      return string(byte);
    case Place::kNumber:
      if (is_of_number(byte)) return true;
      end_value();
      return step(byte);  // one level: a value has ended
    case Place::kLiteral:
      if (byte != static_cast<uint8_t>(rest_[0])) return go_to(Place::kNever);
      rest_.remove_prefix(1);
      return rest_.empty() ? end_value() : true;
    default:
      break;
  }
  if (is_blank(byte)) return true;
  switch (place_) {
    case Place::kAnywhere:
      if (byte == '"') return begin_string(Place::kInEither);
      if (byte != ':' && byte != ',' && byte != '}' && byte != ']') return begin_value(byte);
      [[fallthrough]];
    case Place::kAfterName:
    case Place::kAfterString:
      if (byte == ':') {
        has_name_ = has_name_ || open_.empty();
        return go_to(Place::kValue);
      }
      return place_ == Place::kAfterName ? go_to(Place::kNever) : after_value(byte);
    case Place::kAfterValue:
      return after_value(byte);
    case Place::kFirstName:
      return byte == '}' ? close(byte) : byte == '"' ? begin_string(Place::kInName) : go_to(Place::kNever);
    case Place::kNextName:
      return byte == '"' ? begin_string(Place::kInName) : go_to(Place::kNever);
    case Place::kFirstItem:
      return byte == ']' ? close(byte) : begin_value(byte);
    case Place::kNext:
      return byte == '"' ? begin_string(Place::kInEither) : begin_value(byte);
    default:
      return begin_value(byte);
  }
}

bool JsonScan::begin_value(uint8_t byte) {
  switch (byte) {
    case '"':
      return begin_string(Place::kInString);
    case '{':
      open_.push_back('}');
      return go_to(Place::kFirstName);
    case '[':
      open_.push_back(']');
      return go_to(Place::kFirstItem);
    case 't':
      rest_ = "rue";
      return go_to(Place::kLiteral);
    case 'f':
      rest_ = "alse";
      return go_to(Place::kLiteral);
    case 'n':
      rest_ = "ull";
      return go_to(Place::kLiteral);
    default:
      return go_to(byte == '-' || (byte >= '0' && byte <= '9') ? Place::kNumber : Place::kNever);
  }
}

bool JsonScan::begin_string(Place place) {
  text_ = {};
  return go_to(place);
}

bool JsonScan::string(uint8_t byte) {
  if (!text_.step(byte)) return go_to(Place::kNever);
  if (!text_.closed()) return true;
  if (place_ == Place::kInName) return go_to(Place::kAfterName);
  return place_ == Place::kInEither ? go_to(Place::kAfterString) : end_value();
}

bool JsonScan::end_value() {
  ended_member_ = ended_member_ || (has_name_ && open_.empty());
  return go_to(Place::kAfterValue);
}

/// One of what began here, or the container that is not known.
bool JsonScan::close(uint8_t byte) {
  if (!open_.empty()) {
    if (open_.back() != byte) return go_to(Place::kNever);
    open_.pop_back();
  }
  return end_value();
}

bool JsonScan::after_value(uint8_t byte) {
  if (byte == '}' || byte == ']') return close(byte);
  if (byte != ',') return go_to(Place::kNever);
  return go_to(open_.empty() ? Place::kNext : open_.back() == '}' ? Place::kNextName : Place::kValue);
}

}  // namespace deepinfer::grammar
