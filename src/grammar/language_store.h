// The expressions behind Languages: hash-consed nodes, the constructors that simplify, derivatives, and the searches that
// decide emptiness. Private to language*.cc; others include language.h.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/char_set.h"
#include "grammar/fingerprint.h"
#include "grammar/fuel.h"
#include "grammar/language.h"

namespace deepinfer::grammar {

enum class Kind : uint8_t {
  kNothing,
  kEmptyText,
  kAnyText,   // every well-formed text
  kAllBytes,  // every sequence of bytes
  kBytes,     // one byte of set a
  kText,      // the b bytes from a of the text pool
  kChars,   // the rest of a character of set a outside ASCII: the bits b are read, c bytes are left (0: all), d: state
  kConcat,  // a, then b; a is no kConcat
  kUnion,   // b languages from a of the list pool; those from c on begin with a text, by its bytes
  kCommon,  // intersection of b languages from a
  kNot,     // every sequence of bytes that is not in a
  kRepeat,  // c to d (-1: any number) times a; c is 0 where a has the empty text
  kOne,     // texts in exactly one of b languages from a, of which equal ones stand at most twice
  kAutomaton,  // automaton a in state c
};

struct ExprNode {
  Kind kind = Kind::kNothing;
  uint8_t flags = 0;
  uint8_t residual = kIllFormed;  // the rest of any text in this UTF-8 state, where the language is that
  uint16_t height = 0;            // nesting, bodies of concatenations not counted
  uint32_t a = 0, b = 0;
  int32_t c = 0, d = 0;
  Utf8Map utf8 = kNoUtf8Map;
  uint32_t hash = 0;
  uint32_t search = 0;  // of the last search that saw it
  int32_t walk = -1;    // index of its transitions
  int64_t n_min = 0;    // bytes of a shortest text, at least; exactly with kExact
  // Bytes by their lower six bits: those that every text has, and those that some may have.
  uint64_t must = 0, may = ~uint64_t{0};
};

enum NodeFlag : uint8_t {
  kNullable = 1,  // has the empty text
  kPlain = 2,     // neither intersection nor complement inside: not empty, and kFinite says all
  kFinite = 4,    // a finite number of texts, surely
  kNonEmpty = 8,  // has a text, surely
  kEmpty = 16,    // has no text: found by a search
  kExact = 32,    // n_min is exact
  kStepped = 64,  // a byte was asked that no row remembers
};

inline constexpr Lang kEverything = 3;  // every sequence of bytes

/// Of the texts of a language, in characters.
struct CharCounts {
  uint64_t lengths = 0;  // bit n: there is a text of n, surely; bit 63: there are texts of 63 and of all numbers above
  int32_t min = 0;       // of the shortest; -1: not known
};

class LanguageStore {
 public:
  explicit LanguageStore(int64_t n_bytes_max);

  // -- constructors (language_build.cc, language_sets.cc)
  Lang chars(const CharSet& set);
  Lang text(std::string_view literal);
  Lang bytes(const ByteSet& set);
  Lang concat(Lang first, Lang second);
  Lang concat(std::span<const Lang> parts);
  Lang unite(std::span<const Lang> parts);
  Lang intersect(std::span<const Lang> parts);
  Lang exactly_one(std::span<const Lang> parts);
  Lang negate(Lang lang);
  Lang repeat(Lang body, int32_t min, int32_t max);
  Lang automaton(std::shared_ptr<const Languages::Automaton> automaton);

  // -- walking (language_walk.cc)
  Lang next(Lang from, uint8_t byte) {
    if (from < nodes_.size() && nodes_[from].walk >= 0) [[likely]] {
      const Walk walk = walks_[static_cast<size_t>(nodes_[from].walk)];
      const Lang found = rows_[walk.row + partitions_[walk.partition].class_of[byte]];
      if (found < kUnverified) return found;
    }
    return find_next(from, byte);
  }
  Lang next(Lang from, std::string_view bytes);
  std::span<const uint8_t, 256> byte_classes(Lang from);

  // -- searches (language_search.cc)
  bool is_empty(Lang lang);
  /// Every text of one has a byte that no text of the other has.
  [[nodiscard]] bool clash(std::span<const Lang> parts) const;
  int64_t shortest(Lang lang);

