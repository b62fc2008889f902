#include "protocol/line_service.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/output_parser.h"
#include "protocol/prompt.h"
#include "protocol/request.h"
#include "protocol/response.h"
#include "protocol/token_output.h"
#include "text/utf8.h"
#include "tokenizer/base64.h"

namespace deepinfer::protocol {
namespace {

Error bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

void append_member(std::string_view key, std::string_view text, std::string& out) {
  json::append_quoted(key, out);
  out += ':';
  json::append_quoted(text, out);
}

/// The line is no request at all.
std::string failed_line(const Error& error, bool* ok) {
  *ok = false;
  std::string out = "{\"error\":{";
  append_member("kind", code_name(error.code), out);
  out += ',';
  append_member("message", error.message, out);
  return out += "}}";
}

/// The line is a request that a server would refuse. `kind`: also not even JSON.
std::string refused_line(const ApiError& error, std::optional<Code> kind) {
  std::string out = "{\"error\":{";
  if (kind) {
    append_member("kind", code_name(*kind), out);
    out += ',';
  }
  out += "\"status\":" + std::to_string(error.status) + ',';
  append_member("type", error.type(), out);
  out += ',';
  append_member("message", error.message, out);
  out += ",\"param\":";
  if (error.param.empty()) {
    out += "null";
  } else {
    json::append_quoted(error.param, out);
  }
  return out += "}}";
}

void append_ids(const std::vector<int32_t>& ids, std::string& out) {
  out += '[';
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(ids[i]);
  }
  out += ']';
}

/// One object a special token and one a run of text between two.
void append_parts(const Prompt& prompt, const SpecialTokens& specials, std::string& out) {
  std::string run;
  bool first = true;
  const auto open = [&] {
    if (!std::exchange(first, false)) out += ',';
    out += '{';
  };
  const auto flush = [&] {
    if (run.empty()) return;
    open();
    append_member("text", run, out);
    out += '}';
    run.clear();
  };
  out += '[';
  for_each_part(
      prompt,
      [&](Special special) {
        const std::optional<int32_t> id = specials.id(special);
        if (!id) {
          run += spelling(special);  // as encode() does
          return;
        }
        flush();
        open();
        append_member("special", spelling(special), out);
        out += ",\"id\":" + std::to_string(*id) + '}';
      },
      [&](std::string_view text) { run += text; });
  flush();
  out += ']';
}

void append_output_settings(const OutputSettings& output, std::string& out) {
  out += '{';
  append_member("start", name_of(output.start), out);
  out += output.tools ? ",\"tools\":true" : ",\"tools\":false";
  out += output.json ? ",\"json\":true" : ",\"json\":false";
  out += ",\"stop\":[";
  for (size_t i = 0; i < output.stop.size(); ++i) {
    if (i > 0) out += ',';
    json::append_quoted(output.stop[i], out);
  }
  out += "]}";
}

void append_images(const std::vector<ImageSource>& images, std::string& out) {
  out += '[';
  for (size_t i = 0; i < images.size(); ++i) {
    if (i > 0) out += ',';
    out += '{';
    append_member("source", images[i].url, out);
    out += ',';
    append_member("detail", images[i].detail, out);
    out += '}';
  }
  out += ']';
}

// --- parse -----------------------------------------------------------------------------------------------------------

/// What a line of `parse` holds, checked. Exactly one of `texts` and `ids` is given.
struct ParseLine {
  const json::Value* request = nullptr;
  std::optional<std::vector<std::string>> texts;
  std::optional<std::vector<std::vector<int32_t>>> ids;
  BackendFinish finish = BackendFinish::kStop;

