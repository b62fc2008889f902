// Reading a parsed body field by field: values that know their place in it, the first error, and the settings that the
// three APIs share. Nothing here knows about messages. One request's state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/api_error.h"
#include "protocol/request.h"
#include "text/json.h"

namespace deepinfer::protocol {

/// Keeps the first error of a request; who reads on after it gets harmless defaults.
class FirstError {
 public:
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  void add(std::string path, std::string_view what);
  /// Precondition: !ok().
  [[nodiscard]] ApiError take() { return *std::move(error_); }

 private:
  std::optional<ApiError> error_;
};

/// One spelling of an enumeration.
template <typename T>
struct Spelling {
  std::string_view name;
  T value;
};

/// A place in the body and what stands there, if anything. A field that is null counts as absent, unless it is needed.
/// Borrows the field it was taken from, which must outlive it: hence no fields of temporaries.
class Field {
 public:
  Field(FirstError& errors, const json::Value& body) : errors_(&errors), value_(&body) {}

  /// The member called `key`; absent where this is no object. Twice in one object is an error.
  Field operator[](std::string_view key) const&;
  Field operator[](std::string_view key) const&& = delete;
  /// Precondition: idx < size()
  Field item(size_t idx) const&;
  Field item(size_t idx) const&& = delete;
  /// One of this object's members, for who walks them all.
  Field at(const json::Member& member) const&;
  Field at(const json::Member& member) const&& = delete;
  [[nodiscard]] size_t size() const { return value_ == nullptr ? 0 : value_->items.size(); }

  [[nodiscard]] bool is_given() const { return value_ != nullptr && !value_->is(json::Kind::kNull); }
  [[nodiscard]] bool is_missing() const { return value_ == nullptr; }  // not even null
  [[nodiscard]] bool is(json::Kind kind) const { return value_ != nullptr && value_->is(kind); }
  /// Precondition: !is_missing()
  [[nodiscard]] const json::Value& value() const { return *value_; }
  /// As in messages[0].content[1].image_url; empty for the body itself.
  [[nodiscard]] std::string path() const;

  /// Whether the request has no error so far: loops end early by it.
  [[nodiscard]] bool ok() const { return errors_->ok(); }
  /// The error "path: what".
  void refuse(std::string_view what) const;
  /// The error "path: value what", or "path: missing, ..." as the case may be.
  void refuse_value(std::string_view what) const;

  // Each reads what is given and refuses another kind. Absent: nothing, or an error where it is needed.
  std::optional<bool> boolean() const;
  std::optional<std::string_view> text() const;
  std::optional<int64_t> integer(int64_t min, int64_t max) const;
  std::optional<double> number(double min, double max) const;
  std::string_view needed_text() const;  // "" after an error
  bool needs(json::Kind kind) const;     // false after an error
  bool may_be(json::Kind kind) const;    // whether it is given, of that kind

  template <typename T>
  std::optional<T> one_of(std::span<const Spelling<T>> spellings) const {
    const auto given = text();
    if (!given) return std::nullopt;
    std::string names;
    for (const Spelling<T>& spelling : spellings) {
      if (spelling.name == *given) return spelling.value;
      names += names.empty() ? "" : ", ";
      names += spelling.name;
    }
    refuse_value("is not one of " + names);
    return std::nullopt;
  }
  template <typename T, size_t N>
  std::optional<T> one_of(const Spelling<T> (&spellings)[N]) const {
    return one_of(std::span<const Spelling<T>>(spellings));
  }
  template <typename T>
  std::optional<T> needed_one_of(std::span<const Spelling<T>> spellings) const {
    return needs(json::Kind::kString) ? one_of(spellings) : std::nullopt;
  }
  template <typename T, size_t N>
  std::optional<T> needed_one_of(const Spelling<T> (&spellings)[N]) const {
    return needed_one_of(std::span<const Spelling<T>>(spellings));
  }

 private:
  Field(const Field& up, std::string_view key, size_t idx, const json::Value* value)
      : errors_(up.errors_), value_(value), up_(&up), key_(key), idx_(idx) {}

  FirstError* errors_;        // borrowed
  const json::Value* value_;  // borrowed; null: missing
  const Field* up_ = nullptr;
  std::string_view key_;  // empty: an item
  size_t idx_ = 0;
};

/// Applies the tables of field_rules.h.
void check_unread_fields(const Field& body, Api api);

void read_model_and_stream(const Field& body, ApiRequest& out);
void read_sampling(const Field& body, SamplingFields& out);

/// A list of strings, or one string where the API allows that.
void read_stop(const Field& stop, bool may_be_text, const RequestLimits& limits, std::vector<std::string>& out);

/// none: no thinking; a word or a number: how much.
void read_effort_field(const Field& effort, Conversation& out);
/// `thinking` and the API's effort field. An explicit thinking.type wins over the effort "none".
void read_thinking(const Field& thinking, const Field& effort, Conversation& out);

/// What an API's response format looks like.
struct FormatShape {
  std::span<const Spelling<ResponseFormat>> types;
  bool is_schema_nested = false;  // in a member json_schema, beside the name
  bool needs_name = false;
};
void read_format(const Field& format, const FormatShape& shape, Conversation& out);

/// Refuses what is no JSON Schema.
void check_schema(const Field& schema);

}  // namespace deepinfer::protocol
