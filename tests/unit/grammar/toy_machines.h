// Small machines for tests of masks and matchers: plain code, a state is a text that spells it out. Slow on purpose.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/machine.h"
#include "text/utf8.h"

namespace deepinfer::grammar::toy {

/// Numbers the states of a machine whose step is a pure function of texts; "" is dead.
class TextMachine : public Machine {
 public:
  [[nodiscard]] State start() const override { return start_; }
  State step(State from, uint8_t byte) override {
    if (from == kDead) return kDead;
    const uint64_t key = uint64_t{from} << 8 | byte;
    const auto known = steps_.find(key);
    if (known != steps_.end()) return known->second;
    const State to = number(next(texts_[from], byte));
    steps_.emplace(key, to);
    return to;
  }
  bool complete(State state) override { return state != kDead && is_complete(texts_[state]); }
  int64_t distance(State state) override { return complete(state) ? 0 : -1; }
  [[nodiscard]] int64_t n_bytes() const override {
    return static_cast<int64_t>(texts_.size() * 64 + steps_.size() * 32);
  }
  [[nodiscard]] const std::string& text(State state) const { return texts_[state]; }

 protected:
  void begin(const std::string& text) { start_ = number(text); }
  State number(const std::string& text) {
    if (text.empty()) return kDead;
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<State>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  virtual std::string next(const std::string& state, uint8_t byte) = 0;
  virtual bool is_complete(const std::string& state) = 0;

 private:
  State start_ = kDead;
  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, State> numbers_;
  std::unordered_map<uint64_t, State> steps_;
};

/// One of some texts. next_bytes() where told.
class Literals : public TextMachine {
 public:
  explicit Literals(std::vector<std::string> texts, bool tells_bytes = false)
      : literals_(std::move(texts)), tells_bytes_(tells_bytes) {
    begin(">");
  }
  std::optional<NextBytes> next_bytes(State state) override {
    if (!tells_bytes_) return std::nullopt;
    NextBytes bytes;
    for (int b = 0; b < 256; ++b)
      if (step(state, static_cast<uint8_t>(b)) != kDead) bytes.insert(static_cast<uint8_t>(b));
    return bytes;
  }

 protected:
  std::string next(const std::string& state, uint8_t byte) override {
    const std::string text = state + static_cast<char>(byte);
    for (const std::string& literal : literals_)
      if ((">" + literal).starts_with(text)) return text;
    return "";
  }
  bool is_complete(const std::string& state) override {
    for (const std::string& literal : literals_)
      if (">" + literal == state) return true;
    return false;
  }

 private:
  std::vector<std::string> literals_;
  bool tells_bytes_;
};

/// A random DFA over few byte classes; every state reaches an accepting one.
class RandomDfa : public Machine {
 public:
  RandomDfa(uint64_t seed, std::string_view bytes);
  [[nodiscard]] State start() const override { return 1; }
  State step(State from, uint8_t byte) override { return table_[from * 256 + byte]; }
  bool complete(State state) override { return accepts_[state]; }
  int64_t distance(State state) override { return accepts_[state] ? 0 : -1; }
  [[nodiscard]] int64_t n_bytes() const override { return static_cast<int64_t>(table_.size() * sizeof(State)); }

 private:
  std::vector<State> table_;
  std::vector<bool> accepts_;
};

/// JSON whose strings are limited. Numbers are digits only.
struct JsonRules {
  int32_t min_chars = 0, max_chars = -1;  // of strings that are values
  int32_t n_evens = 0;  // k: a string holds a multiple of k letters 'a', and no 'z' unless takes_z (not any text)
  bool takes_z = false;
  bool unique_names = false;              // an object's names differ
  bool solidus = true;                    // the escape \/ is taken
  int32_t n_line_ends = 0, n_blanks = 0;  // between tokens, in a row
  bool tells = true;                      // string_body(), blanks() and kinds answer
  bool tells_kinds = false, tells_exceptions = true, tells_escapes = false;
  int32_t depth_max = 3;
};

class Json : public TextMachine {
 public:
  explicit Json(const JsonRules& rules) : rules_(rules) { begin(spell({})); }
  std::optional<StringBody> string_body(State state) override;
  std::optional<Blanks> blanks(State state) override;
  State kind_state(uint32_t kind) override;
  uint32_t kind_step(uint32_t kind, uint8_t byte) override;
  bool kind_ends(uint32_t kind) override { return kind == 2; }

 protected:
  std::string next(const std::string& state, uint8_t byte) override;
  bool is_complete(const std::string& state) override;

