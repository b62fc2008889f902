#include "engine/answer_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deepinfer/tokenizer.h"
#include "engine/stop_strings.h"

namespace deepinfer {
namespace {

/// Pushes text in pieces of n bytes and returns what was released.
std::string run(StopStrings& stops, const std::string& text, size_t n) {
  std::string released;
  for (size_t i = 0; i < text.size() && !stops.matched(); i += n) released += stops.push(text.substr(i, n));
  if (!stops.matched()) released += stops.finish();
  return released;
}

TEST(StopStrings, TheMatchThatCompletesFirstWinsInEveryStepSize) {
  for (size_t n = 1; n <= 20; ++n) {
    StopStrings stops({"a", "is", ","});
    EXPECT_EQ(run(stops, " The user is a, b", n), " The user ") << n;
    ASSERT_TRUE(stops.matched());
    EXPECT_EQ(stops.match(), "is");
  }
}

TEST(StopStrings, NothingOfAStopStringIsReleasedAndAPartialMatchIsHeldThenReleased) {
  StopStrings stops({"\n\nHuman"});
  EXPECT_EQ(stops.push("ok\n"), "ok");
  EXPECT_EQ(stops.push("\nHum"), "");
  EXPECT_EQ(stops.push("ble"), "\n\nHumble");
  EXPECT_EQ(stops.push("\n\nHu"), "");
  EXPECT_EQ(stops.finish(), "\n\nHu");
}

TEST(StopStrings, OverlappingPrefixesAreFound) {
  StopStrings stops({"aab"});
  EXPECT_EQ(run(stops, "xaaab!", 1), "xa");
  EXPECT_TRUE(stops.matched());
}

TEST(StopStrings, OfMatchesThatCompleteTogetherTheLongestCuts) {
  StopStrings stops({"b", "ab"});
  EXPECT_EQ(run(stops, "xab", 3), "x");
  EXPECT_EQ(stops.match(), "ab");
}

class AnswerTextTest : public ::testing::Test {
 protected:
  Tokenizer tokenizer_ = *Tokenizer::open(DI_TESTS_DIR "/golden/golden-v41/checkpoint");

  std::vector<int32_t> encode(const std::string& text) { return *tokenizer_.encode(text); }
};

TEST_F(AnswerTextTest, KeepsExactlyTheTokensBeforeAStopString) {
  const std::vector<int32_t> ids = encode("one two STOP three");
  AnswerText answer(tokenizer_, encode("prompt"), {"STOP"});
  std::string shown;
  for (const int32_t id : ids) {
    shown += answer.push(id);
    if (answer.stopped()) break;
  }
  shown += answer.finish();
  EXPECT_TRUE(answer.stopped());
  EXPECT_EQ(shown, answer.text());
  EXPECT_EQ(answer.text(), "one two ");
  const std::string kept = *tokenizer_.decode(std::span(ids).first(static_cast<size_t>(answer.n_kept())));
  EXPECT_EQ(answer.text().substr(0, kept.size()), kept);
  EXPECT_EQ(kept.find('S'), std::string::npos);
  EXPECT_GE(answer.n_kept(), 1);
}

TEST_F(AnswerTextTest, ShowsWholeCharactersOnlyAndFlushesAnUnfinishedOne) {
  const std::string text = "\xED\x95\x9C\xEA\xB5\xAD \xF0\x9F\x8C\xB6";  // two syllables, a pepper
  const std::vector<int32_t> ids = encode(text);
  AnswerText answer(tokenizer_, {}, {});
  std::string shown;
  for (const int32_t id : ids) shown += answer.push(id);
  shown += answer.finish();
  EXPECT_EQ(shown, text);
  EXPECT_EQ(answer.n_kept(), static_cast<int64_t>(ids.size()));

  AnswerText cut(tokenizer_, {}, {});
  for (size_t i = 0; i + 1 < ids.size(); ++i) cut.push(ids[i]);
  cut.finish();
  EXPECT_TRUE(cut.text().ends_with("\xEF\xBF\xBD"));
}

TEST_F(AnswerTextTest, APromptThatEndsInsideACharacterIsCompletedWithoutPromptText) {
  const std::vector<int32_t> ids = encode("Hello \xF0\x9F\x8C\xB6");
  ASSERT_GE(ids.size(), 3U);
  const std::vector<int32_t> prompt(ids.begin(), ids.end() - 2);
  AnswerText answer(tokenizer_, prompt, {});
  std::string shown = answer.push(ids[ids.size() - 2]);
  shown += answer.push(ids.back());
  shown += answer.finish();
  EXPECT_EQ(shown.find("Hello"), std::string::npos);
  EXPECT_EQ(shown, "\xF0\x9F\x8C\xB6");
}

}  // namespace
}  // namespace deepinfer
