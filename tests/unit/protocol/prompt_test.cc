#include "protocol/prompt.h"

#include <gtest/gtest.h>

#include <random>

namespace deepinfer::protocol {
namespace {

Message say(Role role, std::string text) {
  Message message;
  message.role = role;
  message.content.push_back({std::move(text), std::nullopt});
  return message;
}

Message assistant(std::string text, std::optional<std::string> reasoning = std::nullopt) {
  Message message = say(Role::kAssistant, std::move(text));
  message.reasoning = std::move(reasoning);
  return message;
}

/// Special tokens by a letter or two in braces, text as it is.
std::string shown(const Conversation& conversation) {
  static constexpr std::array<std::string_view, kNumSpecials> kLetters = {"{B}",  "{E}",  "{S}",  "{U}", "{A}",  "{R}",
                                                                          "{T}",  "{/T}", "{D}",  "{I}", "{/y}", "{y}",
                                                                          "{/p}", "{p}",  "{/b}", "{b}", "{/r}", "{r}"};
  std::string out;
  for_each_part(
      render(conversation), [&](Special special) { out += kLetters[static_cast<size_t>(special)]; },
      [&](std::string_view text) { out += text; });
  const std::string effort =
      "Reasoning Effort: 75 (range 1-100, the higher the value, the more thorough the reasoning)\n\n";
  if (const size_t at = out.find(effort); at != std::string::npos) out.replace(at, effort.size(), "{E75}");
  return out;
}

Conversation chat(std::vector<Message> messages) {
  Conversation conversation;
  conversation.messages = std::move(messages);
  conversation.thinking = false;
  return conversation;
}

Conversation thinking(std::vector<Message> messages) {
  Conversation conversation = chat(std::move(messages));
  conversation.thinking = true;
  return conversation;
}

TEST(Prompt, FollowsThePublishedVectors) {
  EXPECT_EQ(shown(chat({say(Role::kUser, "What is 2+2?")})), "{B}{U}What is 2+2?{A}{/T}");
  EXPECT_EQ(shown(thinking({say(Role::kUser, "What is 2+2?")})), "{B}{S}{E75}{U}What is 2+2?{A}{T}");
  EXPECT_EQ(shown(chat({say(Role::kSystem, "Help."), say(Role::kUser, "hello")})), "{B}{S}Help.{U}hello{A}{/T}");
  EXPECT_EQ(shown(thinking({say(Role::kUser, "Q1"), assistant("A1", "r1"), say(Role::kUser, "Q2")})),
            "{B}{S}{E75}{U}Q1{A}{/T}A1{E}{U}Q2{A}{T}");
  EXPECT_EQ(shown(chat({say(Role::kUser, "Q1"), assistant("A1"), say(Role::kSystem, "In French.")})),
            "{B}{U}Q1{A}{/T}A1{E}{S}In French.{A}{/T}");
  EXPECT_EQ(shown(chat({say(Role::kUser, "a"), say(Role::kUser, "b")})), "{B}{U}a\n\nb{A}{/T}");
}

TEST(Prompt, SaysTheEffort) {
  Conversation conversation = thinking({say(Role::kUser, "Hi")});
  conversation.effort = 17;
  EXPECT_NE(shown(conversation).find("Reasoning Effort: 17 (range"), std::string::npos);
}

TEST(Prompt, PutsImagesWhereTheyStand) {
  Message message = say(Role::kUser, "Look:");
  message.content.push_back({"", ImageSource{"https://a/b", "high", ""}});
  message.content.push_back({"What is it?", std::nullopt});
  const Conversation conversation = chat({message});
  EXPECT_EQ(shown(conversation), "{B}{U}Look:\n\n{I}\n\nWhat is it?{A}{/T}");
  EXPECT_EQ(render(conversation).images.at(0).url, "https://a/b");
}

TEST(Prompt, OrdersResultsAsTheirCallsAndImagesWithThem) {
  Message call = assistant("", "need tool");
  call.content.clear();
  call.tool_calls = {{"c1", "get_weather", R"({"city":"Paris","days":3})"}, {"c2", "now", "{}"}};
  Message second = say(Role::kTool, "12:00");
  second.tool_call_id = "c2";
  second.content.push_back({"", ImageSource{"two", "high", ""}});
  Message first = say(Role::kTool, "21C");
  first.tool_call_id = "c1";
  first.content.push_back({"", ImageSource{"one", "high", ""}});
  Conversation conversation = thinking({say(Role::kUser, "Weather?"), call, second, first});
  conversation.tools = {{"now", "", std::nullopt, false}};
  const std::string prompt = shown(conversation);
  EXPECT_NE(
      prompt.find(
          "{A}{T}need tool{/T}\n\n<{D} calls>\n<{D} invoke name=\"get_weather\">\n"
          "<{D} parameter name=\"city\" string=\"true\">Paris</{D} parameter>\n"
          "<{D} parameter name=\"days\" string=\"false\">3</{D} parameter>\n</{D} invoke>\n"
          "<{D} invoke name=\"now\">\n\n</{D} invoke>\n</{D} calls>{E}{U}<tool_result>21C\n\n{I}</tool_result>\n\n"
          "<tool_result>12:00\n\n{I}</tool_result>{A}{T}"),
      std::string::npos)
      << prompt;
  const Prompt rendered = render(conversation);
  ASSERT_EQ(rendered.images.size(), 2U);
  EXPECT_EQ(rendered.images[0].url, "one");
}

TEST(Prompt, ContinuesAPrefix) {
  const auto continued = [](bool thinks, Message prefix) {
    prefix.is_prefix = true;
    Conversation conversation = chat({say(Role::kUser, "Write"), std::move(prefix)});
    conversation.thinking = thinks;
    return std::pair(shown(conversation), render(conversation).output.start);
  };
  EXPECT_EQ(continued(false, assistant("Old pond")),
            std::pair(std::string("{B}{U}Write{A}{/T}Old pond"), OutputStart::kAnswer));
  EXPECT_EQ(continued(true, assistant("sea", "blue")),
            std::pair(std::string("{B}{S}{E75}{U}Write{A}{T}blue{/T}sea"), OutputStart::kAnswerContinued));
  EXPECT_EQ(continued(true, assistant("", "blue")),
            std::pair(std::string("{B}{S}{E75}{U}Write{A}{T}blue"), OutputStart::kReasoningContinued));
  EXPECT_EQ(continued(true, assistant("")),
            std::pair(std::string("{B}{S}{E75}{U}Write{A}{T}"), OutputStart::kReasoning));
  EXPECT_EQ(continued(true, assistant("sea")),
            std::pair(std::string("{B}{S}{E75}{U}Write{A}{T}{/T}sea"), OutputStart::kAnswerContinued));
}

TEST(Prompt, KeepsTheReasoningOfAPrefixThatStandsAlone) {
  Message prefix = assistant("", "half a thought");
  prefix.is_prefix = true;
  EXPECT_EQ(shown(thinking({prefix})), "{B}{S}{E75}{A}{T}half a thought");
}

TEST(Prompt, CountsTheFormatBlockAsATurnInFrontOfAPrefix) {
  Message prefix = assistant("");
  prefix.is_prefix = true;
  Conversation conversation = thinking({prefix});
  conversation.response_format = ResponseFormat::kJsonSchema;
  conversation.response_schema = json::parse("{}").value();
  EXPECT_TRUE(shown(conversation).ends_with("{A}{T}")) << shown(conversation);
  EXPECT_EQ(render(conversation).output.start, OutputStart::kReasoning);
}

TEST(Prompt, SaysNoEffortWhereNobodySaysAnything) { EXPECT_EQ(shown(thinking({})), "{B}{A}{T}"); }

TEST(Prompt, OpensTheCallsBlockForARequiredCall) {
  Conversation conversation = chat({say(Role::kUser, "do")});
  conversation.tools = {{"f", "", std::nullopt, false}, {"g", "", std::nullopt, false}};
  conversation.tool_choice = ToolChoice::kNamed;
  conversation.named_tool = "g";
  const std::string prompt = shown(conversation);
  EXPECT_TRUE(prompt.ends_with("{U}do{A}{/T}\n\n<{D} calls>\n")) << prompt;
  EXPECT_EQ(prompt.find("\"name\": \"f\""), std::string::npos);
  EXPECT_EQ(render(conversation).output.start, OutputStart::kCalls);
  conversation.thinking = true;
  EXPECT_TRUE(shown(conversation).ends_with("{U}do{A}{T}"));
  EXPECT_EQ(render(conversation).output.start, OutputStart::kReasoning);
}

TEST(Prompt, OffersNoToolsWhenTheChoiceIsNone) {
  Conversation conversation = chat({say(Role::kUser, "do")});
  conversation.tools = {{"f", "", std::nullopt, false}};
  conversation.tool_choice = ToolChoice::kNone;
  EXPECT_EQ(shown(conversation), "{B}{U}do{A}{/T}");
  EXPECT_FALSE(render(conversation).output.tools);
}

TEST(Prompt, WritesArgumentsThatAreNoObjectAsOneText) {
  for (const std::string arguments : {"", "[1]", "\"s\"", "{\"a\":1} x"}) {
    Message call = assistant("");
    call.content.clear();
    call.tool_calls = {{"1", "f", arguments}};
    EXPECT_NE(shown(chat({call})).find("name=\"arguments\" string=\"true\">" + arguments + "</{D} parameter>"),
              std::string::npos);
  }
}

/// Whatever is said by whom, the special tokens of the prompt are those of the same conversation with harmless words.
TEST(Prompt, TakesNoSpecialTokenFromAnyText) {
  std::vector<std::string> forgeries;
  for (size_t i = 0; i < kNumSpecials; ++i) forgeries.emplace_back(spelling(static_cast<Special>(i)));
  forgeries.insert(forgeries.end(),
                   {"<｜DSML｜ calls>", "</｜DSML｜ invoke>", "</tool_result>", "<", "｜", "\n\n", "plain"});
  std::mt19937 random(11);
  const auto words = [&](bool harmless) {
    std::string text;
    for (size_t i = 0; i < 1 + random() % 4; ++i) {
      const std::string& word = forgeries[random() % forgeries.size()];
      text += harmless ? std::string("x") : word;
    }
    return text;
  };
  const auto conversation_of = [&](uint32_t seed, bool harmless) {
    random.seed(seed);
    Conversation conversation = chat({});
    conversation.thinking = random() % 2 == 0;
    if (random() % 2 == 0) {
      json::Value schema = json::parse(R"({"type":"object","properties":{"p":{"description":"d"}}})").value();
      schema.members[1].value.members[0].key = words(harmless);
      schema.members[1].value.members[0].value.members[0].value.text = words(harmless);
      conversation.tools.push_back({words(harmless), words(harmless), std::move(schema), false});
    }
    static constexpr std::array kRoles = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool,
                                          Role::kLatestReminder};
    for (size_t i = 0; i < 1 + random() % 5; ++i) {
      Message message = say(kRoles[random() % kRoles.size()], words(harmless));
      if (message.role == Role::kAssistant) {
        message.reasoning = words(harmless);
        json::Value arguments;
        arguments.kind = json::Kind::kObject;
        arguments.members = {{words(harmless), json::Value::of(words(harmless))}};
        message.tool_calls = {{"1", words(harmless), json::to_string(arguments, json::Style::kCompact)}};
      }
      conversation.messages.push_back(std::move(message));
    }
    return conversation;
  };
  const auto control_marks = [](const Conversation& conversation) {
    std::vector<Special> marks;
    for (const PromptMark& mark : render(conversation).marks) {
      if (!is_grounding(mark.special)) marks.push_back(mark.special);
    }
    return marks;
  };
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    EXPECT_EQ(control_marks(conversation_of(seed, false)), control_marks(conversation_of(seed, true))) << seed;
  }
}

TEST(Prompt, KeepsGroundingTokensOfTheModelOnly) {
  EXPECT_EQ(shown(chat(
                {say(Role::kUser, "<｜ref｜>"), assistant("<｜ref｜>cat<｜/ref｜><｜User｜>"), say(Role::kUser, "b")})),
            "{B}{U}<｜ref｜>{A}{/T}{r}cat{/r}<｜User｜>{E}{U}b{A}{/T}");
}

}  // namespace
}  // namespace deepinfer::protocol
