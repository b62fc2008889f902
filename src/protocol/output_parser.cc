// The state machine behind OutputParser. What it does when is in kRules (output_rules.h); here text moves through it.
#include "protocol/output_parser.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "deepinfer/tokenizer.h"
#include "protocol/key_escaper.h"
#include "protocol/marker_matcher.h"
#include "protocol/output_rules.h"
#include "protocol/stop_matcher.h"
#include "text/json.h"

namespace deepinfer::protocol {
namespace {

bool applies(const Rule& rule, const OutputSettings& settings) {
  return rule.when == When::kAlways || (rule.when == When::kJson ? settings.json : settings.tools);
}

State first_state(OutputStart start) {
  switch (start) {
    case OutputStart::kReasoning:
    case OutputStart::kReasoningContinued:
      return State::kReasoning;
    case OutputStart::kAnswer:
    case OutputStart::kAnswerContinued:
      return State::kAnswer;
    case OutputStart::kCalls:
      return State::kCalls;
  }
  DI_CHECK(false);
}

/// The marker as the stream brings it.
std::string symbols_of(std::string_view marker, OutputParser::Markers markers) {
  if (markers == OutputParser::Markers::kByToken) return std::string(marker);
  std::string symbols;
  for (const char c : marker) {
    const auto symbol = static_cast<unsigned char>(c);
    if (symbol == kThinkCloseSymbol) {
      symbols += spelling(Special::kThinkClose);
    } else if (symbol == kDsmlSymbol) {
      symbols += spelling(Special::kDsml);
    } else {
      symbols += c;
    }
  }
  return symbols;
}

constexpr size_t kFoldBytes = 4096;  // a longer run of newlines that is held back is kept as a number

constexpr auto kNewlines = [] {
  std::array<char, kFoldBytes> newlines{};
  newlines.fill('\n');
  return newlines;
}();

}  // namespace

struct OutputParser::Impl {
  struct Listener {
    MarkerMatcher matcher;
    Action action;
  };
  /// What one state listens for.
  struct Ears {
    std::vector<Listener> listeners;
    bool stops = false;
    WakeBytes wakes;
  };

  Impl(OutputSettings wanted, Markers marked_by);

  void push_text(std::string_view bytes, OutputEvents& events);
  void push_special(Special special, OutputEvents& events);
  void finish(OutputEvents& events);

  void scan(OutputEvents& events);
  void skip_text();
  void feed(unsigned char byte, OutputEvents& events);
  void feed_token(Special special, OutputEvents& events);
  bool feed_stops(unsigned char byte, OutputEvents& events);
  bool feed_markers(unsigned char symbol, OutputEvents& events);
  bool take_first(unsigned char symbol);
  void flush_arguments(OutputEvents& events);
  void act(Action action, OutputEvents& events);
  void enter(State state);

  [[nodiscard]] size_t n_held() const { return n_newlines_ + (at_ - shown_); }
  [[nodiscard]] size_t n_pending() const;
  void release(size_t n_bytes, OutputEvents& events);
  void emit(std::string_view text, OutputEvents& events);
  void settle(OutputEvents& events);

  Ears& ears() { return ears_[static_cast<size_t>(state_)]; }

  const OutputSettings settings_;
  const Markers markers_;
  std::array<Ears, kNumStates> ears_;
  StopMatcher stop_matcher_;
  Utf8Stream utf8_;

  State state_ = State::kFinished;
  bool leading_ = false;                // kReasoning, kAnswer: newlines that come first are dropped
  bool expects_first_ = true;           // the next byte is the first in this state and may mean more than others
  bool is_busy_ = false;                // some matcher is in the middle of something
  MarkerMatcher* only_busy_ = nullptr;  // of the state's; nothing when several are, or the stop strings
  bool is_over_ = false;                // finish() was called
  bool said_blank_ = false;             // for the text around the JSON

  // The held text is n_newlines_ newlines, then text_ from shown_ to at_. What lies behind at_ was not looked at yet.
  std::string text_;
  size_t shown_ = 0;
  size_t at_ = 0;
  size_t n_newlines_ = 0;