  [[nodiscard]] size_t n_chunks() const { return texts ? texts->size() : ids->size(); }
};

Result<std::vector<std::string>> read_texts(const json::Value& list, std::string_view key) {
  if (!list.is(json::Kind::kArray)) return bad(std::string(key) + " is not an array");
  std::vector<std::string> texts;
  for (const json::Value& item : list.items) {
    const std::string where = std::string(key) + "[" + std::to_string(texts.size()) + "]";
    if (!item.is(json::Kind::kString)) return bad(where + " is not a string");
    if (key == "chunks") {
      texts.push_back(item.text);
      continue;
    }
    std::optional<std::string> bytes = base64_decode(item.text);
    if (!bytes) return bad(where + " is not valid base64");
    texts.push_back(*std::move(bytes));
  }
  return texts;
}

Result<std::vector<std::vector<int32_t>>> read_ids(const json::Value& list, int32_t vocab_size) {
  if (!list.is(json::Kind::kArray)) return bad("ids is not an array");
  std::vector<std::vector<int32_t>> chunks;
  for (const json::Value& chunk : list.items) {
    const std::string where = "ids[" + std::to_string(chunks.size()) + "]";
    if (!chunk.is(json::Kind::kArray)) return bad(where + " is not an array");
    std::vector<int32_t>& ids = chunks.emplace_back();
    for (const json::Value& item : chunk.items) {
      int32_t id = -1;
      const char* end = item.text.data() + item.text.size();
      const bool is_integer = item.is(json::Kind::kNumber) && std::from_chars(item.text.data(), end, id).ptr == end;
      if (!is_integer || id < 0 || id >= vocab_size) {
        return bad(where + "[" + std::to_string(ids.size()) + "] is no id of [0, " + std::to_string(vocab_size) + ")");
      }
      ids.push_back(id);
    }
  }
  return chunks;
}

Result<BackendFinish> read_finish(const json::Value& value) {
  if (value.is(json::Kind::kString)) {
    if (value.text == "stop") return BackendFinish::kStop;
    if (value.text == "length") return BackendFinish::kLength;
    if (value.text == "content_filter") return BackendFinish::kContentFilter;
    if (value.text == "eof") return BackendFinish::kNone;
  }
  return bad("finish is not one of stop, length, content_filter, eof");
}

Result<ParseLine> read_parse_line(const json::Value& root, int32_t vocab_size) {
  if (!root.is(json::Kind::kObject)) return bad("line is not a JSON object");
  ParseLine line;
  bool has_finish = false;
  for (const json::Member& member : root.members) {
    const std::string& key = member.key;
    const bool is_output = key == "chunks" || key == "bytes" || key == "ids";
    if (is_output && (line.texts || line.ids)) return bad("exactly one of chunks, bytes and ids is needed, once");
    if (key == "request") {
      if (line.request != nullptr) return bad("request is given twice");
      line.request = &member.value;
    } else if (key == "ids") {
      auto ids = read_ids(member.value, vocab_size);
      if (!ids.ok()) return ids.error();
      line.ids = *std::move(ids);
    } else if (is_output) {
      auto texts = read_texts(member.value, key);
      if (!texts.ok()) return texts.error();
      line.texts = *std::move(texts);
    } else if (key == "finish") {
      if (std::exchange(has_finish, true)) return bad("finish is given twice");
      const Result<BackendFinish> finish = read_finish(member.value);
      if (!finish.ok()) return finish.error();
      line.finish = *finish;
    } else {
      return bad("unknown member " + quoted_for_message(key));
    }
  }
  if (line.request == nullptr) return bad("request is missing");
  if (!line.texts && !line.ids) return bad("exactly one of chunks, bytes and ids is needed");
  if (!has_finish) return bad("finish is missing");
  return line;
}

/// Passes everything on and keeps the reasoning, so that it can be counted.
class ReasoningKeeper : public OutputEvents {
 public:
  explicit ReasoningKeeper(OutputEvents& events) : events_(events) {}

  void on_reasoning(std::string_view text) override {
    reasoning_ += text;
    events_.on_reasoning(text);
  }
  void on_answer(std::string_view text) override { events_.on_answer(text); }
  void on_call_begin(std::string_view name) override { events_.on_call_begin(name); }
  void on_call_arguments(std::string_view json) override { events_.on_call_arguments(json); }
  void on_call_end() override { events_.on_call_end(); }

  [[nodiscard]] const std::string& reasoning() const { return reasoning_; }

 private:
  OutputEvents& events_;  // borrowed
  std::string reasoning_;
};

/// The output of one sequence, as text or as ids, pushed chunk by chunk.
class OutputFeed {
 public:
  OutputFeed(const LineTools& tools, const ParseLine& line, OutputSettings settings)
      : tokenizer_(tools.tokenizer), line_(line) {
    if (line.ids) {
      tokens_.emplace(tools.tokenizer, tools.specials, std::move(settings));
    } else {
      text_.emplace(std::move(settings), OutputParser::Markers::kBySpelling);
    }
  }

  void push(size_t chunk, OutputEvents& events) {
    if (text_) {
      text_->push_text((*line_.texts)[chunk], events);
      return;
    }
    // read_ids() has checked the range, so that push() has nothing to refuse.
    for (const int32_t id : (*line_.ids)[chunk]) static_cast<void>(tokens_->push(id, events));
  }

  void finish(OutputEvents& events) { text_ ? text_->finish(events) : tokens_->finish(events); }

  [[nodiscard]] std::optional<int32_t> stop_index() const { return parser().stop_index(); }

  /// Text has no token counts of its own: it and its reasoning are counted as the tokenizer would write them.
  void count(std::string_view reasoning, ResponseUsage& usage) const {
    if (tokens_) {
      usage.n_completion_tokens = tokens_->n_tokens();
      usage.n_reasoning_tokens = tokens_->n_reasoning_tokens();
      return;
    }
    std::string all;
    for (const std::string& text : *line_.texts) all += text;
    usage.n_completion_tokens = n_tokens_of(replace_ill_formed(std::move(all)));
    usage.n_reasoning_tokens = n_tokens_of(reasoning);
  }

