#include "protocol/response_common.h"

#include <utility>

#include "base/check.h"
#include "text/json.h"

namespace deepinfer::protocol {

ObjectWriter& ObjectWriter::text(std::string_view key, std::string_view value) {
  json::append_quoted(value, member(key));
  return *this;
}

ObjectWriter& ObjectWriter::escaped(std::string_view key, std::string_view value) {
  std::string& out = member(key);
  out += '"';
  out += value;
  out += '"';
  return *this;
}

ObjectWriter& ObjectWriter::number(std::string_view key, int64_t value) {
  member(key) += std::to_string(value);
  return *this;
}

ObjectWriter& ObjectWriter::json(std::string_view key, std::string_view value) {
  member(key) += value;
  return *this;
}

std::string& ObjectWriter::member(std::string_view key) {
  if (!is_empty_) out_ += ',';
  is_empty_ = false;
  out_ += '"';
  out_ += key;
  out_ += "\":";
  return out_;
}

std::string in_quotes(std::string_view text) {
  std::string out;
  json::append_quoted(text, out);
  return out;
}

std::string_view append_piece(std::string_view text, std::string& all) {
  const size_t start = all.size();
  json::append_escaped(text, all);
  return std::string_view(all).substr(start);
}

FinishReason finish_reason_of(BackendFinish finish, bool has_stop_string, bool has_calls) {
  if (has_stop_string) return FinishReason::kStopString;
  switch (finish) {
    case BackendFinish::kLength:
      return FinishReason::kLength;
    case BackendFinish::kContentFilter:
      return FinishReason::kContentFilter;
    case BackendFinish::kStop:
      return has_calls ? FinishReason::kCalls : FinishReason::kStop;
    case BackendFinish::kNone:
      return FinishReason::kStop;
  }
  DI_CHECK(false);
}

namespace {

uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// The finaliser of splitmix64: a bijection, so different states stay different.
uint64_t mix(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31);
}

}  // namespace

std::string make_call_id(std::string_view response_id, int32_t choice, int32_t call) {
  static constexpr std::string_view kAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kLength = 20;
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15U;  // the step of splitmix64
  const uint64_t place = (uint64_t{static_cast<uint32_t>(choice)} << 32) | static_cast<uint32_t>(call);
  uint64_t state = mix(fnv1a(response_id) ^ mix(place));
  std::string id = call < 10 ? "call_0" : "call_";
  id += std::to_string(call);
  id += '_';
  for (int i = 0; i < kLength; ++i) {
    state += kGolden;
    id += kAlphabet[mix(state) % kAlphabet.size()];
  }
  return id;
}

CallOrder::CallOrder(int32_t n_choices) : n_open_(n_choices) {
  DI_CHECK(n_choices > 0);
  is_finished_.resize(static_cast<size_t>(n_choices));
}

void CallOrder::begin() {
  DI_CHECK(stage_ == Stage::kNew);
  stage_ = Stage::kBegun;
}

void CallOrder::check_choice(int32_t index) const {
  DI_CHECK(stage_ == Stage::kBegun);
  DI_CHECK(index >= 0);
  DI_CHECK(static_cast<size_t>(index) < is_finished_.size());
  DI_CHECK(!is_finished_[static_cast<size_t>(index)]);
}

void CallOrder::finish_choice(int32_t index) {
  check_choice(index);
  is_finished_[static_cast<size_t>(index)] = true;
  --n_open_;
}

void CallOrder::end() {
  DI_CHECK(stage_ == Stage::kBegun);
  DI_CHECK(all_finished());
  stage_ = Stage::kEnded;
}

void CallOrder::fail() {
  DI_CHECK(stage_ == Stage::kBegun);
  stage_ = Stage::kFailed;
}

void CallOrder::check_body() const { DI_CHECK(stage_ == Stage::kEnded); }

}  // namespace deepinfer::protocol