 private:
  enum Mode : uint8_t { kValue, kFirstItem, kFirstName, kName, kColon, kAfter, kDigits, kWord, kString };
  enum Part : uint8_t { kBetween, kCut, kEscape, kHex };
  /// Everything that a state knows. Kept as text so that equal ones are equal.
  struct Place {
    uint8_t mode = kValue;
    std::string stack;        // 'A' and 'O'
    std::string seen;         // names of the open objects, if they must differ: "\n"-ended; a "\t" begins an object
    std::string word;         // rest of true, false, null
    uint8_t part = kBetween;  // inside strings
    bool is_name = false;
    std::string cut;    // bytes of an unfinished character, digits of an escape
    bool high = false;  // after the first half of a pair
    int32_t n_chars = 0, n_a = 0;
    int32_t n_line_ends = 0, n_blanks = 0;
    std::string name;  // so far, if names must differ
  };
  static std::string spell(const Place& place);
  static Place read(const std::string& text);
  bool step_place(Place& place, uint8_t byte);
  bool step_string(Place& place, uint8_t byte);
  bool add_char(Place& place, const std::string& bytes, bool begins);
  bool close(Place& place);
  void end_value(Place& place);
  static bool takes_blanks(const Place& place);
  [[nodiscard]] bool may_begin(const Place& place) const;
  [[nodiscard]] bool is_seen(const Place& place, const std::string& name) const;

