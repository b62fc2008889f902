#include "deepinfer/tokenize_service.h"

#include <simdjson.h>

#include <optional>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"
#include "tokenizer/base64.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

/// What a line may hold. Which members are given decides what is asked.
struct TokenizeRequest {
  std::optional<std::string> text;  // of "text" or "bytes"
  std::optional<std::vector<int32_t>> ids;
  std::optional<bool> special;
  std::optional<bool> skip_special;
  std::optional<bool> stream;
};

Error bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

Result<std::string> read_text(const dom::element& value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return bad("text is not a string");
  if (const auto offset = find_ill_formed(text))
    return bad("text has a lone surrogate at byte " + std::to_string(*offset));
  return std::string(text);
}

Result<std::string> read_bytes(const dom::element& value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return bad("bytes is not a string");
  auto bytes = base64_decode(text);
  if (!bytes) return bad("bytes is not valid base64");
  return *std::move(bytes);
}

Result<std::vector<int32_t>> read_ids(const Tokenizer& tokenizer, const dom::element& value) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return bad("ids is not an array");
  std::vector<int32_t> ids;
  for (const dom::element element : array) {
    int64_t id = 0;
    const std::string where = "ids[" + std::to_string(ids.size()) + "]";
    if (element.get(id) != simdjson::SUCCESS) return bad(where + " is not a whole number of 64 bits");
    if (id < 0 || id >= tokenizer.vocab_size())
      return bad(where + " = " + std::to_string(id) + " is outside [0, " + std::to_string(tokenizer.vocab_size()) +
                 ")");
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Result<bool> read_flag(std::string_view key, const dom::element& value) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return bad(std::string(key) + " is not true or false");
  return flag;
}

Status read_member(const Tokenizer& tokenizer, std::string_view key, const dom::element& value,
                   TokenizeRequest& request) {
  if ((key == "text" || key == "bytes") && request.text) return bad("text or bytes is given twice");
  if (key == "text") {
    DI_ASSIGN_OR_RETURN(request.text, read_text(value));
  } else if (key == "bytes") {
    DI_ASSIGN_OR_RETURN(request.text, read_bytes(value));
  } else if (key == "ids") {
    if (request.ids) return bad("ids is given twice");
    DI_ASSIGN_OR_RETURN(request.ids, read_ids(tokenizer, value));
  } else if (key == "special") {
    DI_ASSIGN_OR_RETURN(request.special, read_flag(key, value));
  } else if (key == "skip_special") {
    DI_ASSIGN_OR_RETURN(request.skip_special, read_flag(key, value));
  } else if (key == "stream") {
    DI_ASSIGN_OR_RETURN(request.stream, read_flag(key, value));
  } else {
    return bad("unknown member " + quoted_for_message(key));
  }
  return {};
}

Result<TokenizeRequest> read_request(const Tokenizer& tokenizer, std::string_view line) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(line.data(), line.size()).get(root))
    return bad(std::string("line is not valid JSON: ") + simdjson::error_message(error));
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return bad("line is not a JSON object");
  TokenizeRequest request;
  for (const auto [key, value] : object) DI_RETURN_IF_ERROR(read_member(tokenizer, key, value, request));
  if (request.text.has_value() == request.ids.has_value()) return bad("exactly one of text, bytes and ids is needed");
  if (request.text && (request.skip_special || request.stream)) return bad("skip_special and stream go with ids");
  if (request.ids && request.special) return bad("special goes with text or bytes");
  return request;
}

/// Appends `text` as a JSON string; what is not UTF-8 in it becomes U+FFFD.
void append_json_string(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : replace_ill_formed(std::string(text))) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

Result<std::string> answer_encode(const Tokenizer& tokenizer, const TokenizeRequest& request) {
  DI_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer.encode(*request.text, request.special.value_or(true)));
  std::string answer = "{\"ids\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) answer += ',';
    answer += std::to_string(ids[i]);
  }
  return answer + "]}";
}

Result<std::string> answer_decode(const Tokenizer& tokenizer, const TokenizeRequest& request) {
  const bool skip_special = request.skip_special.value_or(false);
  DI_ASSIGN_OR_RETURN(const std::string bytes, tokenizer.decode_bytes(*request.ids, skip_special));
  std::string answer = "{\"text\":";
  append_json_string(bytes, answer);
  if (find_ill_formed(bytes)) {
    answer += ",\"bytes\":\"" + base64_encode(bytes) + '"';
  }
  if (request.stream.value_or(false)) {
    answer += ",\"pieces\":[";
    Detokenizer detokenizer(tokenizer, skip_special);
    for (const int32_t id : *request.ids) {
      DI_ASSIGN_OR_RETURN(const std::string piece, detokenizer.push(id));
      append_json_string(piece, answer);
      answer += ',';
    }
    append_json_string(detokenizer.finish(), answer);
    answer += ']';
  }
  return answer + '}';
}

Result<std::string> answer(const Tokenizer& tokenizer, std::string_view line) {
  DI_ASSIGN_OR_RETURN(const TokenizeRequest request, read_request(tokenizer, line));
  return request.ids ? answer_decode(tokenizer, request) : answer_encode(tokenizer, request);
}

}  // namespace

std::string answer_line(const Tokenizer& tokenizer, std::string_view line, bool* ok) {
  auto done = answer(tokenizer, line);
  if (done.ok()) return *std::move(done);
  *ok = false;
  std::string text = "{\"error\":{\"kind\":\"" + std::string(code_name(done.error().code)) + "\",\"message\":";
  append_json_string(done.error().message, text);
  return text + "}}";
}

}  // namespace deepinfer