  // -- lists of texts (language_texts.cc)
  bool visit_texts(Lang lang, TextVisitor& visitor) const;
  [[nodiscard]] bool may_be_list(Lang lang) const { return has(lang, kFinite) && has(lang, kPlain); }

  // -- counting (language_counts.cc)
  std::optional<Languages::Counted> counted(Lang lang);
  int32_t chars_at_least(Lang lang);
  Languages::Bounds bounds(Lang lang, int32_t n);
  [[nodiscard]] bool takes_every_text(Lang lang) const;
  [[nodiscard]] int64_t bytes_at_least(Lang lang) const { return nodes_[lang].n_min; }

  std::optional<Fingerprint> fingerprint(Lang lang);  // language_fingerprint.cc

  [[nodiscard]] bool nullable(Lang lang) const { return has(lang, kNullable); }
  [[nodiscard]] bool exhausted() const { return full_ || (fuel_ != nullptr && fuel_->empty()); }
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_ + static_cast<int64_t>(sizeof(*this)); }
  void set_fuel(Fuel* fuel) { fuel_ = fuel; }
  [[nodiscard]] Fuel* fuel() const { return fuel_; }

 private:
  static constexpr Lang kUnverified = 0x80000000;  // flag of a row entry: may turn out to be empty
  static constexpr Lang kUnknown = 0xFFFFFFFF;     // row entry not computed yet
  static constexpr uint32_t kTextMax = 64;         // bytes of one text node
  static constexpr uint16_t kHeightMax = 220;      // bounds recursion
  static constexpr int kFactorDepth = 4;
  static constexpr int32_t kCharsOfToken = 128;  // tokens with more are rare
  static constexpr int64_t kMapEntry = 48;

  struct Partition {
    uint8_t class_of[256];
    uint8_t example[256];  // a byte of each class
    int32_t n_classes;
  };
  struct Walk {
    uint32_t partition;
    uint32_t row;
  };
  /// A part of a union as head and rest, to put together those that share one.
  struct Headed {
    Lang head, rest;
    int32_t min, max;  // of `head`, where it is repeated
  };

  [[nodiscard]] const ExprNode& at(Lang lang) const { return nodes_[lang]; }
  [[nodiscard]] bool has(Lang lang, uint8_t flag) const { return (nodes_[lang].flags & flag) != 0; }
  [[nodiscard]] Kind kind(Lang lang) const { return nodes_[lang].kind; }
  [[nodiscard]] Lang live(Lang lang) const { return has(lang, kEmpty) ? kNothing : lang; }
  [[nodiscard]] std::string_view text_of(const ExprNode& node) const { return {text_.data() + node.a, node.b}; }
  [[nodiscard]] std::span<const Lang> list_of(const ExprNode& node) const { return {lists_.data() + node.a, node.b}; }
  bool spend(int64_t n_steps = 1) { return fuel_ == nullptr ? !full_ : fuel_->spend(n_steps) && !full_; }

  /// The node equal to `node`, added if need be. `list`: of the kinds that have one.
  Lang intern(ExprNode node, std::span<const Lang> list = {});
  bool same(const ExprNode& x, const ExprNode& node, std::span<const Lang> list) const;
  void describe(ExprNode& node, std::span<const Lang> list) const;
  void describe_list(ExprNode& node, std::span<const Lang> list) const;
  void count_bytes(int64_t n_bytes);
  void rehash();
  uint32_t set_index(const ByteSet& set);
  uint32_t char_set_index(CharSet set);

