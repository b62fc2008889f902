// The fields that are known but not honoured, of the body itself: the tables that docs/PROTOCOL.md quotes. Whatever is
// neither read by name nor listed here is unknown, and ignored.
#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/api_error.h"

namespace deepinfer::protocol {

constexpr uint8_t bit_of(Api api) { return static_cast<uint8_t>(1U << static_cast<unsigned>(api)); }

inline constexpr uint8_t kInChat = bit_of(Api::kChat);
inline constexpr uint8_t kInMessages = bit_of(Api::kMessages);
inline constexpr uint8_t kInResponses = bit_of(Api::kResponses);

/// What a refused field may hold after all, beside null: what means the same as its absence.
enum class Neutral : uint8_t { kNothing, kFalse, kEmpty, kDisabled, kTextOnly, kReasoningOnly };

struct RefusedField {
  uint8_t apis;
  std::string_view name;
  Neutral neutral;
  std::string_view why;
};

inline constexpr RefusedField kRefusedFields[] = {
    {kInChat, "audio", Neutral::kNothing, "answers are text"},
    {kInChat, "modalities", Neutral::kTextOnly, "answers are text"},
    {kInChat, "prediction", Neutral::kNothing, "predicted outputs are not supported"},
    {kInChat, "web_search_options", Neutral::kNothing, "web search is not supported"},
    {kInChat, "functions", Neutral::kNothing, "use tools instead"},
    {kInChat, "function_call", Neutral::kNothing, "use tool_choice instead"},
    {kInChat | kInResponses, "store", Neutral::kFalse, "responses are not stored"},
    {kInMessages, "mcp_servers", Neutral::kEmpty, "servers of tools are not supported"},
    {kInMessages, "container", Neutral::kNothing, "containers are not supported"},
    {kInMessages, "output_format", Neutral::kNothing, "use output_config.format instead"},
    {kInResponses, "previous_response_id", Neutral::kNothing, "responses are not stored"},
    {kInResponses, "conversation", Neutral::kNothing, "conversations are not stored"},
    {kInResponses, "prompt", Neutral::kNothing, "prompt templates are not stored"},
    {kInResponses, "truncation", Neutral::kDisabled, "nothing is cut from a conversation"},
    {kInResponses, "background", Neutral::kFalse, "responses are not stored"},
    // Reasoning is always sent as it is, so who asks for its encrypted form in addition misses nothing.
    {kInResponses, "include", Neutral::kReasoningOnly, "no additional output is supported"},
};

struct IgnoredField {
  uint8_t apis;
  std::string_view name;
};

/// They ask for nothing that could change an answer of this server.
inline constexpr IgnoredField kIgnoredFields[] = {
    {kInChat | kInResponses, "user"},
    {kInChat | kInMessages | kInResponses, "metadata"},
    {kInChat | kInMessages | kInResponses, "service_tier"},
    {kInChat | kInResponses, "safety_identifier"},
    {kInChat | kInResponses, "prompt_cache_key"},
    {kInChat | kInResponses, "prompt_cache_retention"},
    {kInChat, "verbosity"},
    {kInResponses, "max_tool_calls"},  // of tools that the server runs: there are none
    {kInMessages, "betas"},
    {kInMessages, "context_management"},
    {kInMessages, "cache_control"},
};

}  // namespace deepinfer::protocol
