// The JSON-lines service behind `deepinfer tokenize --json`: one request line in, one answer line out.
// Pure function of the tokenizer and the line; any thread.
#pragma once

#include <string>
#include <string_view>

#include "deepinfer/tokenizer.h"

namespace deepinfer {

/// Answers one line (without its line end); the answer has no line end either and is valid UTF-8.
///   {"text":S} or {"bytes":BASE64}, "special"? (true)          → {"ids":[...]}
///   {"ids":[...]}, "skip_special"? (false), "stream"? (false)  → {"text":S}, and
///       "bytes":BASE64 when what the ids stand for is not UTF-8,
///       "pieces":[S...] with stream: the text that may be shown after each id, and a last one
/// What cannot be done gives {"error":{"kind","message"}} and `*ok` = false; `*ok` is left alone otherwise.
std::string answer_line(const Tokenizer& tokenizer, std::string_view line, bool* ok);

}  // namespace deepinfer
