#include "grammar/json_tokens.h"

#include <algorithm>
#include <utility>

#include "grammar/json_scan.h"

namespace deepinfer::grammar {
namespace {

bool may_be_json(std::string_view text) {
  JsonScan scan(JsonScan::Start::kBetweenTokens);
  return std::all_of(text.begin(), text.end(), [&](char c) { return scan.step(static_cast<uint8_t>(c)); });
}

JsonTokens::Text text_of(std::string_view bytes) {
  JsonTokens::Text text{.bytes = bytes};
  if (bytes[0] != '"') return text;
  StringScan scan;
  for (const char c : bytes.substr(1))
    if (!scan.step(static_cast<uint8_t>(c))) break;
  text.n_chars = scan.n_chars();
  text.closes = scan.closed();
  text.has_escape = scan.has_escape();
  return text;
}

}  // namespace

JsonTokens find_json_tokens(std::span<const TrieEntry> entries) {
  JsonTokens out;
  std::vector<std::pair<std::string_view, JsonTokens::Token>> found;
  for (const TrieEntry& entry : entries) {
    JsonTokens::Token token{.token = entry.value, .n_line_ends = 0, .n_others = 0, .text = -1};
    const size_t n_blanks = std::min(entry.bytes.find_first_not_of(" \t\r\n"), entry.bytes.size());
    const std::string_view text = entry.bytes.substr(n_blanks);
    const bool is_number = !text.empty() && n_blanks == 0 && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
    if (text.empty() || is_number || !may_be_json(text)) continue;
    for (const char c : entry.bytes.substr(0, n_blanks)) ++(c == '\n' ? token.n_line_ends : token.n_others);
    found.push_back({text, token});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TrieEntry> texts;
  for (auto& [text, token] : found) {
    if (texts.empty() || texts.back().bytes != text) {
      texts.push_back({text, static_cast<int32_t>(texts.size())});
      out.texts.push_back(text_of(text));
      if (text[0] == '"' && out.n_strings++ == 0) out.first_string = out.texts.size() - 1;
    }
    token.text = texts.back().value;
    out.tokens.push_back(token);
  }
  out.trie = make_trie(texts);
  for (uint32_t node = 1; node < out.trie.size(); node = out.trie[node].next)
    if (out.trie[node].byte == '"') out.quote_node = node;
  return out;
}

int64_t JsonTokens::n_bytes() const {
  return static_cast<int64_t>(texts.capacity() * sizeof(Text) + tokens.capacity() * sizeof(Token) +
                              trie.capacity() * sizeof(TrieNode));
}

}  // namespace deepinfer::grammar
