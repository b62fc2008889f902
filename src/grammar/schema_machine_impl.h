// The machine behind schema_machine.h: phases of JSON text around the frames of schema_frames.h. Internal.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/schema_frames.h"
#include "grammar/schema_machine.h"
#include "grammar/schema_wants.h"
#include "grammar/tuple_table.h"

namespace deepinfer::grammar {

class SchemaMachine final : public Machine {
 public:
  SchemaMachine(std::unique_ptr<Languages> languages, Schema schema, const SchemaOptions& options);

  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override;
  State steps(State from, std::string_view bytes) override;
  bool complete(State state) override;
  int64_t distance(State state) override;
  std::optional<StringBody> string_body(State state) override;
  std::optional<NumberBody> number_body(State state) override;
  uint32_t number_kind(State state) override;
  bool in_any_text(State state) override;
  State after_text(State from, std::string_view text, Reach& reach) override;
  std::optional<TextList> text_list(State state) override;
  bool visit_texts(State state, TextVisitor& visitor) override;
  std::optional<NextBytes> next_bytes(State state) override;
  std::optional<Blanks> blanks(State state) override;
  // Kinds of strings are the languages of what may follow, decoded.
  uint32_t kind_step(uint32_t kind, uint8_t byte) override;
  bool kind_ends(uint32_t kind) override { return languages_->accepts_empty(kind); }
  std::optional<NextBytes> kind_next_bytes(uint32_t kind) override;
  int64_t kind_bytes(uint32_t kind) override { return languages_->bytes_at_least(kind); }
  int32_t kind_chars(uint32_t kind) override { return languages_->chars_at_least(kind); }
  KindBounds kind_bounds(uint32_t kind, int32_t n) override {
    const Languages::Bounds bounds = languages_->bounds(kind, n);
    return {bounds.low, bounds.high};
  }
  State kind_state(uint32_t kind) override;
  int32_t chars_left(State state) override;
  std::optional<KindName> kind_name(uint32_t kind) override;
  void visit_ahead(const VisitAhead& visit) override;
  [[nodiscard]] bool is_json() const override { return true; }
  [[nodiscard]] bool knows_all() const override { return frames_.tried_all(); }
  [[nodiscard]] int64_t n_bytes() const override;
  void set_fuel(Fuel* fuel) override {
    languages_->set_fuel(fuel);
    wants_.formulas.set_fuel(fuel);
  }
  [[nodiscard]] std::string_view failure() const override;

 private:
  enum class Phase : uint8_t {
    kDone,         // the text is complete
    kValue,        // a value comes; in containers blanks may
    kObjectStart,  // behind "{"
    kBeforeKey,    // behind "," of an object
    kAfterKey,     // a colon comes
    kArrayStart,   // behind "["
    kAfterValue,   // in a container
    kString,
    kStringEscape,
    kKey,
    kKeyEscape,
    kNumber,
    kLiteral,
  };
  /// What a state stands for. Interned as seven words.
  struct Place {
    Phase phase = Phase::kDone;
    uint32_t aux = 0;  // blanks and line ends, bytes missing of a character, stage of an escape, place in a literal
    Frame frame = kOutside;
    uint32_t text = 0;                    // strings, keys and numbers: what was read, as a tuple of texts_
    uint32_t bits = 0;                    // of an escape
    int32_t min_left = 0, max_left = -1;  // strings; keys: text of the name in chain_ (min_left)
    uint32_t capture = 0;                 // text of the values that will be compared, in chain_
  };
  static constexpr uint32_t kUnknownText = 1;  // of chain_
  // Words of a tuple of texts_ for a name.
  // Among the table's names: {0, first, last, bytes read, others, patterns..}; away from all of them: {1, others, patterns..}
  static constexpr uint32_t kNamed = 0, kFree = 1;

  // Behind nothing of a name that will be remembered; the first of chain_ behind kUnknownText.
  static constexpr int32_t kStartOfName = 2;

  // Kind of a value that may be any text up to some length, and of a name that may be any text. In a name every escape may follow
  // as soon as it is no declared one.
  static constexpr uint32_t kAnyTextFewEscapes = ~0u, kAnyNameFewEscapes = ~1u;

  // Stages of an escape: behind the backslash, behind "\u" with 0..3 digits; behind the first half of a pair: before the
  // second backslash, before its u, with 0..3 digits.
  enum Stage : uint32_t { kBackslash = 0, kDigits = 1, kSecondBackslash = 5, kSecondU = 6, kSecondDigits = 7 };
  static constexpr size_t kTakenOutMax = 16;  // values that a language of items is freed from

  // -- places and states
  State intern(const Place& place);
  [[nodiscard]] Place place(State state) const;
  [[nodiscard]] Phase phase(State state) const { return static_cast<Phase>(states_.at(state)[0] & 0xFF); }
  State fresh_step(State from, uint8_t byte);
  uint32_t extended(uint32_t chain, uint8_t byte) { return chain_.intern({chain, byte}); }
  std::string chain_text(uint32_t from, uint32_t to) const;

