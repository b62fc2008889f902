// tokenizer.json from anywhere, then any text: the input up to its last newline is the file, the rest is the text. A
// file that is accepted must encode every text and give it back; streaming must equal decoding at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "deepinfer/tokenizer.h"
#include "text/utf8.h"
#include "tokenizer/token_map.h"

namespace {

void check_decoding(const deepinfer::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  const auto decoded = tokenizer.decode(ids);
  DI_CHECK(decoded.ok());
  deepinfer::Detokenizer detokenizer(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) streamed += *detokenizer.push(id);
  streamed += detokenizer.finish();
  DI_CHECK(streamed == *decoded);
}

void check_text(const deepinfer::Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {true, false}) {
    const auto ids = tokenizer.encode(text, special);
    DI_CHECK(ids.ok() == !deepinfer::find_ill_formed(text).has_value());
    if (!ids) continue;
    const auto bytes = tokenizer.decode_bytes(*ids);
    DI_CHECK(bytes.ok() && *bytes == text);
    check_decoding(tokenizer, *ids);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(input.rfind('\n'), input.size());
  const std::string_view text = input.substr(std::min(cut + 1, input.size()));
  const auto tokenizer = deepinfer::Tokenizer::from_json(input.substr(0, cut));
  if (!tokenizer) {
    DI_CHECK(tokenizer.error().code == deepinfer::Code::kBadModelFile);
    DI_CHECK(tokenizer.error().message.find('\n') == std::string::npos);
    return 0;
  }
  check_text(*tokenizer, text);
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c) % tokenizer->vocab_size());
  check_decoding(*tokenizer, ids);
  DI_CHECK(deepinfer::compressed_token_map(*tokenizer, tokenizer->vocab_size()).ok());
  return 0;
}
