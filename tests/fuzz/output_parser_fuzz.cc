// What a model writes, from anywhere. The first line is the settings (start, flags, a seed for the cuts, stop strings);
// the rest is the output. However it is cut, the joined events are the same, and all text is well-formed UTF-8.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "protocol/output_parser.h"
#include "tests/unit/protocol/output_record.h"
#include "text/utf8.h"

namespace {

using deepinfer::protocol::OutputParser;
using deepinfer::protocol::OutputRecord;
using deepinfer::protocol::OutputSettings;
using deepinfer::protocol::OutputStart;
using deepinfer::protocol::Section;
using deepinfer::protocol::Special;

constexpr char kStopSeparator = '\x1F';
constexpr char kSpelt = '\x02';  // in front of a special token: only its letters

/// Text, or a special token.
struct Piece {
  std::string text;
  std::optional<Special> special;
};

struct Input {
  OutputSettings settings;
  OutputParser::Markers markers = OutputParser::Markers::kBySpelling;
  uint32_t seed = 0;
  std::vector<Piece> pieces;
};

/// Text by token: the letters of a special token are the token.
std::vector<Piece> split_at_specials(std::string_view text) {
  std::vector<Piece> pieces(1);
  while (!text.empty()) {
    const bool is_spelt = text.front() == kSpelt;
    if (is_spelt) text.remove_prefix(1);
    std::optional<Special> found;
    for (size_t i = 0; i < deepinfer::protocol::kNumSpecials; ++i) {
      if (text.starts_with(spelling(static_cast<Special>(i)))) found = static_cast<Special>(i);
    }
    const size_t n_bytes = found ? spelling(*found).size() : 1;
    if (found && !is_spelt) {
      pieces.push_back({"", found});
      pieces.emplace_back();
    } else {
      pieces.back().text += text.substr(0, n_bytes);
    }
    text.remove_prefix(std::min(n_bytes, text.size()));
  }
  return pieces;
}

Input read(std::string_view data) {
  Input input;
  const size_t end = std::min(data.find('\n'), data.size());
  const std::string header = std::string(data.substr(0, end)) + std::string(3, '\0');
  const std::string_view text = data.substr(std::min(end + 1, data.size()));
  input.settings.start = static_cast<OutputStart>(static_cast<unsigned char>(header[0]) % 5);
  input.settings.tools = (header[1] & 1) != 0;
  input.settings.json = (header[1] & 2) != 0;
  if ((header[1] & 4) != 0) input.markers = OutputParser::Markers::kByToken;
  input.seed = static_cast<unsigned char>(header[2]);
  std::string stop;
  for (size_t i = 3; i < end + 1; ++i) {
    if (i < end && header[i] != kStopSeparator) {
      stop += header[i];
    } else if (!stop.empty()) {
      input.settings.stop.push_back(deepinfer::replace_ill_formed(std::exchange(stop, {})));
    }
  }
  if (input.markers == OutputParser::Markers::kByToken) {
    input.pieces = split_at_specials(text);
  } else {
    input.pieces.push_back({std::string(text), std::nullopt});
  }
  return input;
}

struct Outcome {
  OutputRecord record;
  Section section;
  std::optional<int32_t> stop_index;
  bool operator==(const Outcome&) const = default;
};

/// `seed` chooses where to cut; 0: nowhere, 1: everywhere.
Outcome parse(const Input& input, uint32_t seed) {
  OutputRecord record;
  OutputParser parser(input.settings, input.markers);
  uint32_t random = seed;
  for (const Piece& piece : input.pieces) {
    std::string_view rest = piece.text;
    while (!rest.empty()) {
      random = random * 1664525 + 1013904223;
      const size_t n_bytes = seed == 0 ? rest.size() : seed == 1 ? 1 : std::min<size_t>(rest.size(), random >> 28);
      parser.push_text(rest.substr(0, n_bytes), record);
      rest.remove_prefix(n_bytes);
    }
    if (piece.special) parser.push_special(*piece.special, record);
  }
  parser.finish(record);
  DI_CHECK(parser.n_calls() == static_cast<int32_t>(record.calls.size()));
  DI_CHECK(!parser.stop_index() || parser.section() == Section::kFinished);
  return {record, parser.section(), parser.stop_index()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Input input = read(std::string_view(reinterpret_cast<const char*>(data), size));
  const Outcome whole = parse(input, 0);
  DI_CHECK(parse(input, 1) == whole);
  DI_CHECK(parse(input, input.seed + 2) == whole);
  return 0;
}