  // -- structure (schema_machine.cc)
  State blank(Place p, uint8_t byte);
  [[nodiscard]] bool takes_blanks(const Place& p) const;
  State begin_value(const Place& p, uint8_t byte, uint32_t capture);
  State open(const Place& p, ValueKind kind, uint32_t capture);
  State close(const Place& p, uint32_t capture);
  State comma(const Place& p, uint32_t capture);
  State end_value(Frame frame, std::span<const uint8_t> truth, uint32_t capture);
  Frame ended_frame(Frame frame, std::span<const uint8_t> truth, uint32_t capture);
  State literal(const Place& p, uint8_t byte, uint32_t capture);
  State number(const Place& p, uint8_t byte, uint32_t capture);
  uint32_t text_of(const ScalarPlan& plan);
  State begin_scalar(const Place& p, ValueKind kind, uint32_t capture);
  [[nodiscard]] Want want_at(Frame frame) const { return frame == kOutside ? root_want_ : frames_.child_want(frame); }
  void prepare();
  const NextBytes& first_bytes(Want want);
  bool literal_allowed(Frame frame, ValueKind kind);
  const ScalarPlan& plan_at(Frame frame, ValueKind kind);
  bool item_possible(Frame frame);
  bool end_number(const Place& p, std::vector<uint8_t>& truth);
  bool truth_of(const ScalarPlan& plan, std::span<const uint32_t> langs, std::vector<uint8_t>& truth);

  // -- strings and keys (schema_machine_strings.cc)
  State string_byte(const Place& p, uint8_t byte, uint32_t capture);
  State key_byte(const Place& p, uint8_t byte, uint32_t capture);
  State escape_byte(const Place& p, uint8_t byte, uint32_t capture);
  State hex_digit(Place p, uint32_t digit);
  State begin_key(const Place& p, uint32_t capture);
  State end_key(const Place& p, uint32_t capture);
  [[nodiscard]] bool is_other_name(const Place& p) const;
  [[nodiscard]] std::vector<uint32_t> matched_patterns(const Place& p, const NameSet& set) const;
  State end_string(const Place& p, uint32_t capture);
  /// One byte of decoded text; false: nothing goes on like that.
  bool feed(Place& p, uint8_t byte);
  bool feed_string(Place& p, uint8_t byte);
  static bool count(Place& p, uint8_t byte);
  std::optional<size_t> feed_raw(Place& p, std::string_view bytes);
  /// Names of a table that begin with what was read, and what may follow of others.
  struct NameRange {
    uint32_t first, last, n_read;
    Lang others;
  };
  bool narrow(const NameSet& set, NameRange& range, uint8_t byte);
  bool feed_key(Place& p, uint8_t byte);
  State feed_character(Place p, uint32_t code_point);
  const CharSet* next_characters(const Place& p);  // nullptr: all
  const CharSet& characters_of(Lang lang);
  void add_below(Lang lang, uint32_t prefix, int32_t n_left, std::vector<CharRange>& out);
  const std::vector<CharRange>& continuations(Lang lang, int32_t n_left);
  bool intersects(const Place& p, uint32_t first, uint32_t last);
  bool begins_with(const Place& p, uint32_t first, uint32_t last);
  [[nodiscard]] bool only_needed_escapes(const Place& p) const;
  bool escape_possible(const Place& p, bool by_code);
  std::string key_text(const Place& p) const;
  /// Appends what is left of the strings in the frame's list that begin with `prefix`; `n_tag` bytes of them do not count.
  void add_used(Frame frame, std::string_view prefix, size_t n_tag, std::vector<std::string_view>& rests) const;
  std::optional<StringBody> key_body(const Place& p);
  StringBody value_body(const Place& p);
  void tell_kind(StringBody& body, bool every_escape);
  bool may_be_used_up(Frame item);
  bool has_one_text(Lang lang);
  void compared_body(const Place& p, std::span<const uint8_t> truth, StringBody& body);
  State after_name(const Place& p, Reach& reach);
  State before_member(Frame frame, uint32_t name_class, uint32_t other);
  State after_other_name(Frame frame, const NameSet& set, std::span<const uint32_t> patterns);
  int64_t text_bytes(const Place& p);
  int64_t escape_bytes(const Place& p);
  int64_t other_name_bytes(const Place& p);
  int64_t other_name_bytes(const Place& p, Lang names);

  std::unique_ptr<Languages> languages_;
  const Schema schema_;
  const SchemaOptions options_;
  Wants wants_;
  Frames frames_;
  TupleTable states_, texts_, chain_;
  StepTable steps_;
  Want root_want_ = kNoValue;
  State start_ = kDead;
  std::unordered_map<uint64_t, Frame>
      ended_;  // (frame, truth of the roots) -> ended_frame(), where values are not compared
  std::unordered_map<uint64_t, ScalarPlan> plans_without_;  // (list, want, kind): without values used before
  std::unordered_map<Want, NextBytes> first_bytes_;         // of values
  std::unordered_map<uint64_t, State> after_names_;         // (frame, class) -> before_member()
  std::unordered_map<Want, State> before_members_;  // the same by what the value must be; in frames that do not capture
  std::unordered_map<Lang, CharSet> characters_;
  std::unordered_map<uint64_t, std::vector<CharRange>> continuations_;  // (language, bytes missing of a character)
  CharSet key_characters_;
  int64_t n_bytes_ = 0;
  bool failed_ = false;
};

}  // namespace deepinfer::grammar
