#include "tests/support/tiny_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/utf8.h"
#include "tokenizer/pre_tokenizer.h"

namespace deepinfer {
namespace {

std::string json_string(std::string_view text) { return nlohmann::json(text).dump(); }

std::string split(std::string_view regex) {
  return R"({"type":"Split","pattern":{"Regex":)" + json_string(regex) + R"(},"behavior":"Isolated","invert":false})";
}

/// GPT-2's character of a byte, written down a second time: printable ones stand for themselves.
std::string character_of(int byte) {
  int n_shifted = 0;
  for (int b = 0; b <= byte; ++b) {
    const bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
    if (b == byte) {
      std::string text;
      append_utf8(static_cast<char32_t>(printable ? b : 0x100 + n_shifted), text);
      return text;
    }
    if (!printable) ++n_shifted;
  }
  return {};
}

std::string boolean(bool flag) { return flag ? "true" : "false"; }

}  // namespace

std::string TinyTokenizer::json() const {
  std::string vocabulary, merge_list, added_list;
  int next_id = 0;
  const auto add_vocabulary = [&](const std::string& token) {
    if (next_id > 0) vocabulary += ',';
    vocabulary += json_string(token) + ':' + std::to_string(next_id++);
  };
  for (int byte = 0; byte < 256; ++byte) add_vocabulary(character_of(byte));
  for (const auto& [left, right] : merges) {
    add_vocabulary(left + right);
    if (!merge_list.empty()) merge_list += ',';
    merge_list += json_string(left + ' ' + right);
  }
  for (const TinyAdded& token : added) {
    if (!added_list.empty()) added_list += ',';
    added_list += R"({"id":)" + std::to_string(next_id++) + R"(,"content":)" + json_string(token.content) +
                  R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":)" + boolean(token.normalized) +
                  R"(,"special":)" + boolean(token.special) + "}";
  }
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" + added_list +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" + split(kSplitNumbers) + ',' +
         split(kSplitCjk) + ',' + split(kSplitWords) +
         R"(,{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},)"
         R"("post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,)"
         R"("use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,)"
         R"("ignore_merges":false,"vocab":{)" +
         vocabulary + extra_vocabulary + R"(},"merges":[)" + merge_list + "]}}";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::string golden_dir() { return DI_TESTS_DIR "/golden/golden-v41/checkpoint"; }

}  // namespace deepinfer
