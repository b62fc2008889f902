// Output events written down, for tests: what a client would have once all pieces are joined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "protocol/output_parser.h"
#include "text/utf8.h"

namespace deepinfer::protocol {

/// Every text is checked for being whole characters and not empty.
class OutputRecord : public OutputEvents {
 public:
  struct Call {
    std::string name;
    std::string arguments;
    bool is_complete = false;
    bool operator==(const Call&) const = default;
  };

  void on_reasoning(std::string_view text) override { add('r', reasoning, text); }
  void on_answer(std::string_view text) override { add('a', answer, text); }
  void on_call_begin(std::string_view name) override {
    DI_CHECK(calls.empty() || calls.back().is_complete);
    order += 'c';
    calls.emplace_back();
    calls.back().name = name;
  }
  void on_call_arguments(std::string_view json) override { add('j', calls.back().arguments, json); }
  void on_call_end() override {
    DI_CHECK(!calls.back().is_complete);
    order += 'e';
    calls.back().is_complete = true;
  }

  bool operator==(const OutputRecord& other) const {
    return reasoning == other.reasoning && answer == other.answer && calls == other.calls && order == other.order;
  }

  std::string reasoning;
  std::string answer;
  std::vector<Call> calls;
  std::string order;  // one letter an event, but one for pieces of the same thing

 private:
  void add(char kind, std::string& to, std::string_view text) {
    DI_CHECK(!text.empty() && !find_ill_formed(text).has_value());
    if (!order.ends_with(kind)) order += kind;
    to += text;
  }
};

}  // namespace deepinfer::protocol
