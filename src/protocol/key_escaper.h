// Makes a parameter's name fit for a JSON string while changing as little of it as possible. Internal to the output
// parser; one sequence's state.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer::protocol {

/// Models are known to write a name as JSON would have it, escapes included, so what is a valid escape is kept. Control
/// characters, and backslashes that begin no escape, are escaped. Precondition: the name has no quote.
class KeyEscaper {
 public:
  /// Appends what is certain. Pieces may be cut anywhere.
  void append(std::string_view text, std::string& out);
  /// The name is complete: appends what was held back.
  void close(std::string& out);
  /// The stream ended inside the name: appends what was held back as it came.
  void abandon(std::string& out);

 private:
  void append(char c, std::string& out);

  std::string escape_;  // a backslash and what followed while it could still become an escape
};

}  // namespace deepinfer::protocol
