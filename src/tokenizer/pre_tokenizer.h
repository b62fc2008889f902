// The model's pre-tokenizer: where text is cut before BPE. Three regular expressions, each splitting inside the pieces
// of the one before, written out by hand because only this model's are accepted. Pure, linear in the text, any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace deepinfer {

/// The expressions this code implements, in order; the third has two spellings in the wild.
inline constexpr std::string_view kSplitNumbers = R"(\p{N}{1,3})";
inline constexpr std::string_view kSplitCjk = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
inline constexpr std::string_view kSplitWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kSplitWordsRaw =  // CR and LF themselves instead of their escapes
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

/// Replaces `ends` by the end offset of every piece of `text`; pieces follow each other without gaps.
/// Precondition: well-formed UTF-8, below 4 GiB.
void split_pieces(std::string_view text, std::vector<uint32_t>& ends);

}  // namespace deepinfer
