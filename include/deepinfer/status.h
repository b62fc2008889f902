// The one error vocabulary of the whole project: Code, Error, Result<T>, Status.
// Anything that can happen to a correct program (bad file, bad request, full pool) travels as a Result;
// a bug ends the process through DI_CHECK (base/check.h). Nothing here throws. Usable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace deepinfer {

/// Why an operation could not be done. The command line maps these to its exit codes (exit_code()).
enum class Code {
  kInvalidArgument,  // the caller's input or option is wrong; the message names it, its value and the limit
  kBadModelFile,     // a checkpoint, config or tokenizer file is missing, damaged or inconsistent
  kOutOfCapacity,    // a bounded resource is full
  kDeviceLost,       // the compute device failed and stays failed
  kIo,               // reading or writing a file of the user's failed
};

/// Process exit code for an error of this kind: 2 bad usage or input, 3 bad model files, 4 out of capacity, 5 device.
int exit_code(Code code);

/// Stable lower-case name, for JSON error objects ("invalid_argument", "bad_model_file", ...).
std::string_view code_name(Code code);

struct Error {
  Code code;
  std::string message;  // one line; names the thing, the value and the limit
};

/// Either a value or an error, an Error unless a layer has a richer kind (protocol's ApiError). Functions return values
/// or `Error{...}` directly; both convert.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Precondition: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  /// By value, so that a loop over `*f()` does not look into a Result that is gone.
  T value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  /// Precondition: !ok().
  [[nodiscard]] const E& error() const& { return *std::get_if<1>(&state_); }
  [[nodiscard]] E&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, E> state_;
};

/// A Result without a value.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  /// Precondition: !ok().
  [[nodiscard]] const Error& error() const& { return *error_; }
  [[nodiscard]] Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace deepinfer