  JsonRules rules_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> cut_kinds_;  // kinds inside characters
  std::vector<std::pair<uint32_t, std::string>> cut_kind_of_;
  std::string name_;  // what the last string_body() borrows from
};

inline RandomDfa::RandomDfa(uint64_t seed, std::string_view bytes) {
  std::mt19937_64 random(seed);
  const size_t n_states = 2 + random() % 6;
  table_.assign((n_states + 1) * 256, kDead);
  accepts_.assign(n_states + 1, false);
  for (size_t s = 1; s <= n_states; ++s) {
    for (const char c : bytes)
      if (random() % 3 != 0) table_[s * 256 + static_cast<uint8_t>(c)] = static_cast<State>(1 + random() % n_states);
    accepts_[s] = random() % 3 == 0;
  }
}

// -- Json

inline std::string Json::spell(const Place& p) {
  std::string out;
  const auto field = [&out](const std::string& text) { (out += text) += '\x01'; };
  field(std::to_string(p.mode));
  field(p.stack);
  field(p.seen);
  field(p.word);
  field(std::to_string(p.part));
  field(p.is_name ? "n" : "");
  field(p.cut);
  field(p.high ? "h" : "");
  field(std::to_string(p.n_chars));
  field(std::to_string(p.n_a));
  field(p.name);
  field(std::to_string(p.n_line_ends));
  field(std::to_string(p.n_blanks));
  return out;
}

inline Json::Place Json::read(const std::string& text) {
  std::vector<std::string> fields(1);
  for (const char c : text) c == '\x01' ? void(fields.emplace_back()) : void(fields.back() += c);
  Place p;
  p.mode = static_cast<uint8_t>(std::stoi(fields[0]));
  p.stack = fields[1];
  p.seen = fields[2];
  p.word = fields[3];
  p.part = static_cast<uint8_t>(std::stoi(fields[4]));
  p.is_name = !fields[5].empty();
  p.cut = fields[6];
  p.high = !fields[7].empty();
  p.n_chars = std::stoi(fields[8]);
  p.n_a = std::stoi(fields[9]);
  p.name = fields[10];
  p.n_line_ends = std::stoi(fields[11]);
  p.n_blanks = std::stoi(fields[12]);
  return p;
}

inline bool Json::is_complete(const std::string& state) {
  const Place p = read(state);
  return p.stack.empty() && (p.mode == kAfter || p.mode == kDigits);
}

inline std::string Json::next(const std::string& state, uint8_t byte) {
  Place place = read(state);
  return step_place(place, byte) ? spell(place) : "";
}

inline void Json::end_value(Place& p) {
  p.mode = kAfter;
  p.word.clear();
}

/// Modes between JSON tokens, inside the outermost value.
inline bool Json::takes_blanks(const Place& p) { return !p.stack.empty() && p.mode <= kAfter; }

inline std::optional<Blanks> Json::blanks(State state) {
  Place p = read(text(state));
  if (!rules_.tells || !takes_blanks(p)) return std::nullopt;
  const int32_t n_line_ends = rules_.n_line_ends - p.n_line_ends, n_blanks = rules_.n_blanks - p.n_blanks;
  p.n_line_ends = p.n_blanks = 0;
  return Blanks{number(spell(p)), n_line_ends, n_blanks};
}

inline bool Json::step_place(Place& p, uint8_t byte) {
  if (p.mode == kDigits) {
    if (byte >= '0' && byte <= '9') return true;
    end_value(p);
  }
  if (takes_blanks(p)) {
    if (byte == '\n') return ++p.n_line_ends <= rules_.n_line_ends;
    if (byte == ' ' || byte == '\t' || byte == '\r') return ++p.n_blanks <= rules_.n_blanks;
    p.n_line_ends = p.n_blanks = 0;
  }
  const auto begin_string = [&p](bool is_name) {
    p.mode = kString;
    p.is_name = is_name;
    return true;
  };
  switch (p.mode) {
    case kFirstItem:
      if (byte == ']') {
        p.stack.pop_back();
        end_value(p);
        return true;
      }
      [[fallthrough]];
    case kValue:
      if (byte == '"') return begin_string(false);
      if (byte >= '0' && byte <= '9') return p.mode = kDigits, true;
      if (byte == 't' || byte == 'f' || byte == 'n') {
        p.mode = kWord;
        p.word = byte == 't' ? "rue" : byte == 'f' ? "alse" : "ull";
        return true;
      }
      if (static_cast<int32_t>(p.stack.size()) == rules_.depth_max || (byte != '[' && byte != '{')) return false;
      p.stack += byte == '[' ? 'A' : 'O';
      p.mode = byte == '[' ? kFirstItem : kFirstName;
      if (byte == '{' && rules_.unique_names) p.seen += '\t';
      return true;
    case kFirstName:
    case kName:
      if (byte == '"') return begin_string(true);
      if (byte != '}' || p.mode == kName) return false;
      p.mode = kAfter;
      break;
    case kColon:
      p.mode = kValue;
      return byte == ':';
    case kWord:
      if (byte != static_cast<uint8_t>(p.word[0])) return false;
      p.word.erase(0, 1);
      if (p.word.empty()) end_value(p);
      return true;
    case kString:
      return step_string(p, byte);
    default:
      break;
  }
  if (p.stack.empty()) return false;  // kAfter
  const bool in_array = p.stack.back() == 'A';
  if (byte == ',') return p.mode = in_array ? kValue : kName, true;
  if (byte != (in_array ? ']' : '}')) return false;
  p.stack.pop_back();
  if (!in_array && rules_.unique_names) p.seen.erase(p.seen.rfind('\t'));
  end_value(p);
  return true;
}

inline bool Json::is_seen(const Place& p, const std::string& name) const {
  return p.seen.find('\n' + name + '\r', p.seen.rfind('\t')) != std::string::npos;
}

inline bool Json::may_begin(const Place& p) const {
  return p.is_name || rules_.max_chars < 0 || p.n_chars < rules_.max_chars;
}

inline bool Json::add_char(Place& p, const std::string& bytes, bool begins) {
  p.part = kBetween;
  p.cut.clear();
  if (p.is_name) {
    if (rules_.unique_names) p.name += bytes;
    return true;
  }
  if (begins && (rules_.min_chars > 0 || rules_.max_chars >= 0)) ++p.n_chars;
  if (rules_.max_chars < 0) p.n_chars = std::min(p.n_chars, rules_.min_chars);
  if (rules_.n_evens == 0) return true;
  if (bytes == "a") p.n_a = (p.n_a + 1) % rules_.n_evens;
  return rules_.takes_z || bytes != "z";
}

inline bool Json::close(Place& p) {
  if (p.high) return false;
  if (p.is_name) {
    if (rules_.unique_names && is_seen(p, p.name)) return false;
    if (rules_.unique_names) p.seen += '\n' + p.name + '\r';
  } else if (p.n_chars < rules_.min_chars || p.n_a != 0) {
    return false;
  }
  Place after;
  after.mode = p.is_name ? kColon : kAfter;
  after.stack = p.stack;
  after.seen = p.seen;
  p = after;
  return true;
}

inline bool Json::step_string(Place& p, uint8_t byte) {
  const auto is_hex = [](uint8_t b) {
    return std::string_view("0123456789abcdefABCDEF").find(static_cast<char>(b)) != std::string_view::npos;
  };
  const auto is_low = [](const std::string& digits) {  // so far
    if (!digits.empty() && (digits[0] | 0x20) != 'd') return false;
    return digits.size() < 2 || std::string_view("cdefCDEF").find(digits[1]) != std::string_view::npos;
  };
  const auto is_high = [](const std::string& digits) {
    return (digits[0] | 0x20) == 'd' && std::string_view("89abAB").find(digits[1]) != std::string_view::npos;
  };
  switch (p.part) {
    case kBetween:
      if (byte == '"') return close(p);
      if (byte == '\\') {
        if (!p.high && !may_begin(p)) return false;
        p.part = kEscape;
        return true;
      }
      if (p.high) return false;
      if (byte < 0x20 || !may_begin(p)) return false;
      if (byte < 0x80) return add_char(p, std::string(1, static_cast<char>(byte)), true);
      if (byte < 0xC2 || byte > 0xF4) return false;
      p.part = kCut;
      p.cut = static_cast<char>(byte);
      return true;
    case kCut: {
      p.cut += static_cast<char>(byte);
      const Utf8Step step = next_utf8(p.cut);
      if (step.unit == Utf8Unit::kIllFormed || step.n_bytes != p.cut.size()) return false;
      return step.unit == Utf8Unit::kUnfinished || add_char(p, std::string(p.cut), true);
    }
    case kEscape:
      if (byte == 'u') {
        p.part = kHex;
        return true;
      }
      if (p.high) return false;
      if (std::string_view(rules_.solidus ? "\"\\bfnrt/" : "\"\\bfnrt").find(static_cast<char>(byte)) ==
          std::string_view::npos)
        return false;
      return add_char(p, std::string("\\") + static_cast<char>(byte), true);
    default:
      if (!is_hex(byte)) return false;
      p.cut += static_cast<char>(byte);
      if (p.high ? !is_low(p.cut) : p.cut.size() == 2 && is_low(p.cut)) return false;
      if (p.cut.size() < 4) return true;
      const std::string digits = p.cut;
      const bool ends_pair = p.high;
      p.high = !ends_pair && is_high(digits);
      return add_char(p, "\\u" + digits, !ends_pair);
  }
}

inline std::optional<StringBody> Json::string_body(State state) {
  if (!rules_.tells) return std::nullopt;
  const Place p = read(text(state));
  if (p.mode != kString || p.part != kBetween || p.high) return std::nullopt;
  StringBody body{};
  body.any_text = p.is_name || rules_.n_evens == 0;
  if (!body.any_text && !rules_.tells_kinds) return std::nullopt;
  body.kind = p.is_name ? 1 : static_cast<uint32_t>(2 + p.n_a);
  body.every_escape = rules_.tells_escapes && rules_.solidus;
  body.max_left = -1;
  if (!p.is_name) {
    body.min_left = std::max(0, rules_.min_chars - p.n_chars);
    if (rules_.max_chars >= 0) body.max_left = rules_.max_chars - p.n_chars;
  }
  Place after;
  after.mode = p.is_name ? kColon : kAfter;
  after.stack = p.stack;
  after.seen = p.seen;
  if (p.is_name && rules_.unique_names) {
    after.seen += '\n' + p.name + '\r';
    body.reach.n_bytes = 4;
    if (rules_.tells_exceptions) {
      name_ = p.seen.substr(p.seen.rfind('\t') + 1);
      for (size_t at = 0; (at = name_.find('\n' + p.name, at)) != std::string::npos; ++at) {
        const size_t begin = at + 1 + p.name.size();
        body.except.push_back(std::string_view(name_).substr(begin, name_.find('\r', begin) - begin));
      }
    } else {
      body.same_after = p.seen.find('\n' + p.name, p.seen.rfind('\t')) == std::string::npos;
    }
  }
  body.after = body.same_after ? number(spell(after)) : kDead;
  return body;
}

inline State Json::kind_state(uint32_t kind) {
  Place p;
  p.mode = kString;
  p.n_a = static_cast<int32_t>(kind) - 2;
  p.n_chars = -1'000'000;  // no limit is near
  return number(spell(p));
}

inline uint32_t Json::kind_step(uint32_t kind, uint8_t byte) {
  constexpr uint32_t kFirstCut = 1000;
  std::string bytes;
  if (kind >= kFirstCut) std::tie(kind, bytes) = cut_kind_of_[kind - kFirstCut];
  bytes += static_cast<char>(byte);
  const Utf8Step step = next_utf8(bytes);
  if (byte < 0x20 || byte == '"' || byte == '\\' || step.unit == Utf8Unit::kIllFormed || step.n_bytes != bytes.size() ||
      (byte == 'z' && !rules_.takes_z))
    return 0;
  if (step.unit == Utf8Unit::kCharacter)
    return bytes == "a" ? 2 + (kind - 1) % static_cast<uint32_t>(rules_.n_evens) : kind;
  const auto [at, is_new] =
      cut_kinds_.try_emplace({kind, bytes}, kFirstCut + static_cast<uint32_t>(cut_kind_of_.size()));
  if (is_new) cut_kind_of_.emplace_back(kind, bytes);
  return at->second;
}

}  // namespace deepinfer::grammar::toy
