#include "grammar/vocabulary.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "grammar/byte_set.h"
#include "grammar/mask_bits.h"
#include "grammar/token_trie.h"

namespace deepinfer::grammar {
namespace {

constexpr size_t kFanChildren = 24;
constexpr uint32_t kFanNodes = 64;  // of the subtree

struct SortKey {
  uint64_t head;  // the first eight bytes, big-endian
  int32_t token;
};

uint64_t head_of(std::string_view bytes) {
  uint64_t head = 0;
  for (size_t i = 0; i < 8; ++i) head = head << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  return head;
}

bool is_digits(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_common(uint8_t byte) {
  return byte == ' ' || (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

}  // namespace

Vocabulary::Vocabulary(int64_t n_kind_bytes_max) : kinds_(std::make_unique<KindCache>(n_kind_bytes_max)) {}
Vocabulary::~Vocabulary() = default;

Result<std::shared_ptr<const Vocabulary>> Vocabulary::build(std::span<const std::string_view> tokens,
                                                            std::span<const int32_t> end_of_text, int32_t n_head,
                                                            int64_t n_kind_bytes_max) {
  if (n_head <= 0) return Error{Code::kInvalidArgument, "the output head has " + std::to_string(n_head) + " rows"};
  for (const int32_t token : end_of_text)
    if (token < 0 || token >= n_head)
      return Error{Code::kInvalidArgument, "end-of-text id " + std::to_string(token) +
                                               " is outside the output head of " + std::to_string(n_head) + " rows"};
  std::shared_ptr<Vocabulary> out(new Vocabulary(n_kind_bytes_max));
  out->n_head_ = n_head;
  out->n_tokens_ = static_cast<int32_t>(std::min(tokens.size(), static_cast<size_t>(n_head)));
  out->end_of_text_.assign(end_of_text.begin(), end_of_text.end());
  std::sort(out->end_of_text_.begin(), out->end_of_text_.end());
  out->end_of_text_.erase(std::unique(out->end_of_text_.begin(), out->end_of_text_.end()), out->end_of_text_.end());

  const auto n_words = static_cast<size_t>(out->n_words());
  out->free_row_.resize(n_words);
  out->digit_row_.resize(n_words);
  std::vector<SortKey> order;
  order.reserve(static_cast<size_t>(out->n_tokens_));
  out->offsets_.push_back(0);
  for (int32_t token = 0; token < out->n_tokens_; ++token) {
    std::string_view bytes = tokens[static_cast<size_t>(token)];
    if (bytes.size() > kTokenBytesMax || out->ends_text(token)) bytes = {};
    out->text_ += bytes;
    out->offsets_.push_back(static_cast<uint32_t>(out->text_.size()));
    if (!out->ends_text(token)) set_bit(out->free_row_, token);
    if (bytes.empty()) continue;
    order.push_back({head_of(bytes), token});
    out->token_bytes_max_ = std::max(out->token_bytes_max_, static_cast<int32_t>(bytes.size()));
    if (!is_digits(bytes)) continue;
    set_bit(out->digit_row_, token);
    ++out->n_digit_tokens_;
  }
  out->text_.shrink_to_fit();
  if (order.empty()) return Error{Code::kInvalidArgument, "no token of the vocabulary has text"};

  std::sort(order.begin(), order.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order_of_bytes = out->bytes(a.token).compare(out->bytes(b.token));
    return order_of_bytes != 0 ? order_of_bytes < 0 : a.token < b.token;
  });
  std::vector<TrieEntry> entries;
  entries.reserve(order.size());
  int32_t last = -1;  // of the tokens with the bytes of entries.back()
  for (const SortKey& key : order) {
    const std::string_view bytes = out->bytes(key.token);
    if (entries.empty() || entries.back().bytes != bytes) {
      entries.push_back({bytes, key.token});
    } else {
      out->same_bytes_.resize(static_cast<size_t>(out->n_tokens_), -1);
      out->same_bytes_[static_cast<size_t>(last)] = key.token;
    }
    last = key.token;
  }
  out->nodes_ = make_trie(entries);
  out->nodes_.shrink_to_fit();
  for (uint32_t node = 1; node < out->nodes_.size(); node = out->nodes_[node].next)
    out->first_nodes_[out->nodes_[node].byte] = static_cast<int32_t>(node);
  out->token_trie_ = std::make_unique<TokenTrie>(out->nodes_, out->same_bytes_, out->n_words());
  out->find_digit_nodes();
  out->find_fans();
  out->find_text_tokens();
  out->find_blanks();
  out->find_number_ends();
  out->strings_ = find_string_tokens(entries, out->same_bytes_, n_head);
  out->json_tokens_ = find_json_tokens(entries);
  return std::shared_ptr<const Vocabulary>(std::move(out));
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::build(std::span<const std::string_view> tokens,
                                                            std::span<const int32_t> end_of_text, int32_t n_head) {
  return build(tokens, end_of_text, n_head, KindCache::kBytesMax);
}

void Vocabulary::find_digit_nodes() {
  uint32_t first = 0, end = 0;
  for (uint8_t digit = '0'; digit <= '9'; ++digit) {
    const auto node = static_cast<uint32_t>(first_nodes_[digit]);
    if (node == 0) continue;
    if (first == 0) first = node;
    end = nodes_[node].next;
  }
  for (uint32_t node = first; node < end; ++node)
    if (nodes_[node].byte < '0' || nodes_[node].byte > '9') return;
  digit_nodes_ = {first, end - first};
}

void Vocabulary::find_fans() {
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].next - node < kFanNodes) continue;
    size_t n_children = 0;
    for (uint32_t child = node + 1; child < nodes_[node].next; child = nodes_[child].next) ++n_children;
    if (n_children < kFanChildren) continue;
    TrieFan fan;
    for (uint32_t child = node + 1; child < nodes_[node].next; child = nodes_[child].next) {
      const auto byte = static_cast<uint8_t>(nodes_[child].byte);
      fan.bytes[byte / 64] |= uint64_t{1} << (byte % 64);
      fan.nodes[byte] = child;
    }
    fan_index_.insert(node, static_cast<uint32_t>(fans_.size()));
    fans_.push_back(fan);
  }
}

void Vocabulary::find_blanks() {
  struct Open {
    uint32_t node;
    int32_t n_line_ends, n_others;
  };
  std::vector<Open> open{{0, 0, 0}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    BlankPrefix prefix{at.node, at.n_line_ends, at.n_others, {}};
    for (int32_t token = nodes_[at.node].token; token >= 0; token = same_bytes(token))
      blank_tokens_.push_back({token, at.n_line_ends, at.n_others});
    for (uint32_t child = at.node + 1; child < nodes_[at.node].next; child = nodes_[child].next) {
      const auto byte = static_cast<uint8_t>(nodes_[child].byte);
      if (byte == '\n') {
        open.push_back({child, at.n_line_ends + 1, at.n_others});
      } else if (byte == ' ' || byte == '\t' || byte == '\r') {
        open.push_back({child, at.n_line_ends, at.n_others + 1});
      } else {
        prefix.bytes[byte / 64] |= uint64_t{1} << (byte % 64);
      }
    }
    if (at.node != 0 && prefix.bytes != std::array<uint64_t, 4>{}) blank_prefixes_.push_back(prefix);
  }
  std::sort(blank_tokens_.begin(), blank_tokens_.end(),
            [](const BlankToken& a, const BlankToken& b) { return a.token < b.token; });
}

void Vocabulary::find_number_ends() {
  for (int32_t token = 0; token < n_tokens_; ++token) {
    const std::string_view text = bytes(token);
    const size_t n = std::min(text.find_first_not_of("0123456789+-.eE"), text.size());
    if (n > 0 && n < text.size() && text[n - 1] >= '0' && text[n - 1] <= '9') number_end_tokens_.push_back(token);
  }
}

uint32_t Vocabulary::child(uint32_t node, uint8_t byte) const {
  if (node == 0) return static_cast<uint32_t>(first_nodes_[byte]);
  const uint32_t end = nodes_[node].next;
  if (end - node >= kFanNodes) {
    const TrieFan* children = fan(node);
    if (children != nullptr) return children->child(byte);
  }
  for (uint32_t at = node + 1; at < end && nodes_[at].byte <= byte; at = nodes_[at].next)
    if (nodes_[at].byte == byte) return at;
  return 0;
}

void Vocabulary::find_text_tokens() {
  text_row_.resize(free_row_.size());
  std::array<std::vector<int32_t>, 256> lists;
  for (int32_t token = 0; token < n_tokens_; ++token) {
    Utf8State state = kBetween;
    ByteSet seen;
    for (const char c : bytes(token)) {
      const auto byte = static_cast<uint8_t>(c);
      if (state != kIllFormed) state = next_utf8_state(state, byte);
      if (is_common(byte) || seen.contains(byte)) continue;
      seen.add(byte);
      lists[byte].push_back(token);
    }
    if (state != kIllFormed && !bytes(token).empty()) set_bit(text_row_, token);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    with_byte_.insert(with_byte_.end(), lists[byte].begin(), lists[byte].end());
    with_byte_from_[byte + 1] = static_cast<uint32_t>(with_byte_.size());
  }
}

std::optional<std::span<const int32_t>> Vocabulary::tokens_with(uint8_t byte) const {
  if (is_common(byte)) return std::nullopt;
  return std::span(with_byte_).subspan(with_byte_from_[byte], with_byte_from_[byte + 1] - with_byte_from_[byte]);
}

bool Vocabulary::ends_text(int32_t token) const {
  return std::binary_search(end_of_text_.begin(), end_of_text_.end(), token);
}

std::span<const MaskWord> Vocabulary::string_mask(int32_t n_chars_max) const {
  const int32_t n = std::clamp(n_chars_max, 0, string_chars_max());
  return strings_.rows[static_cast<size_t>(strings_.row_of[static_cast<size_t>(n)])];
}

int64_t Vocabulary::n_bytes() const {
  return static_cast<int64_t>(sizeof(*this) + text_.capacity() + offsets_.capacity() * sizeof(uint32_t) +
                              nodes_.capacity() * sizeof(Node) + fans_.capacity() * sizeof(TrieFan) +
                              same_bytes_.capacity() * sizeof(int32_t) +
                              (free_row_.capacity() + digit_row_.capacity() + text_row_.capacity()) * sizeof(MaskWord) +
                              (with_byte_.capacity() + number_end_tokens_.capacity()) * sizeof(int32_t) +
                              blank_tokens_.capacity() * sizeof(BlankToken) +
                              blank_prefixes_.capacity() * sizeof(BlankPrefix)) +
         fan_index_.n_bytes() + strings_.n_bytes() + json_tokens_.n_bytes() + token_trie_->n_bytes() +
         kinds_->stats().n_bytes;
}

}  // namespace deepinfer::grammar
