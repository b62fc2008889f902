#include "protocol/token_output.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tiny_tokenizer.h"
#include "tests/unit/protocol/output_record.h"

namespace deepinfer::protocol {
namespace {

/// Bytes are ids 0 to 255; then the special tokens, a control token that nothing here knows, and one that is text.
class TokenOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    TinyTokenizer tiny;
    for (size_t i = 0; i < kNumSpecials; ++i)
      tiny.added.push_back({std::string(spelling(static_cast<Special>(i))), i < 6});
    tiny.added.push_back({"<｜control｜>", true});
    tiny.added.push_back({"<td>", false});
    auto tokenizer = Tokenizer::from_json(tiny.json());
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_.emplace(std::move(tokenizer).value());
    const auto specials = SpecialTokens::of(*tokenizer_);
    ASSERT_TRUE(specials.ok());
    specials_ = *specials;
  }

  [[nodiscard]] int32_t id(Special special) const { return *specials_.id(special); }
  [[nodiscard]] int32_t id(std::string_view token) const { return *tokenizer_->token_to_id(token); }

  TokenOutput output(OutputStart start, std::vector<std::string> stop = {}) {
    return {*tokenizer_, specials_, {.start = start, .tools = true, .json = false, .stop = std::move(stop)}};
  }

  static void push_text(TokenOutput& output, std::string_view text, OutputEvents& events) {
    for (const char c : text) EXPECT_TRUE(output.push(static_cast<unsigned char>(c), events).ok());
  }

  std::optional<Tokenizer> tokenizer_;
  SpecialTokens specials_;
};

TEST_F(TokenOutputTest, JoinsBytesToText) {
  TokenOutput tokens = output(OutputStart::kReasoning);
  OutputRecord record;
  push_text(tokens, "é\n", record);
  EXPECT_TRUE(tokens.push(id(Special::kThinkClose), record).ok());
  push_text(tokens, "\n中</think>", record);
  tokens.finish(record);
  EXPECT_EQ(record.reasoning, "é");
  EXPECT_EQ(record.answer, "中</think>");
}

TEST_F(TokenOutputTest, ShowsAddedTokensThatAreText) {
  TokenOutput tokens = output(OutputStart::kAnswer);
  OutputRecord record;
  for (const int32_t token : {id("<td>"), id(Special::kBoxOpen), id("<｜control｜>"), id(Special::kUser),
                              id(Special::kThinkOpen), id(Special::kImage), id(Special::kEos), int32_t{'x'}})
    EXPECT_TRUE(tokens.push(token, record).ok());
  tokens.finish(record);
  EXPECT_EQ(record.answer, "<td><｜box｜>x");
}

TEST_F(TokenOutputTest, EndsACharacterAtASpecialToken) {
  for (const int32_t token : {id("<｜control｜>"), id(Special::kEos), id(Special::kThinkClose)}) {
    TokenOutput tokens = output(OutputStart::kAnswer);
    OutputRecord record;
    push_text(tokens, "a\xE4\xB8", record);
    EXPECT_EQ(record.answer, "a");
    EXPECT_TRUE(tokens.push(token, record).ok());
    push_text(tokens, "\xAD", record);
    tokens.finish(record);
    EXPECT_EQ(record.answer, "a\uFFFD\uFFFD");
  }
}

TEST_F(TokenOutputTest, ReadsCallsFromTokens) {
  TokenOutput tokens = output(OutputStart::kAnswer);
  OutputRecord record;
  const auto push_spelt = [&](std::string_view text) {
    while (!text.empty()) {
      const std::string_view dsml = spelling(Special::kDsml);
      const size_t at = std::min(text.find(dsml), text.size());
      push_text(tokens, text.substr(0, at), record);
      if (at == text.size()) return;
      EXPECT_TRUE(tokens.push(id(Special::kDsml), record).ok());
      text.remove_prefix(at + dsml.size());
    }
  };
  push_spelt("ok\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"k\" string=\"true\">");
  push_text(tokens, "</｜DSML｜ parameter>", record);  // only letters: still the value
  push_spelt("</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>");
  EXPECT_EQ(tokens.parser().section(), Section::kFinished);
  EXPECT_EQ(record.answer, "ok");
  EXPECT_EQ(record.calls, (std::vector<OutputRecord::Call>{{"f", R"({"k": "</｜DSML｜ parameter>"})", true}}));
}

TEST_F(TokenOutputTest, CountsTokens) {
  TokenOutput tokens = output(OutputStart::kReasoning, {"END"});
  OutputRecord record;
  push_text(tokens, "abc", record);
  EXPECT_TRUE(tokens.push(id(Special::kThinkClose), record).ok());
  EXPECT_EQ(tokens.n_tokens(), 4);
  EXPECT_EQ(tokens.n_reasoning_tokens(), 3);
  EXPECT_TRUE(tokens.push(id(Special::kEos), record).ok());
  push_text(tokens, "xEND more", record);
  EXPECT_EQ(tokens.n_tokens(), 8);
  EXPECT_EQ(tokens.n_reasoning_tokens(), 3);
  EXPECT_EQ(tokens.parser().stop_index(), 0);
}

TEST_F(TokenOutputTest, RefusesIdsOutsideTheVocabulary) {
  TokenOutput tokens = output(OutputStart::kAnswer);
  OutputRecord record;
  for (const int32_t token : {-1, tokenizer_->vocab_size()}) {
    const Status status = tokens.push(token, record);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(tokens.n_tokens(), 0);
}

}  // namespace
}  // namespace deepinfer::protocol
