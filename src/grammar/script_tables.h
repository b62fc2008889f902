// The arrays of the generated script_tables.cc (tools/make_script_tables.py). Read through unicode_property() only.
#pragma once

#include <cstdint>

namespace deepinfer::grammar {

struct ScriptName {
  const char* long_name;
  const char* short_name;
};

struct ScriptRange {
  uint32_t first, last;  // both included
  uint8_t script;        // index into kScriptNames
};

inline constexpr int kNumScripts = 170;
inline constexpr int kNumScriptRanges = 979;
extern const ScriptName kScriptNames[kNumScripts];
extern const ScriptRange kScriptRanges[kNumScriptRanges];

}  // namespace deepinfer::grammar