  Lang chars_window(uint32_t set, uint32_t bits, int n_left, Utf8State state);
  Lang chars_after(const ExprNode& node, uint8_t byte);
  Lang put_before(Lang head, Lang tail);  // concat where head is no concatenation
  /// The constructors over the end of scratch_, from `mark`; they take it away.
  Lang unite_from(size_t mark, int depth = 0);
  Lang intersect_from(size_t mark);
  Lang one_from(size_t mark);
  bool flatten_union(size_t mark, bool& has_empty);
  void absorb_in_residuals(size_t mark, bool& has_empty);
  void merge_bytes(size_t mark);
  void merge_chars(size_t mark);
  void sort_union(size_t mark);
  void absorb_common(size_t mark);
  void merge_heads(size_t mark, int depth, bool& has_empty);
  void factor_texts(size_t mark, int depth);
  Lang without_prefix(Lang lang, uint32_t n);
  static bool join_ranges(std::vector<Headed>& parts);
  [[nodiscard]] Headed split_head(Lang lang) const;
  Lang finish_union(size_t mark);
  [[nodiscard]] bool begins_with_text(Lang lang) const;
  [[nodiscard]] std::string_view leading_text(Lang lang) const;
  [[nodiscard]] bool text_before(Lang x, Lang y) const;

  /// What comes behind a part of an expression, inside out.
  struct Rest {
    Lang lang;
    const Rest* rest;  // null: the text ends
  };
  bool visit_parts(Lang lang, const Rest* rest, TextVisitor& visitor, int32_t& n_left) const;
  bool visit_rest(const Rest* rest, TextVisitor& visitor, int32_t& n_left) const;

  Lang derive(Lang lang, uint8_t byte);
  Lang derive_concat(Lang lang, uint8_t byte);
  Lang derive_union(Lang lang, uint8_t byte);
  Lang find_next(Lang from, uint8_t byte);
  size_t take_run(Lang& from, std::string_view bytes);
  Lang raw_next(Walk walk, Lang from, int byte_class);
  CharCounts char_counts(Lang lang);
  void keep_counts(Lang lang, const CharCounts& counts);
  bool is_one_char(Lang lang);
  Lang rounded(Lang lang, int32_t n, bool up);
  /// With a text it has that text and any behind it.
  [[nodiscard]] bool is_open(Lang lang) const;
  [[nodiscard]] bool begins_with_literal(Lang lang) const {
    const ExprNode& node = at(lang);
    return node.kind == Kind::kText || (node.kind == Kind::kConcat && kind(node.a) == Kind::kText);
  }
  int32_t walk_of(Lang lang);
  uint32_t partition_of(Lang lang);
  void collect(Lang lang, std::vector<ByteSet>& sets, ByteSet& singles);
  void collect_chars(const ExprNode& node, std::vector<ByteSet>& sets, ByteSet& singles) const;
  void mark_path(int32_t from);
  void find_print(Lang lang);
  void describe_bytes(ExprNode& node, std::span<const Lang> list) const;

  std::vector<ExprNode> nodes_;
  std::vector<Lang> lists_;
  std::vector<char> text_;
  std::vector<ByteSet> sets_;
  std::vector<CharSet> char_sets_;
  std::vector<std::shared_ptr<const Languages::Automaton>> automata_;
  std::vector<uint32_t> table_;  // of node numbers + 1, by hash
  std::vector<Lang> scratch_;
  std::vector<ByteSet> sets_scratch_;
  std::array<ByteSet, 256> classes_scratch_;
  std::vector<uint32_t> collected_;  // per node: the last call of partition_of() that met it
  uint32_t n_partitions_asked_ = 0;

  std::vector<Walk> walks_;
  std::vector<Lang> rows_;
  std::deque<Partition> partitions_;
  std::vector<uint32_t> partition_hashes_;

  Lang rest_of_char_[kNumUtf8States] = {};  // the bytes left of a character, by state
  Lang rest_of_text_[kNumUtf8States] = {};  // and any text behind them
  Lang any_char_ = kNothing, beyond_ascii_ = kNothing;
  struct Found {  // by a search
    Lang lang;
    int32_t parent;  // index of where it was reached from; -1: the start
    int64_t n_before;
  };
  std::vector<Found> found_;
  struct NodePrint {
    enum State : uint8_t { kNotAsked, kKnown, kNone };
    Fingerprint print;
    State state = kNotAsked;
  };
  std::vector<NodePrint> prints_;  // per node, as far as asked
  std::unordered_map<Lang, CharCounts> counts_;
  std::unordered_map<uint64_t, Lang> rounded_;
  uint32_t n_searches_ = 0;
  int64_t n_bytes_ = 0, n_bytes_max_;
  bool full_ = false;
  Fuel* fuel_ = nullptr;
};

}  // namespace deepinfer::grammar
