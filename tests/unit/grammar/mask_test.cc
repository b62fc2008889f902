#include "grammar/mask.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/grammar/toy_machines.h"

namespace deepinfer::grammar {
namespace {

using toy::Json;
using toy::JsonRules;

std::shared_ptr<const Vocabulary> make_vocabulary(const std::vector<std::string>& tokens, std::vector<int32_t> ends,
                                                  int32_t n_head) {
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  auto made = Vocabulary::build(views, ends, n_head);
  EXPECT_TRUE(made.ok());
  return *made;
}

/// Pieces that meet inside JSON strings and around their quotes, cut anywhere.
std::string random_token(std::mt19937_64& random) {
  static const std::vector<std::string> kPieces = {
      "a",   "b",     "z",       "é",    "漢",   "😀",        "\"",
      "\"",  "\\\"",  "\\n",     "\\\\", "\\/",  "\\u0041",  "\\ud83d\\ude00",
      "{",   "}",     "[",       "]",    ",",    ":",        "1",
      "23",  "true",  "null",    "\n",   "\x01", "\\",       "\\ud83d",
      "u",   "\\q",   "\\ude00", "\xC3", "\xA9", "\xF0\x9F", "\x98\x80",
      "\":", "\",\"", "\":1,\"", "abc",  "  ",   "\xFF",     "\":1,\"a\":"};
  std::string token;
  for (uint64_t n = 1 + random() % 4; n > 0; --n) token += kPieces[random() % kPieces.size()];
  if (random() % 4 == 0) token = token.substr(random() % token.size());
  if (random() % 4 == 0) token = token.substr(0, 1 + random() % token.size());
  return token;
}

std::vector<std::string> random_tokens(std::mt19937_64& random, size_t n) {
  std::vector<std::string> tokens;
  for (const char* byte : {"a", "\"", "{", "}", "[", "]", ",", ":", "1", "\\", "n"}) tokens.emplace_back(byte);
  while (tokens.size() < n) {
    if (random() % 12 == 0) {
      tokens.push_back(tokens[random() % tokens.size()]);  // equal bytes
    } else if (random() % 30 == 0) {
      tokens.emplace_back();  // special
    } else {
      tokens.push_back(random_token(random));
    }
  }
  std::shuffle(tokens.begin(), tokens.end(), random);
  return tokens;
}

bool follows(Machine& machine, State state, std::string_view bytes) {
  for (const char c : bytes) state = state == kDead ? kDead : machine.step(state, static_cast<uint8_t>(c));
  return state != kDead && !bytes.empty();
}

/// The definition: token by token on a second machine that tells nothing but its steps.
void expect_mask(const Vocabulary& vocabulary, const std::vector<std::string>& tokens, MaskCache& cache, State state,
                 Machine& plain, State plain_state, const std::string& where) {
  const Mask mask = cache.mask(state);
  std::vector<MaskWord> row(static_cast<size_t>(vocabulary.n_words()), ~MaskWord{0});
  mask.fill(row);
  bool is_empty = true;
  for (int32_t token = 0; token < vocabulary.n_words() * 64; ++token) {
    const bool is_known = token < vocabulary.n_head() && static_cast<size_t>(token) < tokens.size();
    bool expected = is_known && follows(plain, plain_state, tokens[static_cast<size_t>(token)]);
    if (token < vocabulary.n_head() && vocabulary.ends_text(token)) expected = plain.complete(plain_state);
    const bool found = (row[static_cast<size_t>(token) / 64] >> (token % 64) & 1) != 0;
    ASSERT_EQ(found, expected) << where << " token " << token << " "
                               << (is_known ? tokens[static_cast<size_t>(token)] : "");
    if (token < vocabulary.n_head()) {
      ASSERT_EQ(mask.allows(token), expected) << where << " token " << token;
      if (!vocabulary.ends_text(token)) {
        ASSERT_EQ(cache.advance(state, token) != kDead, expected);
      }
    }
    is_empty &= !expected;
  }
  ASSERT_EQ(mask.empty(), is_empty) << where;
  ASSERT_TRUE(std::is_sorted(mask.added.begin(), mask.added.end()));
  ASSERT_TRUE(std::is_sorted(mask.removed.begin(), mask.removed.end()));
}

/// Random walks over allowed tokens; every state on the way is compared.
void walk_randomly(Machine& machine, Machine& plain, uint64_t seed, int n_walks, int n_steps) {
  std::mt19937_64 random(seed);
  const size_t n_tokens = 40 + random() % 300;
  const auto tokens = random_tokens(random, n_tokens);
  const auto n_head = static_cast<int32_t>(n_tokens + random() % 80) - 40;
  const auto vocabulary = make_vocabulary(tokens, {2, n_head - 1}, n_head);
  MaskCache cache(*vocabulary, machine);
  for (int i = 0; i < n_walks; ++i) {
    State state = machine.start(), plain_state = plain.start();
    std::string text;
    for (int n = 0; n < n_steps; ++n) {
      expect_mask(*vocabulary, tokens, cache, state, plain, plain_state,
                  "seed " + std::to_string(seed) + " after " + text);
      if (testing::Test::HasFatalFailure()) return;
      std::vector<int32_t> allowed;
      const Mask mask = cache.mask(state);
      for (int32_t token = 0; token < vocabulary->n_head(); ++token)
        if (mask.allows(token) && !vocabulary->ends_text(token)) allowed.push_back(token);
      if (allowed.empty()) break;
      const int32_t token = allowed[random() % allowed.size()];
      text += tokens[static_cast<size_t>(token)];
      state = cache.advance(state, token);
      for (const char c : tokens[static_cast<size_t>(token)])
        plain_state = plain.step(plain_state, static_cast<uint8_t>(c));
    }
  }
}

void compare_json(JsonRules rules, int n_seeds) {
  for (int seed = 1; seed <= n_seeds; ++seed) {
    Json machine(rules);
    rules.tells = false;
    Json plain(rules);
    rules.tells = true;
    walk_randomly(machine, plain, static_cast<uint64_t>(seed), 6, 10);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Mask, IsWhatAdvanceTakesInFreeJson) { compare_json({}, 10); }

TEST(Mask, IsWhatAdvanceTakesInStringsOfLimitedLength) {
  compare_json({.max_chars = 3}, 3);
  compare_json({.max_chars = 0}, 3);
  compare_json({.min_chars = 2}, 3);
  compare_json({.min_chars = 1, .max_chars = 2}, 3);
  compare_json({.min_chars = 40, .max_chars = 100000}, 3);
}

TEST(Mask, IsWhatAdvanceTakesWhereAnEscapeIsRefused) {
  compare_json({.solidus = false}, 3);
  compare_json({.max_chars = 4, .solidus = false}, 3);
}

TEST(Mask, IsWhatAdvanceTakesInPatternedStrings) {
  compare_json({.n_evens = 2}, 3);
  compare_json({.min_chars = 1, .max_chars = 3, .n_evens = 3}, 3);
  compare_json({.max_chars = 6, .n_evens = 2}, 3);
}

TEST(Mask, IsWhatAdvanceTakesInPatternedStringsWithKinds) {
  compare_json({.n_evens = 2, .tells_kinds = true}, 3);
  compare_json({.min_chars = 1, .max_chars = 3, .n_evens = 3, .tells_kinds = true}, 3);
  compare_json({.max_chars = 6, .n_evens = 2, .solidus = false, .tells_kinds = true}, 3);
}

TEST(Mask, IsWhatAdvanceTakesWhereKindsTakeEveryCharacter) {
  compare_json({.n_evens = 2, .takes_z = true, .tells_kinds = true}, 5);
  compare_json({.min_chars = 2, .max_chars = 3, .n_evens = 3, .takes_z = true, .tells_kinds = true}, 5);
  compare_json({.n_evens = 2, .takes_z = true, .solidus = false, .tells_kinds = true}, 5);
}

TEST(Mask, IsWhatAdvanceTakesWhereNoEscapeIsAsked) {
  compare_json({.tells_escapes = true}, 5);
  compare_json({.min_chars = 1, .max_chars = 3, .tells_escapes = true}, 5);
  compare_json({.unique_names = true, .tells_escapes = true}, 5);
}

TEST(Mask, IsWhatAdvanceTakesWithBlanks) {
  compare_json({.n_line_ends = 1, .n_blanks = 3}, 7);
  compare_json({.max_chars = 2, .unique_names = true, .n_line_ends = 2, .n_blanks = 0}, 5);
}

TEST(Mask, IsWhatAdvanceTakesWhereNamesDiffer) {
  compare_json({.unique_names = true}, 10);
  compare_json({.unique_names = true, .tells_exceptions = false}, 5);
  compare_json({.max_chars = 2, .unique_names = true, .depth_max = 1}, 5);
}

TEST(Mask, LimitedAndUnlimitedStringsOfOneKindMix) {
  // One machine asks the same kind with growing and shrinking limits: start in the middle first.
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    const JsonRules rules{.max_chars = 7, .n_evens = round % 2 == 0 ? 0 : 2};
    const auto tokens = random_tokens(random, 200);
    const auto vocabulary = make_vocabulary(tokens, {1}, 200);
    Json machine(rules), plain(rules);
    MaskCache cache(*vocabulary, machine);
    for (const std::string text : {"\"abbbbbb", "\"abbb", "[\"", "\"abbbb", "\"ab", "[[\"abbbbbb", "\""}) {
      State state = machine.start(), plain_state = plain.start();
      for (const char c : text) {
        state = machine.step(state, static_cast<uint8_t>(c));
        plain_state = plain.step(plain_state, static_cast<uint8_t>(c));
      }
      expect_mask(*vocabulary, tokens, cache, state, plain, plain_state, text);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Mask, IsWhatAdvanceTakesOnLiterals) {
  const std::vector<std::string> texts = {"a", "abc", "abz", "\"a\":1", "é漢", "23", "true", "{}"};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    toy::Literals machine(texts, seed % 2 == 0), plain(texts);
    walk_randomly(machine, plain, seed, 8, 6);
    if (HasFatalFailure()) return;
  }
}

TEST(Mask, IsWhatAdvanceTakesOnRandomAutomata) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    const std::string bytes = "abz\"\\n{}[]:,1u \xC3\xA9";
    toy::RandomDfa machine(seed, bytes), plain(seed, bytes);
    walk_randomly(machine, plain, seed, 4, 8);
    if (HasFatalFailure()) return;
  }
}

TEST(Mask, LongWalksWithKeptRowsAgree) {
  // Enough tokens that the walk starts to keep table rows, and that rows and lists are told apart.
  std::mt19937_64 random(9);
  std::vector<std::string> tokens;
  std::set<std::string> seen;
  while (tokens.size() < 6000) {
    std::string token;
    for (uint64_t n = 1 + random() % 6; n > 0; --n) token += "abz1\"\\n"[random() % 7];
    if (seen.insert(token).second) tokens.push_back(token);
  }
  const auto vocabulary = make_vocabulary(tokens, {0}, 6000);
  for (uint64_t seed = 0; seed < 8; ++seed) {
    toy::RandomDfa machine(seed, "abz1\"\\n"), plain(seed, "abz1\"\\n");
    MaskCache cache(*vocabulary, machine);
    for (State state = 1; state <= 2; ++state)
      for (int twice = 0; twice < 2; ++twice) expect_mask(*vocabulary, tokens, cache, state, plain, state, "long");
    Json json({.n_evens = 2}), plain_json({.n_evens = 2});
    MaskCache json_cache(*vocabulary, json);
    expect_mask(*vocabulary, tokens, json_cache, json.step(json.start(), '"'), plain_json,
                plain_json.step(plain_json.start(), '"'), "json");
    if (HasFatalFailure()) return;
  }
}

TEST(Mask, DigitsShareOneRow) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 1110; ++i) tokens.push_back(std::to_string(i));
  for (const char* other : {"\"", "[", "]", ",", "],"}) tokens.emplace_back(other);
  const auto vocabulary = make_vocabulary(tokens, {}, static_cast<int32_t>(tokens.size()));
  Json machine({});
  MaskCache cache(*vocabulary, machine);
  const Mask mask = cache.mask(machine.step(machine.start(), '1'));
  EXPECT_EQ(mask.base, vocabulary->digit_row().data());
  EXPECT_TRUE(mask.added.empty());
  EXPECT_TRUE(mask.removed.empty());
}

TEST(Mask, DeadStateAllowsNothing) {
  const auto vocabulary = make_vocabulary({"a", "b"}, {1}, 2);
  Json machine({});
  MaskCache cache(*vocabulary, machine);
  EXPECT_TRUE(cache.mask(kDead).empty());
  EXPECT_EQ(cache.advance(kDead, 0), kDead);
  EXPECT_EQ(cache.advance(machine.start(), -1), kDead);
  EXPECT_EQ(cache.advance(machine.start(), 2), kDead);
}

}  // namespace
}  // namespace deepinfer::grammar
