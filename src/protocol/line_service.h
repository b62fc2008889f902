// The JSON-lines services behind `deepinfer render` and `deepinfer parse`: one line in, one answer line out. They walk
// the same way as a served request, without a model. Pure functions of the tokenizer and the line; any thread.
#pragma once

#include <string>
#include <string_view>

#include "deepinfer/tokenizer.h"
#include "protocol/api_error.h"
#include "protocol/special_tokens.h"

namespace deepinfer::protocol {

/// What the services stand on; both outlive the calls.
struct LineTools {
  const Tokenizer& tokenizer;
  const SpecialTokens& specials;
};

/// A request body → {"parts":[{"special","id"} | {"text"}...], "text", "token_ids", "parse":{"start","tools","json",
/// "stop"}, "stream", "max_tokens", "images":[{"source","detail"}], "constraint"?:{"kind","schema"}}. A refused body is
/// an answer: {"error":{"status","type","message","param"}}; a line that is no JSON gives the same with a "kind" and
/// `*ok` = false. `*ok` is left alone otherwise. No line end on either side.
std::string render_line(Api api, const LineTools& tools, std::string_view line, bool* ok);

/// {"request":{...}, "chunks":[S...] | "bytes":[BASE64...] | "ids":[[...]...], "finish":"stop|length|content_filter|eof"}
/// → {"body":{...}, "events":[[...]...]}: events[0] before the first chunk, events[i] after chunk i, the last group
/// after the end; "[DONE]" is not among them. Errors as render_line(); a malformed line has a "kind" and no status.
std::string parse_line(Api api, const LineTools& tools, std::string_view line, bool* ok);

}  // namespace deepinfer::protocol
