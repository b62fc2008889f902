// A tokenizer.json made of parts, for tests: 256 byte tokens (ids 0..255 in byte order), then `merges` (each makes the
// next id), then added tokens. Any part can be replaced by hand to make a bad file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deepinfer {

struct TinyAdded {
  std::string content;
  bool special = true;
  bool normalized = false;
};

struct TinyTokenizer {
  std::vector<std::pair<std::string, std::string>> merges;  // byte-level form
  std::vector<TinyAdded> added;
  std::string extra_vocabulary;  // members put after the others, each with a comma in front

  [[nodiscard]] std::string json() const;
};

/// `text` with the first `from` replaced by `to`; fails the test if there is none.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// Folder with the golden test model's tokenizer.json.
std::string golden_dir();

}  // namespace deepinfer