  // The call in progress.
  std::string name_;
  KeyEscaper key_;
  std::string arguments_;        // not reported yet; empty between two calls
  bool is_open_ = false;         // "{" was written
  bool needs_separator_ = true;  // "{" or ", " comes before the next key
  bool is_string_ = false;       // the value

  std::optional<int32_t> stop_index_;
  int32_t n_calls_ = 0;
};

OutputParser::Impl::Impl(OutputSettings wanted, Markers marked_by)
    : settings_(std::move(wanted)), markers_(marked_by), stop_matcher_(settings_.stop) {
  for (const Rule& rule : kRules) {
    if (!applies(rule, settings_)) continue;
    Ears& ears = ears_[static_cast<size_t>(rule.state)];
    ears.listeners.push_back(
        {MarkerMatcher(symbols_of(rule.marker, markers_), rule.newlines == Newlines::kBelong), rule.action});
  }
  if (!settings_.stop.empty()) {
    ears_[static_cast<size_t>(State::kAnswer)].stops = !settings_.json;
    ears_[static_cast<size_t>(State::kJson)].stops = true;
  }
  for (Ears& ears : ears_) {
    if (ears.stops) stop_matcher_.add_to(ears.wakes);
    for (const Listener& it : ears.listeners) it.matcher.add_to(ears.wakes);
  }
  leading_ = settings_.start == OutputStart::kReasoning || settings_.start == OutputStart::kAnswer;
  enter(first_state(settings_.start));
}

void OutputParser::Impl::push_text(std::string_view bytes, OutputEvents& events) {
  DI_CHECK(!is_over_);
  if (state_ == State::kFinished) return;
  utf8_.push(bytes, text_);
  scan(events);
  settle(events);
}

void OutputParser::Impl::push_special(Special special, OutputEvents& events) {
  DI_CHECK(!is_over_ && markers_ == Markers::kByToken);
  if (state_ == State::kFinished) return;
  utf8_.finish(text_);
  scan(events);
  if (special == Special::kThinkClose || special == Special::kDsml) {
    feed_token(special, events);
  } else if (is_grounding(special)) {
    text_ += spelling(special);
    scan(events);
  }
  settle(events);
}

void OutputParser::Impl::finish(OutputEvents& events) {
  DI_CHECK(!is_over_);
  is_over_ = true;
  if (state_ == State::kFinished) return;
  utf8_.finish(text_);
  scan(events);
  release(n_held(), events);
  key_.abandon(arguments_);
  flush_arguments(events);
}

/// Feeds what was not looked at yet.
void OutputParser::Impl::scan(OutputEvents& events) {
  while (at_ < text_.size() && state_ != State::kFinished) {
    if (!is_busy_ && !expects_first_) {
      skip_text();
      if (at_ == text_.size()) return;
    }
    if (only_busy_ != nullptr) {
      at_ += only_busy_->run(std::string_view(text_).substr(at_), ears().wakes.first);
      if (at_ == text_.size()) return;
    }
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    feed(byte, events);
  }
}

/// Passes by what leaves the matchers, which are idle, idle.
void OutputParser::Impl::skip_text() {
  const WakeBytes& wakes = ears().wakes;
  const auto byte = [this](size_t at) { return static_cast<unsigned char>(text_[at]); };
  const size_t n = text_.size();
  while (true) {
    while (at_ < n && !wakes.first[byte(at_)]) ++at_;
    if (wakes.is_one_enough || at_ + 1 >= n) return;
    if (wakes.first[byte(at_ + 1)] || wakes.second[byte(at_ + 1)]) return;
    at_ += 2;  // one got going, and the next byte was not what it waited for
  }
}

/// Feeds one byte, which is the last before at_, to everything that listens.
void OutputParser::Impl::feed(unsigned char byte, OutputEvents& events) {
  is_busy_ = false;
  if (ears().stops && feed_stops(byte, events)) return;
  feed_markers(byte, events);
}

/// Feeds a token that markers are made of. Where it completes none it is text, which stop strings read by its letters.
void OutputParser::Impl::feed_token(Special special, OutputEvents& events) {
  const size_t begin = at_;
  text_ += spelling(special);
  at_ = text_.size();
  is_busy_ = false;
  if (feed_markers(special == Special::kDsml ? kDsmlSymbol : kThinkCloseSymbol, events) || !ears().stops) return;
  for (at_ = begin; at_ < text_.size();) {
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (feed_stops(byte, events)) return;
  }
  only_busy_ = nullptr;  // the stop strings may be, too
}

/// True when that completed a stop string.
bool OutputParser::Impl::feed_stops(unsigned char byte, OutputEvents& events) {
  stop_index_ = stop_matcher_.step(byte);
  if (!stop_index_) {
    is_busy_ = is_busy_ || !stop_matcher_.is_idle();
    return false;
  }
  release(n_held() - settings_.stop[static_cast<size_t>(*stop_index_)].size(), events);
  enter(State::kFinished);
  return true;
}

/// True when that completed a marker.
bool OutputParser::Impl::feed_markers(unsigned char symbol, OutputEvents& events) {
  if (expects_first_ && take_first(symbol)) return true;
  int32_t n_busy = 0;
  for (Listener& it : ears().listeners) {
    if (it.matcher.step(symbol)) {
      release(n_held() - it.matcher.n_bytes(), events);
      act(it.action, events);
      return true;
    }
    if (it.matcher.is_idle()) continue;
    ++n_busy;
    only_busy_ = &it.matcher;
  }
  if (n_busy != 1 || is_busy_) only_busy_ = nullptr;  // is_busy_ was set by the stop strings
  is_busy_ = is_busy_ || n_busy > 0;
  return false;
}

/// What only the first symbol in a state can mean. True when that is all it means.
bool OutputParser::Impl::take_first(unsigned char symbol) {
  expects_first_ = false;
  if (leading_ && symbol == '\n') {
    enter(state_);  // so that the next one is the first again
    return true;
  }
  leading_ = false;
  if (state_ == State::kType) arguments_ += ": ";
  if (state_ == State::kKeyStart && symbol != '"') {  // a parameter without a name in quotes is none
    enter(State::kArguments);
    shown_ -= 1;  // this byte counts there
  }
  return false;
}

void OutputParser::Impl::act(Action action, OutputEvents& events) {
  switch (action) {
    case Action::kEndReasoning:
      leading_ = true;
      return enter(State::kAnswer);
    case Action::kDropStrayClose:
      return enter(State::kAnswer);
    case Action::kOpenFence:
      return enter(State::kJson);
    case Action::kBeginJson:
      enter(State::kJson);
      shown_ -= 1;  // the bracket is JSON
      return;
    case Action::kCloseFence:
      return enter(State::kAfterJson);
    case Action::kOpenCalls:
      return enter(State::kCalls);
    case Action::kCloseCalls:
      return enter(State::kFinished);
    case Action::kBeginCall:
      name_.clear();
      return enter(State::kName);
    case Action::kEndName:
      ++n_calls_;
      events.on_call_begin(name_);
      is_open_ = false;
      needs_separator_ = true;
      return enter(State::kArguments);
    case Action::kBeginParameter:
      if (needs_separator_) arguments_ += is_open_ ? ", " : "{";
      is_open_ = true;
      needs_separator_ = false;
      return enter(State::kKeyStart);
    case Action::kBeginKey:
      arguments_ += '"';
      return enter(State::kKey);
    case Action::kEndKey:
      key_.close(arguments_);
      arguments_ += '"';  // the colon comes with the next byte
      return enter(State::kType);
    case Action::kStringValue:
    case Action::kJsonValue:
      is_string_ = action == Action::kStringValue;
      if (is_string_) arguments_ += '"';
      return enter(State::kValue);
    case Action::kEndValue:
      if (is_string_) arguments_ += '"';
      needs_separator_ = true;
      return enter(State::kArguments);
    case Action::kEndCall:
      arguments_ += is_open_ ? "}" : "{}";
      flush_arguments(events);
      events.on_call_end();
      return enter(settings_.one_call ? State::kFinished : State::kCalls);
  }
}

/// Begins a state anew. What is still held is dropped.
void OutputParser::Impl::enter(State state) {
  state_ = state;
  for (Listener& it : ears().listeners) it.matcher.reset();
  stop_matcher_.reset();
  is_busy_ = false;
  only_busy_ = nullptr;
  expects_first_ = leading_ || state == State::kKeyStart || state == State::kType;
  shown_ = at_;
  n_newlines_ = 0;
}

/// Bytes at the end of the held text that can still become a marker or a stop string.
size_t OutputParser::Impl::n_pending() const {
  if (!is_busy_) return 0;
  const Ears& now = ears_[static_cast<size_t>(state_)];
  size_t n = now.stops ? stop_matcher_.n_bytes() : 0;
  for (const Listener& it : now.listeners) n = std::max(n, it.matcher.n_bytes());
  return n;
}

/// Lets the first `n_bytes` of the held text go as what the state says they are.
void OutputParser::Impl::release(size_t n_bytes, OutputEvents& events) {
  while (n_newlines_ > 0 && n_bytes > 0) {
    const size_t n = std::min({n_newlines_, n_bytes, kNewlines.size()});
    emit(std::string_view(kNewlines.data(), n), events);
    n_newlines_ -= n;
    n_bytes -= n;
  }
  if (n_bytes == 0) return;
  emit(std::string_view(text_).substr(shown_, n_bytes), events);
  shown_ += n_bytes;
}

void OutputParser::Impl::emit(std::string_view text, OutputEvents& events) {
  switch (state_) {
    case State::kReasoning:
      return events.on_reasoning(text);
    case State::kAnswer:
      // One blank a stretch would depend on how the stream was cut. One for all of it says that there was an answer.
      if (!settings_.json) return events.on_answer(text);
      if (!std::exchange(said_blank_, true)) events.on_answer(" ");
      return;
    case State::kJson:
      return events.on_answer(text);
    case State::kName:
      name_ += text;
      return;
    case State::kKey:
      return key_.append(text, arguments_);
    case State::kValue:
      if (is_string_) return json::append_escaped(text, arguments_);
      arguments_ += text;
      return;
    case State::kAfterJson:
    case State::kCalls:
    case State::kArguments:
    case State::kKeyStart:
    case State::kType:
    case State::kFinished:
      return;
  }
}

void OutputParser::Impl::flush_arguments(OutputEvents& events) {
  if (!arguments_.empty()) events.on_call_arguments(arguments_);
  arguments_.clear();
}

/// End of a push: lets go what cannot become a marker any more and makes room in text_.
void OutputParser::Impl::settle(OutputEvents& events) {
  release(n_held() - n_pending(), events);
  flush_arguments(events);
  if (n_held() - n_newlines_ > kFoldBytes) {
    const size_t end = std::min(text_.find_first_not_of('\n', shown_), text_.size());
    n_newlines_ += end - shown_;
    shown_ = end;
  }
  if (state_ == State::kFinished || shown_ == text_.size()) {
    text_.clear();
    shown_ = at_ = 0;
  } else if (shown_ * 2 >= text_.size()) {  // so that a byte is moved once on average
    text_.erase(0, shown_);
    at_ -= shown_;
    shown_ = 0;
  }
}

OutputParser::OutputParser(OutputSettings settings, Markers markers)
    : impl_(std::make_unique<Impl>(std::move(settings), markers)) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;

void OutputParser::push_text(std::string_view bytes, OutputEvents& events) { impl_->push_text(bytes, events); }
void OutputParser::push_special(Special special, OutputEvents& events) { impl_->push_special(special, events); }
void OutputParser::finish(OutputEvents& events) { impl_->finish(events); }

Section OutputParser::section() const {
  switch (impl_->state_) {
    case State::kReasoning:
      return Section::kReasoning;
    case State::kAnswer:
    case State::kJson:
    case State::kAfterJson:
      return Section::kAnswer;
    case State::kFinished:
      return Section::kFinished;
    default:
      return Section::kCalls;
  }
}

std::optional<int32_t> OutputParser::stop_index() const { return impl_->stop_index_; }
int32_t OutputParser::n_calls() const { return impl_->n_calls_; }

}  // namespace deepinfer::protocol
