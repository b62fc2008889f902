#include "tokenizer/token_map.h"

#include <unordered_map>

#include "base/check.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

/// Stands for a text that is one blank while blanks are trimmed. The published map turns every U+E000 into a blank at
/// the end, one that was in the text as well; so does this code.
constexpr std::string_view kBlankMark = "\xEE\x80\x80";  // U+E000

std::string fold_characters(std::string_view text) {
  std::string folded;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.data() + at);
    append_folded(c.value, folded);
    at += c.n_bytes;
  }
  return folded;
}

/// Every run of space, tab, CR and LF becomes one space.
std::string join_blanks(std::string_view text) {
  std::string joined;
  bool in_run = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank) joined += c;
    if (blank && !in_run) joined += ' ';
    in_run = blank;
  }
  return joined;
}

/// Without White_Space at both ends.
std::string_view trim(std::string_view text) {
  size_t begin = text.size(), end = text.size();  // of what lies between the first and the last other character
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text.data() + at);
    if ((char_flags(c.value) & kCharSpace) == 0) {
      if (begin == text.size()) begin = at;
      end = at + c.n_bytes;
    }
    at += c.n_bytes;
  }
  return text.substr(begin, begin == text.size() ? 0 : end - begin);
}

}  // namespace

std::string fold_token_text(std::string_view text) {
  std::string joined = join_blanks(fold_characters(text));
  if (joined == " ") joined = kBlankMark;
  std::string folded;
  std::string_view rest = trim(joined);
  for (size_t mark = rest.find(kBlankMark); mark != std::string_view::npos; mark = rest.find(kBlankMark)) {
    folded.append(rest.substr(0, mark)) += ' ';
    rest.remove_prefix(mark + kBlankMark.size());
  }
  return folded.append(rest);
}

Result<TokenMap> compressed_token_map(const Tokenizer& tokenizer, int32_t vocab_size) {
  if (vocab_size < 1 || vocab_size > tokenizer.vocab_size())
    return Error{Code::kBadModelFile, "vocab_size " + std::to_string(vocab_size) + " is outside [1, " +
                                          std::to_string(tokenizer.vocab_size()) + "], the tokenizer's size"};
  TokenMap map{{}, 0};
  map.class_of.reserve(static_cast<size_t>(vocab_size));
  std::unordered_map<std::string, int32_t> class_of_key;
  for (int32_t id = 0; id < vocab_size; ++id) {
    const std::string text = replace_ill_formed(std::string(tokenizer.token_bytes(id)));
    std::string key;
    if (text.find(kReplacementCharacter) != std::string::npos) {
      key = tokenizer.token_string(id);
    } else {
      key = fold_token_text(text);
      if (key.empty()) key = text;
    }
    const auto [entry, is_new] = class_of_key.try_emplace(std::move(key), map.n_classes);
    if (is_new) ++map.n_classes;
    map.class_of.push_back(entry->second);
  }
  return map;
}

}  // namespace deepinfer