 private:
  [[nodiscard]] int64_t n_tokens_of(std::string_view text) const {
    const Result<std::vector<int32_t>> ids = tokenizer_.encode(text, true);
    return ids.ok() ? static_cast<int64_t>(ids->size()) : 0;  // well-formed and far below the tokenizer's limit
  }

  [[nodiscard]] const OutputParser& parser() const { return text_ ? *text_ : tokens_->parser(); }

  const Tokenizer& tokenizer_;
  const ParseLine& line_;
  std::optional<OutputParser> text_;
  std::optional<TokenOutput> tokens_;
};

void append_events(Response& response, std::string& out) {
  out += '[';
  bool first = true;
  for (const StreamEvent& event : response.take_events()) {
    if (event.data == "[DONE]") continue;  // ends the stream, is no event
    if (!std::exchange(first, false)) out += ',';
    out += event.data;
  }
  out += ']';
}

/// Runs the output through parser and response, as a server would: a stop string ends the response at once.
/// A calls block does not: a model's own end is waited for, since it says why it ended.
std::string answer(const LineTools& tools, const ParseLine& line, const ApiRequest& request, OutputSettings settings,
                   ResponseUsage usage) {
  const std::unique_ptr<Response> response = make_response(request, {.id = "0", .model = request.model}, true);
  OutputFeed feed(tools, line, std::move(settings));
  response->begin(usage);
  ReasoningKeeper events(response->choice(0));
  bool is_over = false;
  const auto end = [&] {
    if (std::exchange(is_over, true)) return;
    feed.finish(events);
    feed.count(events.reasoning(), usage);
    response->finish_choice(0, line.finish, feed.stop_index());
    response->end(usage);
  };
  std::string groups = "[";
  append_events(*response, groups);
  for (size_t chunk = 0; chunk < line.n_chunks(); ++chunk) {
    if (!is_over) feed.push(chunk, events);
    if (feed.stop_index()) end();
    groups += ',';
    append_events(*response, groups);
  }
  end();
  groups += ',';
  append_events(*response, groups);
  groups += ']';
  return "{\"body\":" + response->body() + ",\"events\":" + groups + "}";
}

}  // namespace

std::string render_line(Api api, const LineTools& tools, std::string_view line, bool* ok) {
  const RequestLimits limits;
  const Result<json::Value> root = json::parse(line, limits.json);
  if (!root.ok()) {
    *ok = false;
    return refused_line({.message = "body: " + root.error().message, .param = ""}, root.error().code);
  }
  const Result<ApiRequest, ApiError> request = read_request(api, *root, limits);
  if (!request.ok()) return refused_line(request.error(), std::nullopt);
  Prompt prompt = render(request->conversation);
  prompt.output.stop = request->stop;
  const Result<std::vector<int32_t>> ids = encode(prompt, tools.tokenizer, tools.specials);
  if (!ids.ok()) return failed_line(ids.error(), ok);

  std::string out = "{\"parts\":";
  append_parts(prompt, tools.specials, out);
  out += ',';
  append_member("text", prompt.text, out);
  out += ",\"token_ids\":";
  append_ids(*ids, out);
  out += ",\"parse\":";
  append_output_settings(prompt.output, out);
  out += request->stream ? ",\"stream\":true" : ",\"stream\":false";
  out += ",\"max_tokens\":" + (request->max_tokens ? std::to_string(*request->max_tokens) : std::string("null"));
  out += ",\"images\":";
  append_images(prompt.images, out);
  if (const std::optional<Constraint> constraint = constraint_of(request->conversation)) {
    out += ",\"constraint\":{";
    append_member("kind", constraint->kind, out);
    out += ',';
    append_member("schema", constraint->schema, out);
    out += '}';
  }
  return out += '}';
}

std::string parse_line(Api api, const LineTools& tools, std::string_view line, bool* ok) {
  const RequestLimits limits;
  json::Limits line_limits = limits.json;
  ++line_limits.depth_max;  // the request is one level down
  const Result<json::Value> root = json::parse(line, line_limits);
  if (!root.ok()) return failed_line(root.error(), ok);
  const Result<ParseLine> parsed = read_parse_line(*root, tools.tokenizer.vocab_size());
  if (!parsed.ok()) return failed_line(parsed.error(), ok);
  const Result<ApiRequest, ApiError> request = read_request(api, *parsed->request, limits);
  if (!request.ok()) return refused_line(request.error(), std::nullopt);
  if (request->n_choices != 1) return failed_line(bad("request.n: parse reads the output of one choice"), ok);
  Prompt prompt = render(request->conversation);
  prompt.output.stop = request->stop;
  const Result<std::vector<int32_t>> ids = encode(prompt, tools.tokenizer, tools.specials);
  if (!ids.ok()) return failed_line(ids.error(), ok);
  const ResponseUsage usage{.n_prompt_tokens = static_cast<int64_t>(ids->size())};
  return answer(tools, *parsed, *request, std::move(prompt.output), usage);
}

}  // namespace deepinfer::protocol
