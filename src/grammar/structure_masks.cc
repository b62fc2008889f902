#include "grammar/structure_masks.h"

#include <optional>

namespace deepinfer::grammar {

void StructureMasks::append(const Blanks& blanks, std::vector<int32_t>& ids) {
  const std::vector<TrieNode>& trie = json_.trie;
  const uint32_t quote = json_.quote_node;
  allowed_.assign(json_.texts.size(), 0);
  walk_.begin();
  walk(1, quote == 0 ? trie[0].next : quote, blanks.clean);
  if (quote != 0) {
    walk(trie[quote].next, trie[0].next, blanks.clean);
    const std::optional<NextBytes> next = walk_.machine().next_bytes(blanks.clean);
    const bool may_begin = !next || next->contains('"');
    const State inside = may_begin ? walk_.machine().step(blanks.clean, '"') : kDead;
    if (inside != kDead) find_strings(inside);
  }
  for (const JsonTokens::Token& token : json_.tokens) {
    if (allowed_[static_cast<size_t>(token.text)] == 0) continue;
    if (token.n_line_ends <= blanks.n_line_ends && token.n_others <= blanks.n_others)
      vocabulary_.append_all(token.token, ids);
  }
  for (const BlankToken& token : vocabulary_.blank_tokens())
    if (token.n_line_ends <= blanks.n_line_ends && token.n_others <= blanks.n_others) ids.push_back(token.token);
}

void StructureMasks::walk(uint32_t first, uint32_t end, State from) {
  walk_.walk(
      json_.trie, first, end, from, [](uint32_t, const TrieNode&) { return true; },
      [&](uint32_t, const TrieNode& node) {
        if (node.token >= 0) allowed_[static_cast<size_t>(node.token)] = 1;
        return true;
      });
}

/// The texts that begin with a quote; `inside` is the state behind it.
void StructureMasks::find_strings(State inside) {
  Machine& machine = walk_.machine();
  const TrieNode& quote = json_.trie[json_.quote_node];
  if (quote.token >= 0) allowed_[static_cast<size_t>(quote.token)] = 1;
  const std::optional<StringBody> body = machine.string_body(inside);
  if (!body || (!body->any_text && !body->takes_all)) return walk(json_.quote_node + 1, quote.next, inside);
  const bool every_escape = body->every_escape;
  const int32_t n_chars_max = body->max_left;
  for (size_t i = json_.first_string; i < json_.first_string + json_.n_strings; ++i) {
    const JsonTokens::Text& text = json_.texts[i];
    const bool is_known = !text.closes && (every_escape || !text.has_escape);
    const bool is_allowed = is_known ? n_chars_max < 0 || text.n_chars <= n_chars_max
                                     : machine.steps(inside, text.bytes.substr(1)) != kDead;
    allowed_[i] = is_allowed ? 1 : 0;
  }
}

}  // namespace deepinfer::grammar
